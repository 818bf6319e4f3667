package platform_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/fault"
)

// Whether a device still uses its policy is not known while a move to another may have
// reached it: the move back is sent.
func TestChangePolicy_BackAfterAnUnknownOutcome(t *testing.T) {
	connected(t, func(b *bench) {
		a := b.device()
		first := command.PolicyRef(a.Device.PolicyID)
		_, err := b.command(a, command.ChangePolicy, first)
		b.equal("to its own policy", fault.CodeOf(err), fault.Unsupported)
		next := b.newPolicy("Kiosk", `{"cameraAccess":"CAMERA_ACCESS_DISABLED"}`)
		b.fault(emulator.Fault{Method: "devices.patch", DropConnection: true, AfterEffect: true})
		moved, err := b.command(a, command.ChangePolicy, command.PolicyRef(next.ID))
		b.ok(err)
		b.equal("moved", moved.Status, "UNCONFIRMED")
		b.pass(time.Millisecond)
		back, err := b.command(a, command.ChangePolicy, first)
		b.ok(err)
		b.equal("moved back", back.Status, "IN_PROGRESS")
		b.pass(time.Minute)
		b.equal("ends", []command.State{b.history(a)[0].State, b.history(a)[1].State}, []command.State{command.Succeeded, command.Failed})
		_, err = b.command(a, command.ChangePolicy, first)
		b.equal("to its own policy again", fault.CodeOf(err), fault.Unsupported)
	})
}
