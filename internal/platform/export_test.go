package platform

import (
	"context"
	"time"

	"google.golang.org/api/pubsub/v1"
)

// PushDue is one round of Pushes. It returns how many policies were due, and how many the vendor took.
func (p *Platform) PushDue(ctx context.Context) (due, pushed int, err error) {
	return p.pushDue(ctx, "", upkeep)
}

// Strangers are the enterprises of other installations that were noted.
type Strangers struct{ strangers }

// Note reports whether an enterprise is to be noted at a time.
func (s *Strangers) Note(enterprise string, now time.Time) bool {
	_, due := s.note(enterprise, now)
	return due
}

// ReadNotification decodes a message and everything that is made of the device
// in it.
func ReadNotification(m *pubsub.PubsubMessage) (kind, subject string, report []byte, specs map[string]string, err error) {
	n, err := decode(m)
	if n.device != nil {
		report, specs = statusReport(n.device), specifications(n.device)
	}
	return n.kind, n.subject(), report, specs, err
}
