// Package slice makes one slice of another, and finds elements.
package slice

import "slices"

// Map returns what of makes of each element, in the same order; never nil.
func Map[E, R any](all []E, of func(E) R) []R {
	mapped := make([]R, len(all))
	for i, e := range all {
		mapped[i] = of(e)
	}
	return mapped
}

// First returns the first element that is; the zero value if none is.
func First[E any](all []E, is func(E) bool) (found E) {
	if i := slices.IndexFunc(all, is); i >= 0 {
		found = all[i]
	}
	return found
}
