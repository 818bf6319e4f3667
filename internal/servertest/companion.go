package servertest

import (
	"log/slog"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/company"
)

// Companion is the service's app on a platform device: the agent's own core,
// woken by the emulator's push service.
type Companion struct {
	*agent.Agent
	Device *simulated.Device
	Token  string // of the push service
}

// CompanionToken makes a token for the companion of an asset.
func (e *Env) CompanionToken(c company.Company, assetID string) string {
	e.TB.Helper()
	a, err := e.DB().Asset(e.TB.Context(), c.ID, assetID)
	need(e.TB, err)
	token, _, err := agentdevice.Companions{Store: e.DB(), Now: e.Now}.Issue(e.TB.Context(), c.ID, a.ID, a.Device.Epoch)
	need(e.TB, err)
	return token
}

// Companion enrolls a companion on a platform device and checks in once.
func (r *Replica) Companion(c company.Company, d Device) *Companion {
	tb := r.env.TB
	tb.Helper()
	device := simulated.New(simulated.Default("companion"), r.env.Now)
	push := simulated.Push{Device: device, Emulator: r.env.Emulator.URL(), Client: agent.NewClient()}
	options := agent.Options{Dir: tb.TempDir(), Version: "test", Device: device, Push: push, Client: agent.NewClient(), Now: r.env.Now,
		Log: slog.New(slog.DiscardHandler)}
	_, err := agent.Enroll(tb.Context(),
		agent.Enrollment{Options: options, Server: r.PublicURL(), Token: r.env.CompanionToken(c, d.AssetID), Role: protocol.Companion})
	need(tb, err)
	a, err := agent.New(options)
	need(tb, err)
	tb.Cleanup(func() { _ = a.Close() })
	_, err = a.Once(tb.Context())
	need(tb, err)
	return &Companion{a, device, device.State().PushToken}
}
