package asset

import (
	"fmt"
	"maps"
	"slices"
)

// namesakes are assets with one identification and without a serial number.
type namesakes struct{ shown, archived group }

func (s *namesakes) add(i int, a Asset) {
	if a.Archived {
		s.archived.assets = append(s.archived.assets, i)
	} else {
		s.shown.assets = append(s.shown.assets, i)
	}
}

// take takes an asset that no other line has taken; -1: there is none. One that is in the inventory
// comes before one that is archived.
func (s *namesakes) take(l Line, there []Asset) int {
	if i := s.shown.take(l, there); i >= 0 {
		return i
	}
	return s.archived.take(l, there)
}

// maxColumns bounds the sets of columns by which a group is indexed. Lines with more of them take the first asset.
const maxColumns = 64

// group is some of the assets of one identification, in the order in which lines take them.
type group struct {
	assets []int
	taken  map[int]bool
	// alike has, by the columns that a line fills in, the assets by what they have there.
	alike map[string]map[string][]int
}

// take takes an asset that is as the line says, or the first.
func (g *group) take(l Line, there []Asset) int {
	if len(g.assets) == 0 {
		return -1
	}
	found, says := g.like(l, there), Asset{}
	if err := l.edit().Apply(&says); err == nil {
		key := l.filled(says)
		for same := found[key]; len(same) > 0; same = found[key] {
			if found[key] = same[1:]; !g.taken[same[0]] {
				return g.use(same[0])
			}
		}
	}
	for ; len(g.assets) > 0; g.assets = g.assets[1:] {
		if i := g.assets[0]; !g.taken[i] {
			return g.use(i)
		}
	}
	return -1
}

func (g *group) use(i int) int {
	if g.taken == nil {
		g.taken = map[int]bool{}
	}
	g.taken[i] = true
	return i
}

// like is the index of the columns that the line fills in.
func (g *group) like(l Line, there []Asset) map[string][]int {
	columns := fmt.Sprintf("%t %q", l.Tags != nil, slices.Sorted(maps.Keys(l.CustomData)))
	found, has := g.alike[columns]
	if has || len(g.alike) == maxColumns {
		return found
	}
	found = map[string][]int{}
	for _, i := range g.assets {
		key := l.filled(there[i])
		found[key] = append(found[key], i)
	}
	if g.alike == nil {
		g.alike = map[string]map[string][]int{}
	}
	g.alike[columns] = found
	return found
}

// filled is what an asset has in the columns that the line fills in.
func (l Line) filled(a Asset) string {
	var values []string
	if l.Tags != nil {
		values = append(values, fmt.Sprintf("%q", a.Tags))
	}
	for _, key := range slices.Sorted(maps.Keys(l.CustomData)) {
		values = append(values, a.CustomData[key])
	}
	return fmt.Sprintf("%q", values)
}
