package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/usb"
)

// A headset whose agent lost its identity takes a bundle again. It asks an administrator, also
// after it was switched off, and comes back as its asset.
func TestUSB_HeadsetLostItsIdentity(t *testing.T) {
	t.Parallel()
	headset := servertest.NewHeadset(t, "VR-1", true)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the agent said:\n%s", headset.Log())
		}
	})
	c := newCable(t, headset)
	results, err := c.usb()
	if err != nil {
		t.Fatal(err)
	}
	id := c.serves(t, results["VR-1"])
	headset.Restart(func() error {
		return os.WriteFile(filepath.Join(headset.Dir, "data/muster/identity.json"), []byte("{"), 0o600)
	})
	c.Eventually("the headset takes a bundle", func() error {
		if p := headset.Properties(); p["debug.muster.agent"] != "ready" {
			return fmt.Errorf("%v", p)
		}
		return nil
	})
	for _, run := range []string{"with the bundle", "again"} {
		if results, err = c.usb("--wait", "5s"); results["VR-1"].Outcome != usb.Asking {
			t.Fatalf("%s: %+v, %v", run, results, err)
		}
	}
	headset.Restart(func() error { // while it is off, it is confirmed
		waiting, err := c.tenant.DB().EnrollmentRequests(t.Context(), c.tenant.Company.ID, id)
		if err != nil || len(waiting) != 1 {
			return fmt.Errorf("%d devices ask: %w", len(waiting), err)
		}
		return c.tenant.DB().ConfirmRequest(t.Context(), c.tenant.Company.ID, waiting[0].ID,
			access.Replacement{MayDestroy: true, Named: true})
	})
	c.Eventually("the headset is back", func() error {
		if results, err = c.usb(); results["VR-1"].Outcome != usb.AlreadyEnrolled {
			return fmt.Errorf("%+v, %w", results, err)
		}
		return nil
	})
	if back := c.serves(t, results["VR-1"]); back != id {
		t.Errorf("it came back as asset %s, want %s", back, id)
	}
	noTraces(t, headset)
}
