package adb

import (
	"cmp"
	"context"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Device is a device as adb lists it.
type Device struct {
	Serial string
	State  State
}

// State is adb's word for the state of a device.
type State string

// The states that matter here; adb has more.
const (
	Online        State = "device"
	Unauthorized  State = "unauthorized"
	Authorizing   State = "authorizing"
	Offline       State = "offline"
	NoPermissions State = "no permissions" // of this machine's user, to the USB port
)

// serialForm is the form of a serial number that adb does not take for an option. The
// device chooses its serial number.
var serialForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@()+/-]{0,127}$`)

// Devices lists the devices that are connected.
func (c Client) Devices(ctx context.Context) ([]Device, error) {
	out, _, err := c.call(ctx, nil, "devices")
	return ParseDevices(out), err
}

// Track calls changed with the list of devices, and again whenever it changes,
// until ctx ends or changed fails.
func (c Client) Track(ctx context.Context, changed func([]Device) error) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	cmd, err := c.command(running, "track-devices")
	if err != nil {
		return err
	}
	var output limited
	cmd.Stderr = &output
	lists, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	end := sync.OnceFunc(func() {
		stop()
		_ = cmd.Wait() // it was killed, or the error is known
	})
	defer end()
	for {
		text, err := readList(lists)
		if err != nil {
			end() // after this, all that adb wrote is there
			return c.reason(ctx, errors.New("it stopped listing devices: was the adb server stopped?"), output.kept.String())
		}
		if err := changed(ParseDevices(text)); err != nil {
			return err
		}
	}
}

// readList reads one list of track-devices: four hexadecimal digits of its length,
// then that many bytes.
func readList(r io.Reader) (string, error) {
	var digits [4]byte
	if _, err := io.ReadFull(r, digits[:]); err != nil {
		return "", err
	}
	length, err := strconv.ParseUint(string(digits[:]), 16, 16)
	if err != nil {
		return "", err
	}
	text := make([]byte, length)
	_, err = io.ReadFull(r, text)
	return string(text), err
}

// ParseDevices reads adb's list. It leaves out a line that does not name a device in
// a form that can be an argument, such as the heading.
func ParseDevices(text string) (all []Device) {
	for line := range strings.Lines(text) {
		serial, state, found := strings.Cut(strings.TrimSpace(line), "\t")
		if !found || !serialForm.MatchString(serial) {
			continue
		}
		state = strings.TrimSpace(state)
		word, _, _ := strings.Cut(state, " ")
		if strings.HasPrefix(state, string(NoPermissions)) {
			word = string(NoPermissions)
		}
		all = append(all, Device{serial, State(cmp.Or(clean(word), "unknown"))})
	}
	return all
}
