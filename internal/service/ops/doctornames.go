package ops

import (
	"context"
	"fmt"

	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/policy"
)

// policyNames reports names from before the rules of names: each stays, but
// people may confuse it with another.
func (d *doctor) policyNames(ctx context.Context, db *database.DB) {
	const check = "policy names"
	odd, err := db.OddNames(ctx)
	if err != nil {
		d.note(check, Failed, "cannot read the policies' names: "+err.Error(), "repair the database")
		return
	}
	if len(odd) == 0 {
		d.note(check, Fine, "each can be told from the others", "")
		return
	}
	for _, n := range odd {
		detail := fmt.Sprintf("company %s, policy %s (%q)", n.Company, n.PolicyID, policy.ShownName(n.Name))
		if n.Wrong != "" {
			detail += ": its name " + n.Wrong
		}
		if n.LooksLike != "" {
			detail += ": its name looks like that of policy " + n.LooksLike
		}
		d.note(check, Warning, detail, "rename the policy in the portal")
	}
}
