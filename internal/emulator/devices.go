package emulator

import (
	"fmt"
	"slices"
	"unicode/utf8"

	am "google.golang.org/api/androidmanagement/v1"
)

// findDevice finds the device that a call names.
func findDevice(e *Emulator, c *call, n *enterprise) (*simulated, error) {
	d := e.world.byDevice[c.segment(3)]
	switch {
	case d != nil && d.owner == n && !d.Deleted:
		return d, nil
	case e.settings.Quirks.EntityNotFoundAs500:
		return nil, fail(500, "Requested entity was not found.")
	}
	return nil, notFound()
}

func getDevice(e *Emulator, _ *call, _ *enterprise, d *simulated) (any, error) {
	return e.resource(d), nil
}

func listDevices(e *Emulator, c *call, n *enterprise) (any, error) {
	known := slices.DeleteFunc(slices.Clone(n.Devices), func(d *simulated) bool { return d.Deleted })
	part, next, err := page(c, known, func(d *simulated) string { return fmt.Sprintf("%020d", d.Seq) },
		e.resource, 10, 100)
	return &am.ListDevicesResponse{Devices: part, NextPageToken: next}, err
}

// patchDevice changes what may be changed of a device: its policy and whether it
// is disabled.
func patchDevice(e *Emulator, c *call, n *enterprise, d *simulated) (any, error) {
	want := &am.Device{}
	if err := fromTree(c.body, want); err != nil {
		return nil, err
	}
	fields, err := e.deviceMask(c, want)
	if err != nil {
		return nil, err
	}
	policyID, state := d.PolicyID, d.State
	if fields["policyName"] {
		if policyID, err = e.resolvePolicy(n, want.PolicyName); err != nil {
			return nil, err
		}
	}
	if fields["state"] {
		if state = want.State; state != "ACTIVE" && state != "DISABLED" {
			return nil, invalid("Device state can only be set to ACTIVE or DISABLED.")
		}
	}
	if fields["disabledReason"] {
		d.Disabled = want.DisabledReason
	}
	changed := policyID != d.PolicyID || state != d.State
	d.PolicyID = policyID
	e.touch()
	if changed {
		d.State = state
		e.schedulePolicy(d, true)
	}
	return e.resource(d), nil
}

// deviceMask gives the members that a patch is to change.
func (e *Emulator) deviceMask(c *call, want *am.Device) (map[string]bool, error) {
	mask := c.query.Get("updateMask")
	if mask == "" { // all that can be modified; a state has no default to go back to
		return map[string]bool{"policyName": true, "disabledReason": true, "state": want.State != ""}, nil
	}
	paths, err := parseMask(e.management, "Device", mask)
	if err != nil {
		return nil, err
	}
	fields := map[string]bool{}
	for _, path := range paths {
		if !slices.Contains([]string{"policyName", "state", "disabledReason"}, path[0]) {
			return nil, invalid("Invalid value at 'update_mask': %q cannot be modified.", path[0])
		}
		fields[path[0]] = true
	}
	return fields, nil
}

// deleteDevice makes the platform forget a device. The device wipes itself when
// it hears of it.
func deleteDevice(e *Emulator, c *call, _ *enterprise, d *simulated) (any, error) {
	if utf8.RuneCountInString(c.query.Get("wipeReasonMessage")) > maxWipeReason {
		return nil, invalid("Wipe reason message must be at most %d characters long.", maxWipeReason)
	}
	d.Deleted = true
	d.Operations = nil
	e.touch()
	e.after(d.latency(), func() { e.finishDeletion(d, &outbox{}) })
	return empty{}, nil
}

// finishDeletion makes a deleted device that is connected wipe itself and send
// its last report.
func (e *Emulator) finishDeletion(d *simulated, out *outbox) {
	if e.world.byDevice[d.ID] != d || !d.Deleted || !d.acts() {
		return
	}
	e.report(d, out)
	e.forget(d)
}
