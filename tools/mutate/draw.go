package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
)

// draw draws count mutants that are not equivalent, and the equivalent ones that came before
// them. Packages take turns, so that the small ones, which decide most, are drawn from as often
// as the large ones. The order within a package follows from the seed and the keys, so that a
// change of one condition does not exchange the others.
func draw(perTarget [][]mutant, seed, count int) (drawn []mutant) {
	for i := range perTarget {
		perTarget[i] = shuffle(perTarget[i], seed)
	}
	for left := true; left; {
		left = false
		for i, all := range perTarget {
			for len(all) > 0 && count > 0 {
				m := all[0]
				m.number = len(drawn) + 1
				all = all[1:]
				drawn = append(drawn, m)
				if m.reason == "" {
					count--
					break
				}
			}
			perTarget[i] = all
			left = left || len(all) > 0 && count > 0
		}
	}
	return drawn
}

// shuffle sorts mutants by a hash of the seed and their keys.
func shuffle(all []mutant, seed int) []mutant {
	type place struct {
		hash [sha256.Size]byte
		m    mutant
	}
	places := make([]place, len(all))
	for i, m := range all {
		places[i] = place{sha256.Sum256(fmt.Appendf(nil, "%d\n%s\n%d", seed, m.key(), m.nth)), m}
	}
	slices.SortFunc(places, func(a, b place) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	sorted := make([]mutant, len(all))
	for i, p := range places {
		sorted[i] = p.m
	}
	return sorted
}
