package demo

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/logfile"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/script"
)

// device is a device with Muster's own agent.
type device struct {
	dir   string // below the demo's directory
	facts protocol.Facts
	form  simulated.Form
	// phone and headset say what the machine is.
	phone   bool
	headset bool
	fix     *protocol.Location // nil: it has no way to find out
	battery int
}

// gadgets are some of them under one policy.
type gadgets struct {
	policy policy.New
	all    []device
}

// unmanaged are the demo's devices that no vendor's platform manages.
func unmanaged() []gadgets {
	return []gadgets{
		{policy.New{Name: "Kiosk", Type: policy.Agent,
			Changes: []policy.Change{{Setting: "CAMERA", Value: "BLOCK"}, {Setting: "FACTORY_RESET", Value: "BLOCK"},
				{Setting: "REPORT_HARDWARE_STATUS", Value: "ENABLED"}, {Setting: "REPORT_SOFTWARE_INFO", Value: "ENABLED"},
				{Setting: "APPLICATION_REPORT_LEVEL", Value: "INSTALLED_APPS"}}},
			[]device{
				{"kiosk-1", protocol.Facts{SerialNumber: "K22-00417", Manufacturer: "Elo", Brand: "elo", Model: "I-Series 4",
					SDK: 33, OSVersion: "13"},
					simulated.System, false, false, &protocol.Location{Latitude: 52.5251, Longitude: 13.3694, AccuracyMeters: 40}, 100},
				{"kiosk-2", protocol.Facts{SerialNumber: "K22-00418", Manufacturer: "Elo", Brand: "elo", Model: "I-Series 4",
					SDK: 33, OSVersion: "13"},
					simulated.System, false, false, &protocol.Location{Latitude: 48.1402, Longitude: 11.5600, AccuracyMeters: 40}, 100},
				{"handheld", protocol.Facts{SerialNumber: "RG-7H31C", Manufacturer: "Unitech", Brand: "unitech", Model: "EA660",
					SDK: 33, OSVersion: "13"},
					simulated.Owner, true, false, &protocol.Location{Latitude: 53.5438, Longitude: 9.9886, AccuracyMeters: 9}, 64},
			}},
		{policy.New{Name: "Training headsets", Type: policy.Agent, VROnly: true,
			Changes: []policy.Change{{Setting: "SCREEN_CAPTURE", Value: "BLOCK"}, {Setting: "UNINSTALL_APPS", Value: "BLOCK"}}},
			[]device{
				{"headset-1", protocol.Facts{SerialNumber: "PA9410-118", Manufacturer: "Pico", Brand: "Pico", Model: "PICO 4 Enterprise",
					SDK: 29, OSVersion: "10"},
					simulated.Owner, false, true, nil, 81},
				{"headset-2", protocol.Facts{SerialNumber: "FA3C2-5570", Manufacturer: "HTC", Brand: "htc", Model: "VIVE Focus 3",
					SDK: 29, OSVersion: "10"},
					simulated.Owner, false, true, nil, 37},
			}},
	}
}

// runAgents enrolls the devices with our own agent that are missing, and has
// every one of them live until ctx ends; d.agents waits for them.
func (f *filler) runAgents(ctx context.Context) {
	for _, group := range unmanaged() {
		p := f.policy(ctx, group.policy)
		for _, g := range group.all {
			script.Within(g.facts.Model, func() { f.runAgent(ctx, p, g) })
		}
	}
}

// runAgent enrolls a device as the USB tool or a scanned code would have it do.
func (f *filler) runAgent(ctx context.Context, p policy.Policy, g device) {
	dir := filepath.Join(f.settings.Data, "agents", g.dir)
	device := script.Must(simulated.Open(dir, g.state(), f.now))
	if s := device.State(); s.Wiped || s.Released {
		return // released on purpose: so it stays
	}
	client := agent.NewClient()
	client.Transport = here{host: f.service.Addr().String(), base: client.Transport}
	kept := logfile.Open(filepath.Join(dir, agent.LogFile))
	options := agent.Options{Dir: dir, Version: "demo", Device: device, Client: client, Now: f.now,
		Log: slog.New(slog.NewMultiHandler(f.log.Handler(), slog.NewTextHandler(kept, nil))), Kept: kept}
	script.Need(simulated.Live(ctx, &f.agents, options, f.service.PublicURL(), func() (string, error) {
		f.say("Enrolling a device with its own agent under “%s” …", p.Name)
		return f.running().AgentToken(ctx, p)
	}))
}

// here reaches the service where it is now: a demo may be started again on
// another address.
type here struct {
	host string
	base http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (h here) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = "http", h.host
	return h.base.RoundTrip(r)
}

func (g device) state() simulated.State {
	s := simulated.Default(g.facts.SerialNumber)
	s.Facts, s.Form, s.Telephony, s.Headset, s.Battery, s.Fix = g.facts, g.form, g.phone, g.headset, g.battery, g.fix
	return s
}
