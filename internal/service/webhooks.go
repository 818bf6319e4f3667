package service

import (
	"net/netip"
	"time"

	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/webhook"
)

// webhookService is what administrators do with webhooks, in the portal and on the command
// line.
func webhookService(db *database.DB, sealer webhook.Sealer, networks []netip.Prefix, now func() time.Time) webhook.Service {
	return webhook.Service{Store: db, Sealer: sealer, Sender: webhook.NewSender(networks, nil), Networks: networks, Now: now}
}

// webhookLoop sends events to webhooks. It is woken when events got their positions.
func (w *wiring) webhookLoop() Loop {
	runner := webhook.NewRunner(webhook.Config{Queue: w.db, Sender: w.webhooks.Sender, Sealer: w.keys, Observer: w.metrics,
		Slots: w.shares.Webhooks(), Now: w.db.Now, Log: w.options.Logger})
	w.listen(event.Topic, runner.Wake)
	return Loop{Name: "webhooks", Run: runner.Run}
}
