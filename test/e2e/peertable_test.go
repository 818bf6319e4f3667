package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// contest is one comparison: what ours and another reached, round by round.
type contest struct {
	what, unit, goal string
	other            string
	rounds           [][2]float64
}

// median of one side, or of the ratios.
func (c *contest) median(of func(round [2]float64) float64) (median, least, most float64) {
	var all []float64
	for _, round := range c.rounds {
		all = append(all, of(round))
	}
	slices.Sort(all)
	return all[len(all)/2], all[0], all[len(all)-1]
}

// row is the comparison's row in the table.
func (c *contest) row() string {
	ours, _, _ := c.median(func(r [2]float64) float64 { return r[0] })
	other, _, _ := c.median(func(r [2]float64) float64 { return r[1] })
	ratio, least, most := c.median(func(r [2]float64) float64 { return r[0] / max(r[1], 1e-9) })
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %.2f (%.2f to %.2f) | %s |",
		c.what, c.unit, figure(ours), c.other, figure(other), ratio, least, most, c.goal)
}

// figure writes a number with three digits that count.
func figure(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	text := fmt.Sprintf("%.0f", v)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// text is the section of the document.
func (p *peers) text(t *testing.T) string {
	t.Helper()
	lines := []string{p.settings(t), "", "| what | unit | Muster | compared with | its figure | ratio: median (least to most) | goal |",
		"|---|---|---|---|---|---|---|"}
	for _, c := range p.contests {
		lines = append(lines, c.row())
	}
	return strings.Join(lines, "\n")
}

// replaceBetween writes a text between the comments of a document that name its place.
func replaceBetween(document, place, text string) error {
	begin, end := "<!-- "+place+": begin -->", "<!-- "+place+": end -->"
	old, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(old), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return errors.New(document + " has no place " + begin + " … " + end)
	}
	return os.WriteFile(document, []byte(before+begin+"\n"+text+"\n"+end+after), 0o644) // a document
}
