package agentserver_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/policy"
)

// The systemUpdate of a policy reaches its devices. A device owner holds it, and gives it
// up when the policy has it no more; a device that cannot says so, and is not compliant.
func TestPolicy_SystemUpdate(t *testing.T) {
	w := newWorld(t)
	save := func(text string) {
		t.Helper()
		current, err := w.policies.Current(t.Context(), w.company.ID, w.policy.ID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = w.policies.Save(t.Context(), w.company.ID, w.policy.ID, current.Version,
			policy.Edit{SystemUpdate: json.RawMessage(text)}, policy.Author{}); err != nil {
			t.Fatal(err)
		}
	}
	save(` {"endMinutes": 240, "type": "WINDOWED", "startMinutes": 120}`)
	plain, owner := w.enroll(protocol.ES256), w.owner()
	plain.mustCheckIn()
	owner.mustCheckIn()
	if got := owner.device.State().Settings[policy.SystemUpdateID]; got != `{"type":"WINDOWED","startMinutes":120,"endMinutes":240}` {
		t.Errorf("the owner holds %q", got)
	}
	statusReport := func(p *phone) string { return string(p.asset().Device.StatusReport) }
	if report := statusReport(plain); !strings.Contains(report, policy.SystemUpdateID) ||
		!strings.Contains(report, "it takes a device owner") {
		t.Errorf("a device that cannot reports %s", report)
	}
	if report := statusReport(owner); strings.Contains(report, policy.SystemUpdateID) {
		t.Errorf("the owner reports %s", report)
	}
	save(`{}`)
	owner.mustCheckIn()
	if got, has := owner.device.State().Settings[policy.SystemUpdateID]; has {
		t.Errorf("taken out of the policy, the owner holds %q", got)
	}
}

// owner enrolls a device whose agent is its device owner.
func (w *world) owner() *phone {
	w.t.Helper()
	p := w.enroll(protocol.ES256)
	_ = p.agent.Close()
	state := p.device.State()
	state.Form = simulated.Owner
	p.device = simulated.New(state, time.Now)
	p.options.Device = p.device
	var err error
	if p.agent, err = agent.New(p.options); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = p.agent.Close() })
	return p
}

// A setting that the document has as null is not set: no device is sent it.
func TestPolicy_NullSetting(t *testing.T) {
	w := newWorld(t)
	p := w.owner()
	if _, err := w.policies.Save(t.Context(), w.company.ID, w.policy.ID, w.policy.Version,
		policy.Edit{Document: json.RawMessage(`{"settings":{"CAMERA":null,"SCREEN_CAPTURE":"BLOCK"}}`)}, policy.Author{}); err != nil {
		t.Fatal(err)
	}
	p.mustCheckIn()
	if got := p.device.State().Settings; len(got) != 1 || got["SCREEN_CAPTURE"] != "BLOCK" {
		t.Errorf("the device holds %v", got)
	}
}
