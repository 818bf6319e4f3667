package platform

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	androidmanagement "google.golang.org/api/androidmanagement/v1"
	"google.golang.org/api/pubsub/v1"
)

// The kinds of notification that say something to us.
const (
	kindEnrollment   = "ENROLLMENT"
	kindStatusReport = "STATUS_REPORT"
	kindCommand      = "COMMAND"
	kindUsageLogs    = "USAGE_LOGS"
	kindOther        = "OTHER" // tests, upgrades, and what the vendor may invent
)

// notification is one message of the platform, decoded. One of the pointers is
// set unless the kind is kindOther.
type notification struct {
	id        string
	kind      string
	named     string // the kind in the vendor's word, for the log
	published time.Time
	device    *androidmanagement.Device
	operation *operation
	usage     *androidmanagement.BatchUsageLogEvents
}

// subject is the name of the device that the notification is about.
func (n *notification) subject() string {
	switch {
	case n.device != nil:
		return n.device.Name
	case n.operation != nil:
		return n.operation.device()
	case n.usage != nil:
		return n.usage.Device
	}
	return ""
}

var errNoMessage = errors.New("no message")

// decode reads a message. An error means that it will never be readable. The
// kind and the time are known even then, where the message has them.
func decode(m *pubsub.PubsubMessage) (notification, error) {
	if m == nil {
		return notification{kind: kindOther}, errNoMessage
	}
	n := notification{id: m.MessageId, published: instant(m.PublishTime), named: oneLine(m.Attributes["notificationType"])}
	n.kind = kindOf(n.named)
	if n.kind == kindOther {
		return n, nil
	}
	if n.published.IsZero() {
		return n, errors.New("no time of publishing")
	}
	data, err := base64.StdEncoding.DecodeString(m.Data)
	if err != nil {
		return n, fmt.Errorf("its data is not base64: %w", err)
	}
	if err := n.read(data); err != nil {
		return n, err
	}
	if !isDevice(n.subject()) || n.operation != nil && !isName(n.operation.Name) {
		return n, errors.New("it names no device")
	}
	return n, nil
}

func kindOf(vendor string) string {
	switch k := strings.ToUpper(vendor); k {
	case kindEnrollment, kindStatusReport, kindCommand, kindUsageLogs:
		return k
	}
	return kindOther
}

func (n *notification) read(data []byte) error {
	var err error
	switch n.kind {
	case kindEnrollment, kindStatusReport:
		n.device = &androidmanagement.Device{}
		err = json.Unmarshal(data, n.device)
	case kindCommand:
		var o androidmanagement.Operation
		err = json.Unmarshal(data, &o)
		read := readOperation(&o)
		n.operation = &read
	case kindUsageLogs:
		n.usage = &androidmanagement.BatchUsageLogEvents{}
		err = json.Unmarshal(data, n.usage)
	}
	if err != nil {
		return fmt.Errorf("its data cannot be read: %w", err)
	}
	return nil
}
