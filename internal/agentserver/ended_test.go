package agentserver_test

import (
	"context"
	"errors"
	"testing"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/command"
)

// unwilling is a device that refuses what ends an enrollment while refuses is set.
type unwilling struct {
	agent.Device
	refuses bool
}

var errNotNow = errors.New("not now")

func (d *unwilling) Do(ctx context.Context, a agent.Action) (string, error) {
	if d.refuses && (a.Type == agent.Erase || a.Type == agent.LetGo) {
		return "", errNotNow
	}
	return d.Device.Do(ctx, a)
}

// What the system refuses at the end of an enrollment is tried again with each check-in: a device that
// was not erased, or still has the settings of its policy, is not one that has ended.
func TestTombstone_TriedUntilItIsDone(t *testing.T) {
	for name, wipes := range map[string]bool{"an erase": true, "a release": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := w.enroll(protocol.Ed25519)
			p.mustCheckIn()
			device := &unwilling{Device: p.options.Device, refuses: true}
			p.options.Device = device
			p.start()
			end := p.checkIn
			if wipes { // a device that leaves with an open wipe is told to erase itself
				p.send(command.WipeCompanyData, nil)
				end = func() error { return p.agent.Unenroll(t.Context()) }
			} else {
				d, err := w.db.AgentDevice(t.Context(), p.agent.DeviceID())
				if err == nil {
					err = w.link.Unenroll(t.Context(), d)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if err := end(); !errors.Is(err, errNotNow) || errors.Is(err, agent.ErrEnded) {
					t.Fatalf("while it is refused: %v, want that it fails", err)
				}
			}
			device.refuses = false
			if err := end(); err != nil && !errors.Is(err, agent.ErrEnded) {
				t.Errorf("once it is not: %v, want that the enrollment has ended", err)
			}
			if s := p.device.State(); s.Wiped != wipes || s.Settings["CAMERA"] != "" && !wipes {
				t.Errorf("the device is %+v", s)
			}
		})
	}
}
