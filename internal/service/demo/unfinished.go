package demo

import (
	"context"
	"net/http"
	"path"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/wait"
)

// finish is what is not over when the demo is shown: a device is lost, of a lock it is not
// known what became of it, and a control is to be loosened.
func (h *history) finish(ctx context.Context) {
	h.pass(ctx, 22)
	h.enrollAgents(ctx)
	h.pass(ctx, daysOfHistory-2)
	h.lose(ctx)
	h.drop(ctx)
	h.loosen(ctx)
	h.report(ctx)
}

// enrollAgents enrolls the devices with our own agent. They live on in the present: an
// agent takes a clock that jumps for an attack.
func (h *history) enrollAgents(ctx context.Context) {
	h.past.until(h.midnight(h.day).Add(17 * time.Hour))
	ctx, stop := context.WithCancel(ctx)
	defer h.agents.Wait()
	defer stop()
	h.runAgents(ctx)
}

// one finds a managed device of a model that is on.
func (h *history) one(ctx context.Context, model string) asset.Asset {
	all := h.enrolled(ctx)
	at := slices.IndexFunc(all, func(a asset.Asset) bool {
		d, err := h.emulator.Device(a.Device.Name)
		return err == nil && d.Online && d.Model == model
	})
	if at < 0 {
		script.Fail("no %s is on", model)
	}
	return all[at]
}

// lose has a phone left behind on a train.
func (h *history) lose(ctx context.Context) {
	h.past.until(h.past.now().Add(-26 * time.Hour))
	a := h.one(ctx, "Galaxy XCover7")
	h.send(ctx, h.person(secondUser), a, command.StartLostMode, "message", "This phone was lost. Please call us.",
		"phoneNumber", "+49 30 5550142", "reason", "Left behind on a train")
	for range 200 { // it may be carrying out something else
		if d, _ := h.emulator.Device(a.Device.Name); d.State == "LOST" {
			break
		}
		wait.For(ctx, settle)
	}
	device := path.Base(a.Device.Name)
	for n := range 4 { // it reports from one place after another
		h.past.until(h.past.now().Add(time.Duration(5*n-20) * time.Hour))
		at := emulator.Behavior{Latitude: new(52.5163 + float64(n)*0.004), Longitude: new(13.3777 - float64(n)*0.011)}
		script.Must(h.emulator.SetBehavior(ctx, device, at, true))
		script.Need(h.emulator.Act(ctx, device, emulator.ActionReportLocation, true))
	}
}

// drop loses the platform's answer to a lock.
func (h *history) drop(ctx context.Context) {
	h.past.until(h.past.now().Add(-4 * time.Hour))
	a := h.one(ctx, "Pixel 9")
	script.Need(h.emulator.AddFault(emulator.Fault{Method: "devices.issueCommand", DropConnection: true}))
	h.send(ctx, h.person(secondUser), a, command.Lock)
}

// loosen asks for a higher limit, which waits for a second administrator.
func (h *history) loosen(ctx context.Context) {
	h.past.until(h.past.now().Add(-3 * time.Hour))
	p := post(ctx, h.person(secondUser), frame.ControlsPath, "limited", "true", "limit", "60", "minutes", "60", "age", "0")
	if p.Status != http.StatusOK {
		script.Fail("a higher limit cannot be asked for: %d", p.Status)
	}
}

// report has the devices that are on report today, one after another.
func (h *history) report(ctx context.Context) {
	devices := h.emulator.Devices()
	for i, d := range devices {
		if !d.Online {
			continue
		}
		h.past.until(h.past.now().Add(-time.Duration(len(devices)-i) * 5 * time.Minute))
		script.Need(h.emulator.Act(ctx, path.Base(d.Name), emulator.ActionStatusReport, true))
		if d.LatencyMS == prompt {
			usual := emulator.Behavior{LatencyMS: new(int(emulator.DefaultLatency.Milliseconds()))}
			script.Must(h.emulator.SetBehavior(ctx, path.Base(d.Name), usual, true))
		}
	}
}

// prompt is the latency of devices while the past is lived, in milliseconds.
const prompt = 1
