package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/script"
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

// The widths of the columns that are wrapped, so that the table has at most 120.
const (
	attackWidth  = 30
	refusedWidth = 30
	harmWidth    = 17
)

// Table writes the report for people, in at most 120 columns.
func (r Report) Table(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SCENARIO\tATTACK\tCALLS\tACCEPTED\tREFUSED BY\tHARM")
	line := func(scenario, attack, calls, accepted string, refused, harm []string) {
		names := wrapped([]string{attack}, attackWidth)
		for i := range max(len(names), len(refused), len(harm)) {
			cell := func(of []string) string {
				if i < len(of) {
					return of[i]
				}
				return ""
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", scenario, cell(names), calls, accepted, cell(refused), cell(harm))
			scenario, calls, accepted = "", "", ""
		}
	}
	for _, s := range r.Scenarios {
		for _, a := range s.Attacks {
			line(s.Name, a.Attack, strconv.Itoa(a.Calls), strconv.Itoa(a.Accepted), wrapped([]string{a.refusals()}, refusedWidth),
				[]string{"-"})
		}
		harm := s.Harm
		if len(harm) == 0 {
			harm = []string{"none"}
		}
		line(s.Name, "result", "", "", wrapped(s.Facts, refusedWidth), wrapped(harm, harmWidth))
	}
	return table.Flush()
}

// wrapped breaks texts at spaces into lines of a width, as far as words allow.
func wrapped(texts []string, width int) (lines []string) {
	for _, text := range texts {
		current := ""
		for _, word := range strings.Fields(text) {
			if current != "" && utf8.RuneCountInString(current)+1+utf8.RuneCountInString(word) > width {
				lines, current = append(lines, current), ""
			}
			current = strings.TrimSpace(current + " " + word)
		}
		lines = append(lines, current)
	}
	return lines
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

// pageOfAll is larger than the demo's company.
const pageOfAll = 1000

// controls sets the company's controls, as the operator does.
func (d *drill) controls(ctx context.Context, c access.Controls) {
	script.Must(d.Admin.Companies.UpdateCompany(ctx, d.Company.ID, company.Change(func(to *company.Company) { to.Settings.Controls = c })))
}

// look reads the company's settings and its managed devices.
func (d *drill) look(ctx context.Context) (access.Settings, []asset.Asset) {
	c := script.Must(d.Admin.Companies.CompanyByID(ctx, d.Company.ID))
	devices, _, err := d.db.Assets(ctx, asset.Query{Filter: asset.Filter{CompanyID: d.Company.ID, Enrolled: true}, Order: asset.ByCreatedAt,
		Page: operation.PageRequest{Size: pageOfAll}})
	script.Need(err)
	return c.Settings, devices
}

// history is all commands that a device has, as the database has them.
func (d *drill) history(ctx context.Context, assetID string) []command.Command {
	all, _, err := d.db.History(ctx, d.Company.ID, assetID, operation.PageRequest{Size: pageOfAll})
	script.Need(err)
	return all
}

// everyCommand calls see with each command of the company.
func (d *drill) everyCommand(ctx context.Context, see func(command.Command)) {
	all, _, err := d.db.Assets(ctx, asset.Query{Filter: asset.Filter{CompanyID: d.Company.ID}, Order: asset.ByCreatedAt,
		Page: operation.PageRequest{Size: pageOfAll}})
	script.Need(err)
	for _, a := range all {
		for _, c := range d.history(ctx, a.ID) {
			see(c)
		}
	}
}

// destroyed counts the devices that got a destructive command, or that a person let leave
// their assets: an asset in one enrollment is one device.
func (d *drill) destroyed(ctx context.Context) int {
	type device struct {
		asset string
		epoch int
	}
	hit := map[device]bool{}
	d.everyCommand(ctx, func(c command.Command) {
		if c.Type.Destructive() {
			hit[device{c.AssetID, c.Epoch}] = true
		}
	})
	_, managed := d.look(ctx)
	for _, a := range managed {
		for epoch := 1; epoch < a.Device.Epoch; epoch++ { // the demo enrolls no device twice
			hit[device{a.ID, epoch}] = true
		}
		codes := script.Must(d.db.Activity(ctx, activity.Filter{CompanyID: d.Company.ID, AssetID: a.ID, Action: activity.ProvisioningIssued,
			Outcome: activity.OK}, activity.Cursor{}, 1))
		if len(codes) > 0 && a.Device.Epoch == 1 { // else a code may be of an enrollment that counts above
			hit[device{a.ID, 1}] = true
		}
	}
	return len(hit)
}
