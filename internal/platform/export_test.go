package platform

import "google.golang.org/api/pubsub/v1"

// ReadNotification decodes a message and everything that is made of the device
// in it.
func ReadNotification(m *pubsub.PubsubMessage) (kind, subject string, report []byte, specs map[string]string, err error) {
	n, err := decode(m)
	if n.device != nil {
		report, specs = statusReport(n.device), specifications(n.device)
	}
	return n.kind, n.subject(), report, specs, err
}
