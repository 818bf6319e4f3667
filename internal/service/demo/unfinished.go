package demo

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/wait"
)

// finish is what is not over when the demo is shown: a device is lost, of a lock it is not
// known what became of it, and a control is to be loosened.
func (h *history) finish(ctx context.Context) error {
	if err := h.pass(ctx, 22); err != nil {
		return err
	}
	if err := h.enrollAgents(ctx); err != nil {
		return err
	}
	if err := h.pass(ctx, daysOfHistory-2); err != nil {
		return err
	}
	for _, step := range []func(context.Context, person) error{h.lose, h.drop, h.loosen} {
		if err := step(ctx, h.person(secondUser)); err != nil {
			return err
		}
	}
	return h.report(ctx)
}

// enrollAgents enrolls the devices with our own agent. They live on in the present: an
// agent takes a clock that jumps for an attack.
func (h *history) enrollAgents(ctx context.Context) error {
	h.past.until(h.midnight(h.day).Add(17 * time.Hour))
	ctx, stop := context.WithCancel(ctx)
	err := h.runAgents(ctx)
	stop()
	h.agents.Wait()
	return err
}

// one finds a managed device of a model that is on.
func (h *history) one(ctx context.Context, model string) (asset.Asset, error) {
	all, err := h.enrolled(ctx)
	if err != nil {
		return asset.Asset{}, err
	}
	at := slices.IndexFunc(all, func(a asset.Asset) bool {
		d, err := h.emulator.Device(a.Device.Name)
		return err == nil && d.Online && d.Model == model
	})
	if at < 0 {
		return asset.Asset{}, fmt.Errorf("no %s is on", model)
	}
	return all[at], nil
}

// lose has a phone left behind on a train.
func (h *history) lose(ctx context.Context, who person) error {
	h.past.until(h.past.now().Add(-26 * time.Hour))
	a, err := h.one(ctx, "Galaxy XCover7")
	if err == nil {
		err = h.send(ctx, who, a, command.StartLostMode, "message", "This phone was lost. Please call us.", "phoneNumber", "+49 30 5550142",
			"reason", "Left behind on a train")
	}
	for n := 0; n < 200 && err == nil; n++ { // it may be carrying out something else
		if d, _ := h.emulator.Device(a.Device.Name); d.State == "LOST" {
			break
		}
		wait.For(ctx, settle)
	}
	for n := 0; n < 4 && err == nil; n++ {
		h.past.until(h.past.now().Add(time.Duration(5*n-20) * time.Hour))
		err = h.passBy(ctx, path.Base(a.Device.Name), 52.5163+float64(n)*0.004, 13.3777-float64(n)*0.011)
	}
	return err
}

// passBy has a lost device report that it is at a place.
func (h *history) passBy(ctx context.Context, device string, latitude, longitude float64) error {
	at := emulator.Behavior{Latitude: new(latitude), Longitude: new(longitude)}
	if _, err := h.emulator.SetBehavior(ctx, device, at, true); err != nil {
		return err
	}
	return h.emulator.Act(ctx, device, emulator.ActionReportLocation, true)
}

// drop loses the platform's answer to a lock.
func (h *history) drop(ctx context.Context, who person) error {
	h.past.until(h.past.now().Add(-4 * time.Hour))
	a, err := h.one(ctx, "Pixel 9")
	if err == nil {
		err = h.emulator.AddFault(emulator.Fault{Method: "devices.issueCommand", DropConnection: true})
	}
	if err == nil {
		err = h.send(ctx, who, a, command.Lock)
	}
	return err
}

// loosen asks for a higher limit, which waits for a second administrator.
func (h *history) loosen(ctx context.Context, who person) error {
	h.past.until(h.past.now().Add(-3 * time.Hour))
	p, err := who.post(ctx, frame.ControlsPath, "limited", "true", "limit", "60", "minutes", "60", "age", "0")
	if err == nil && p.Status != http.StatusOK {
		err = fmt.Errorf("a higher limit cannot be asked for: %d", p.Status)
	}
	return err
}

// report has the devices that are on report today, one after another.
func (h *history) report(ctx context.Context) error {
	devices := h.emulator.Devices()
	for i, d := range devices {
		if !d.Online {
			continue
		}
		h.past.until(h.past.now().Add(-time.Duration(len(devices)-i) * 5 * time.Minute))
		if err := h.emulator.Act(ctx, path.Base(d.Name), emulator.ActionStatusReport, true); err != nil {
			return err
		}
		if d.LatencyMS == prompt {
			if _, err := h.emulator.SetBehavior(ctx, path.Base(d.Name),
				emulator.Behavior{LatencyMS: new(int(emulator.DefaultLatency.Milliseconds()))}, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// prompt is the latency of devices while the past is lived, in milliseconds.
const prompt = 1
