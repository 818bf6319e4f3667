package service

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/platform"
)

// outages watch the two services of the platform, each by its own calls: while one fails,
// the calls of the other succeed.
type outages struct{ management, notifications *event.Outage }

func newOutages(store event.OutageStore, now func() time.Time) outages {
	return outages{&event.Outage{Store: store, Now: now}, &event.Outage{Store: store, Now: now}}
}

// Look tells an outage of either service that has lasted.
func (o outages) Look(ctx context.Context) error {
	return errors.Join(o.management.Look(ctx), o.notifications.Look(ctx))
}

// called notes how a call of the platform ended. What acknowledges notifications says
// nothing: it is called only after a pull that succeeded. A device or token that does not
// exist says nothing about the platform either; a subscription that does not exist is an
// outage, for no notification comes.
func (o outages) called(method, class string) {
	if !strings.HasPrefix(method, "pubsub.") {
		if class != string(outcome.Missing) {
			o.management.Called(class == platform.Succeeded)
		}
		return
	}
	if !strings.HasSuffix(method, ".acknowledge") && !strings.HasSuffix(method, ".modifyAckDeadline") {
		o.notifications.Called(class == platform.Succeeded)
	}
}

// watched is what observes the calls of the platform.
type watched struct {
	platform.Observer
	outages outages
}

// VendorCall implements platform.Observer.
func (o watched) VendorCall(method, class string, took time.Duration) {
	o.Observer.VendorCall(method, class, took)
	o.outages.called(method, class)
}
