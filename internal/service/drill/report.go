package drill

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Report is what a drill found.
type Report struct {
	Scenarios []Scenario `json:"scenarios"`
}

// Scenario is what one scenario found.
type Scenario struct {
	Name    string    `json:"scenario"`
	Attacks []*Attack `json:"attacks"`
	// Facts are what was found afterwards, harm or not.
	Facts []string `json:"facts"`
	Harm  []string `json:"harm"`
}

// Attack is one way of attacking, with what became of its calls.
type Attack struct {
	Attack   string `json:"attack"`
	Calls    int    `json:"calls"`
	Accepted int    `json:"accepted"`
	// RefusedBy counts refused calls by the control that refused them, or by the
	// error's code where no control did.
	RefusedBy map[string]int `json:"refusedBy"`
}

// note counts an answer.
func (a *Attack) note(got answer) {
	a.Calls++
	if control := got.control(); control == "" {
		a.Accepted++
	} else {
		a.RefusedBy[control]++
	}
}

// Harmless reports whether no scenario did harm.
func (r Report) Harmless() bool {
	return !slices.ContainsFunc(r.Scenarios, func(s Scenario) bool { return len(s.Harm) > 0 })
}

// JSON writes the report as one JSON value.
func (r Report) JSON(w io.Writer) error {
	return json.NewEncoder(w).Encode(struct {
		Report
		Harm bool `json:"harm"`
	}{r, !r.Harmless()})
}

// Table writes the report for people.
func (r Report) Table(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SCENARIO\tATTACK\tCALLS\tACCEPTED\tREFUSED BY\tHARM")
	for _, s := range r.Scenarios {
		for _, a := range s.Attacks {
			fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s\n", s.Name, a.Attack, a.Calls, a.Accepted, a.refusals(), "-")
		}
		fmt.Fprintf(table, "%s\tresult\t\t\t%s\t%s\n", s.Name, strings.Join(s.Facts, "; "), harmText(s.Harm))
	}
	return table.Flush()
}

func harmText(harm []string) string {
	if len(harm) == 0 {
		return "none"
	}
	return strings.Join(harm, "; ")
}

func (a *Attack) refusals() string {
	var parts []string
	for _, control := range slices.Sorted(maps.Keys(a.RefusedBy)) {
		parts = append(parts, fmt.Sprintf("%s %d", control, a.RefusedBy[control]))
	}
	if parts == nil {
		return "-"
	}
	return strings.Join(parts, ", ")
}
