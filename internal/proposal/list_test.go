package proposal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
)

// A summary names up to three settings, and counts more.
func TestSummary_CountsManySettings(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 0)
	var changes []policy.Change
	for i, setting := range []string{"CAMERA", "SMS", "BLUETOOTH", "DATA_ROAMING", "OUTGOING_CALLS"} {
		changes = append(changes, policy.Change{Setting: setting, Value: "BLOCK"})
		made, err := r.service.ProposeChanges(r.Context(), r.key("k"), p.ID, changes)
		r.ok(err)
		counted := fmt.Sprintf("changes %d settings", i+1)
		if got := strings.Contains(made.Summary, counted); got != (i >= 3) {
			t.Errorf("%d settings: %q", i+1, made.Summary)
		}
	}
}

// A summary says what the settings that change do to devices.
func TestSummary_Warnings(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 1, set("VENDOR_STORE_MODE", "BLACKLIST")...)
	for setting, test := range map[string]struct{ to, want string }{
		"VENDOR_STORE_MODE": {"WHITELIST", "uninstall every app"},
		"CONFIGURE_WIFI":    {"BLOCK", "may become unreachable"},
	} {
		t.Run(setting, func(t *testing.T) {
			if made := r.propose(p, setting, test.to); !strings.Contains(made.Summary, test.want) || strings.Count(made.Summary, ". ") > 0 {
				t.Errorf("%s: %q", setting, made.Summary)
			}
		})
	}
	other := r.newPolicy("Other", 1, set("VENDOR_STORE_MODE", "WHITELIST")...)
	for _, made := range []proposal.Proposal{r.propose(p, "CONFIGURE_WIFI", "ALLOW"), r.propose(other, "VENDOR_STORE_MODE", "BLACKLIST")} {
		if strings.Contains(made.Summary, ";") {
			t.Errorf("%q", made.Summary)
		}
	}
}

// A rollback names up to eight members of a document that no setting names, and counts more.
func TestSummary_CountsManyMembers(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 0)
	for base, c := range []struct {
		members int
		want    string
	}{
		{8, "no setting names: m1, m2, m3, m4, m5, m6, m7 and m8."},
		{9, "no setting names: m1, m2, m3, m4, m5, m6, m7 and 2 more."},
	} {
		var members []string
		for i := range c.members {
			members = append(members, fmt.Sprintf(`"m%d":1`, i+1))
		}
		p.Document = []byte("{" + strings.Join(members, ",") + "}")
		_, err := r.db.SavePolicy(r.Context(), p, base+1, policy.Revision{SavedAt: r.clock.Now()})
		r.ok(err)
		made, err := r.service.ProposeRollback(r.Context(), r.key("k"), p.ID, 1)
		r.ok(err)
		if !strings.HasSuffix(made.Summary, c.want) {
			t.Errorf("%d members: %q", c.members, made.Summary)
		}
	}
}

// People see 50 proposals unless they ask for another number.
func TestReview_ListLimits(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p, other := r.newPolicy("Warehouse", 0), r.newPolicy("Office", 0)
	for range 51 {
		r.propose(p, "CAMERA", "BLOCK")
	}
	reviewer := proposal.Reviewer{Service: r.service, Store: r.db}
	person := access.Principal{Kind: access.User, ID: "u1", CompanyID: r.company.ID,
		Permissions: access.PoliciesRead | access.PoliciesWrite}
	for limit, want := range map[int]int{-1: 50, 0: 50, 1: 1, 50: 50, 51: 51, 1000: 51} {
		all, err := reviewer.List(r.Context(), person, proposal.Query{Limit: limit})
		if err != nil || len(all) != want {
			t.Errorf("limit %d: %d proposals, %v, want %d", limit, len(all), err, want)
		}
	}
	person.Policies = []string{other.ID}
	if all, err := reviewer.List(r.Context(), person, proposal.Query{}); err != nil || len(all) != 0 {
		t.Errorf("of a person limited to another policy: %d, %v", len(all), err)
	}
	person.Permissions = access.PoliciesRead
	_, err := reviewer.List(r.Context(), person, proposal.Query{})
	r.code(fault.Forbidden, err)
}
