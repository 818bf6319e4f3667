package asset_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/asset"
)

// Lines without a serial number mean assets of their name: one that is as the line says, else the first; one that is archived
// only after all that are not.
func TestMatch_Namesakes(t *testing.T) {
	desk := func(archived bool, tags ...string) asset.Asset {
		return asset.Asset{Identification: "Front desk", Archived: archived, Tags: tags}
	}
	line := func(tags ...string) asset.Line { return asset.Line{Identification: "Front desk", Tags: tags} }
	for _, c := range []struct {
		name  string
		there []asset.Asset
		lines []asset.Line
		want  []int
	}{
		{"as the line says", []asset.Asset{desk(false), desk(false, "vip")}, []asset.Line{line("vip", "vip"), line("new")}, []int{1, 0}},
		{"none left", []asset.Asset{desk(false)}, []asset.Line{line("a"), line("b")}, []int{0, -1}},
		{"archived last", []asset.Asset{desk(true, "vip"), desk(false)}, []asset.Line{line("vip"), line("vip"), line("vip")},
			[]int{1, 0, -1}},
		{"without columns", []asset.Asset{desk(true), desk(false, "x")}, []asset.Line{line(), {Identification: "other"}}, []int{1, -1}},
	} {
		if got, wrong := asset.Match(c.lines, c.there); !slices.Equal(got, c.want) || wrong != nil {
			t.Errorf("%s: %v, %v, want %v", c.name, got, wrong, c.want)
		}
	}
}

// Twenty thousand assets of one name are matched in steps that do not grow with their number: to compare each pair would take
// minutes.
func TestMatch_ManyNamesakes(t *testing.T) {
	const n = 20_000
	var lines, again []asset.Line
	var there []asset.Asset
	for i := range n {
		there = append(there, asset.Asset{Identification: "Tablet", CustomData: map[string]string{"shelf": fmt.Sprint(i)}})
		lines = append(lines, asset.Line{Identification: "Tablet", CustomData: map[string]string{"shelf": fmt.Sprint("new ", i)}})
		again = append(again, asset.Line{Identification: "Tablet", CustomData: map[string]string{"shelf": fmt.Sprint(n - 1 - i)}})
	}
	got, _ := asset.Match(lines, there)
	same, _ := asset.Match(again, there)
	for i := range n {
		if got[i] != i || same[i] != n-1-i {
			t.Fatalf("line %d means %d, and %d", i, got[i], same[i])
		}
	}
}
