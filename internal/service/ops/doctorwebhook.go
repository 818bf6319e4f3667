package ops

import (
	"context"
	"fmt"

	"github.com/musterhq/muster/internal/database"
)

// webhooks reports webhooks that the service disabled, without their addresses.
func (d *doctor) webhooks(ctx context.Context, db *database.DB) {
	const check = "webhooks"
	stopped, err := db.DisabledWebhooks(ctx)
	if err != nil {
		d.note(check, Failed, "cannot read them: "+err.Error(), "repair the database")
		return
	}
	for _, w := range stopped {
		d.note(check, Warning, fmt.Sprintf("company %s: the webhook %s to %s is disabled: %s", w.CompanySlug, w.ID, w.Host(), w.Why),
			fmt.Sprintf("correct the receiver, then run `muster webhook enable --company %s %s`, or delete the webhook",
				w.CompanySlug, w.ID))
	}
}
