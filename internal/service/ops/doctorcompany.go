package ops

import (
	"context"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/platform"
)

// deciders reports rules that ask for a person although no user may decide.
func (d *doctor) deciders(ctx context.Context, db *database.DB) {
	const check = "approval rules"
	companies, err := db.Companies(ctx)
	if err != nil {
		d.note(check, Failed, "cannot read the companies: "+err.Error(), "repair the database")
		return
	}
	for _, c := range companies {
		people, err := db.Approvers(ctx, c.ID)
		if err != nil {
			d.note(check, Failed, "cannot read the users: "+err.Error(), "repair the database")
			return
		}
		for _, rule := range company.Undecidable(c, people, d.now()) {
			d.note(check, Warning, "company "+c.Slug+": "+rule,
				"let a user with that right add a passkey, or switch the rule off with `muster company set`")
		}
	}
}

// foreign reports notifications of enterprises that no company here has.
func (d *doctor) foreign(ctx context.Context, db *database.DB) {
	const check = "foreign notifications"
	found, err := db.ForeignEnterprises(ctx, d.now())
	if err != nil {
		d.note(check, Failed, "cannot read what was noted of them: "+err.Error(), "repair the database")
		return
	}
	for _, f := range found {
		d.note(check, Warning, fmt.Sprintf("notifications of %s come to this subscription, and no company here has that enterprise (the "+
			"last at %s): another installation uses the subscription or its topic", f.Enterprise, f.Last.UTC().Format(time.RFC3339)),
			"give each installation a topic and a subscription of its own (MUSTER_PLATFORM_SUBSCRIPTION), then `muster company connect` "+
				"each company again")
	}
}

// companies asks the platform for each company's enterprise.
func (d *doctor) companies(ctx context.Context, db *database.DB) {
	if !d.reached {
		return // its own finding says why
	}
	settings := PlatformConfig(d.settings.Platform, d.now)
	settings.Stores = platform.Stores{Companies: db, Enterprises: db}
	adapter, err := platform.New(settings)
	if err != nil {
		return // as above
	}
	ctx, cancel := context.WithTimeout(ctx, 4*platformPatience)
	defer cancel()
	for _, f := range adapter.ProbeCompanies(ctx) {
		d.graded(f)
	}
}

// backupAge is how old the last backup may be.
const backupAge = 7 * 24 * time.Hour

// backedUp looks when an embedded database was backed up by its own command.
func (d *doctor) backedUp(ctx context.Context, db *database.DB) {
	if _, embedded := d.settings.SQLitePath(); !embedded {
		return
	}
	const check, remedy = "backup", "run `muster backup FILE` each day, and keep its files and the key file elsewhere"
	switch made, err := db.BackedUp(ctx); {
	case err != nil:
		d.note(check, Failed, "cannot read when the last was made: "+err.Error(), "repair the database")
	case made.IsZero():
		d.note(check, Warning, "none was made with muster backup", remedy)
	case d.now().Sub(made) > backupAge:
		d.note(check, Warning, "the last was made at "+made.Format(time.RFC3339), remedy)
	default:
		d.note(check, Fine, "the last was made at "+made.Format(time.RFC3339), "")
	}
}

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
