package company

import (
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/phrase"
)

// Undecidable says which rules of a company ask for the decision of a person although
// none of its users may decide now, or only for some callers; empty: each can be met.
func Undecidable(c Company, people []access.Approver, now time.Time) (all []string) {
	controls := c.Settings.Controls
	for _, rule := range []struct {
		on    bool
		name  string
		needs access.Permission
		right string
	}{
		{controls.ApplyApproval != access.ApproveNone, "the approval of policy changes (--apply-approval)",
			access.PoliciesRead | access.PoliciesWrite, "change policies"},
		{controls.DestructiveApproval, "the authorization of destructive commands (--destructive-approval)",
			access.DevicesRead | access.DevicesCommandDestructive, "send destructive commands"},
	} {
		if !rule.on {
			continue
		}
		var able []access.Approver
		reason := "the company has no user"
		for _, person := range people {
			err := person.May(access.Matter{Needs: rule.needs}, controls, now)
			if err == nil {
				able = append(able, person)
			} else {
				reason = fmt.Sprintf("of %s, none is enabled, may %s and has a passkey, each for longer than the approver age (%s)",
					phrase.Count(len(people), "user", "users"), rule.right, phrase.Span(controls.ApproverAge))
			}
		}
		switch {
		case len(able) == 0:
			all = append(all, rule.name+" is on, and no user can decide: "+reason)
		case len(able) == 1 && controls.SecondPerson:
			all = append(all, fmt.Sprintf("%s is on with --second-person, and %s alone can decide: no user can decide what that user's "+
				"own connections and keys ask for", rule.name, able[0].Name))
		}
	}
	return all
}
