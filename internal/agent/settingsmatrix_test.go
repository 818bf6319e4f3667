package agent_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/policy"
)

// matrixFile is what every setting with every value comes to on a device owner,
// and what a device owner can do.
const matrixFile = "../../android/test/settings.tsv"

// TestSettings_Golden: the Android app's tests hold the app to this table on
// the framework of the same API levels. Each line: setting=value, state, detail, and
// the machines on which it is so.
func TestSettings_Golden(t *testing.T) {
	t.Parallel()
	lines := []string{"# Written by internal/agent.TestSettings_Golden -update."}
	for _, s := range agentSettings() {
		for _, value := range append(slices.Clone(s.Allowed), "") {
			var outcomes []string
			where := map[string][]string{}
			for _, m := range ownerMachines() {
				r := agent.ApplyTo(t.Context(), simulated.New(m.state(), time.Now), s.ID, value)
				outcome := fmt.Sprintf("%s=%s\t%s\t%s", s.ID, value, r.State, r.Detail)
				if where[outcome] == nil {
					outcomes = append(outcomes, outcome)
				}
				where[outcome] = append(where[outcome], m.name())
			}
			for _, outcome := range outcomes {
				lines = append(lines, outcome+"\t"+strings.Join(where[outcome], " "))
			}
		}
	}
	var everywhere []string
	for _, m := range ownerMachines() {
		everywhere = append(everywhere, m.name())
	}
	can, err := simulated.New(ownerMachines()[0].state(), time.Now).Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lines = append(lines, fmt.Sprintf("CAPABILITIES=\t%s\t\t%s", strings.Trim(fmt.Sprint(can), "[]"), strings.Join(everywhere, " ")))
	text := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(matrixFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(matrixFile); err != nil || string(got) != text {
		t.Errorf("%s is another (%v): run the test with -update, and see that the app agrees", matrixFile, err)
	}
}

// ownerMachines are the devices on which the app's tests run.
func ownerMachines() (all []machine) {
	for _, sdk := range []int{28, 33, 35} {
		m := machine{sdk: sdk, form: simulated.Owner}
		tablet, headset, bare := m, m, m
		tablet.tablet, headset.tablet, headset.headset, bare.noVerifier = true, true, true, true
		all = append(all, m, tablet, headset, bare)
	}
	return all
}

func (m machine) name() string {
	kind := "phone"
	switch {
	case m.headset:
		kind = "headset"
	case m.tablet:
		kind = "tablet"
	case m.noVerifier:
		kind = "noverifier"
	}
	return fmt.Sprintf("%s%d", kind, m.sdk)
}

// agentSettings are the settings of the catalog, and the systemUpdate of AGENT policies
// with some of its values.
func agentSettings() []policy.Setting {
	return append(policy.Catalog(), policy.Setting{ID: policy.SystemUpdateID, Allowed: []string{
		policy.SystemUpdate{Type: policy.Automatic}.Value(),
		policy.SystemUpdate{Type: policy.Windowed, StartMinutes: new(1380), EndMinutes: new(0)}.Value(),
		policy.SystemUpdate{Type: policy.Postpone, FreezePeriods: []policy.FreezePeriod{
			{StartDate: policy.Day{Month: 11, Day: 20}, EndDate: policy.Day{Month: 1, Day: 3}},
			{StartDate: policy.Day{Month: 4, Day: 1}, EndDate: policy.Day{Month: 4, Day: 30}}}}.Value(),
	}})
}
