// Package slice makes one slice of another.
package slice

// Map returns what of makes of each element, in the same order; never nil.
func Map[E, R any](all []E, of func(E) R) []R {
	mapped := make([]R, len(all))
	for i, e := range all {
		mapped[i] = of(e)
	}
	return mapped
}
