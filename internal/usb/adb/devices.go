package adb

import (
	"context"
	"regexp"
	"strings"
)

// Device is a device as the server lists it.
type Device struct {
	Serial string
	State  State
}

// State is what the server says of a device.
type State string

// The states that matter here; the server has more words.
const (
	Online        State = "device"
	Unauthorized  State = "unauthorized"
	Authorizing   State = "authorizing"
	Offline       State = "offline"
	NoPermissions State = "no permissions" // of this machine's user, to the USB port
)

// serialForm is what a request may name without being mistaken for something
// else. It is the device that says what it is called.
var serialForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@()+/-]{0,127}$`)

// Devices lists the devices that are connected.
func (s Server) Devices(ctx context.Context) ([]Device, error) {
	text, err := s.query(ctx, "host:devices-l")
	return ParseDevices(text), err
}

// Track calls changed with the list of devices, and again whenever it changes,
// until ctx ends or changed fails.
func (s Server) Track(ctx context.Context, changed func([]Device) error) error {
	l, err := s.open(ctx, "host:track-devices")
	if err != nil {
		return err
	}
	defer l.close()
	for {
		text, err := l.text()
		if err != nil {
			return l.reason(err)
		}
		if err := changed(ParseDevices(text)); err != nil {
			return err
		}
	}
}

// ParseDevices reads the server's list, of either form. A line that does not
// name a device in a form that can be asked for is left out.
func ParseDevices(text string) (all []Device) {
	for line := range strings.Lines(text) {
		serial, rest, found := strings.Cut(strings.TrimSpace(line), "\t")
		if !found {
			serial, rest, found = strings.Cut(strings.TrimSpace(line), " ")
		}
		if rest = strings.TrimSpace(rest); !found || rest == "" || !serialForm.MatchString(serial) {
			continue
		}
		state, _, _ := strings.Cut(rest, " ")
		if strings.HasPrefix(rest, string(NoPermissions)) {
			state = string(NoPermissions)
		}
		all = append(all, Device{serial, State(clean(state))})
	}
	return all
}
