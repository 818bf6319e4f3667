package usb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/usb/adb"
	"github.com/musterhq/muster/internal/validate"
)

// What the agent in a system image has with this tool (docs/aosp.md "Over USB").
const (
	// daemonProperty is set by the image's init file: ready or enrolled. The tool
	// asks with enroll.
	daemonProperty = "debug.muster.agent"
	// deviceProperty is set by the agent: as which device it is enrolled.
	deviceProperty = "persist.muster.device"
	daemonReady    = "ready"
	daemonEnroll   = "enrol"
	daemonEnrolled = "enrolled"
	deviceAsking   = "asking" // of deviceProperty: it lost its identity and asks to be enrolled again
	daemonBundle   = "/data/muster-inbox/bundle.json"
)

// Where an agent lives that was brought along.
const (
	labDir     = "/data/local/tmp/muster"
	labProgram = labDir + "/muster-agent"
	labBundle  = labDir + "/bundle.json"
	labState   = labDir + "/state"
)

// oldest is the API level of Android 5, the first that agents are for.
const oldest = 21

// labLimits is what must be known of an agent that was brought along.
const labLimits = "for trying things out: the agent ends when the device restarts or USB debugging is switched off; " +
	"it cannot restrict the device, erase it or hold its settings"

// work is one device being provisioned.
type work struct {
	*Tool
	ctx    context.Context
	result Result
}

// provision finds out what the device is, and does what it takes.
func (w *work) provision() error {
	daemon, ready, err := w.probe()
	if err != nil {
		return err
	}
	switch {
	case w.result.SDK < oldest:
		w.result.Outcome, w.result.Detail = Unsupported, "its Android is older than 5 (API level 21)"
		return nil
	case !ready:
		w.result.Outcome, w.result.Detail = NotReady, "Android is still starting on it"
		return nil
	case daemon == daemonReady || daemon == daemonEnroll:
		w.result.Way = System
		return w.system()
	case daemon == daemonEnrolled:
		w.result.Way = System
		device, err := w.enrolledAs()
		if err != nil || device == deviceAsking {
			w.asks()
			return err
		}
		return w.recognize(device, "to enroll it here, relinquish it at the service that manages it, or reset it")
	}
	if len(w.App) > 0 && w.result.SDK >= ownerOldest {
		w.result.Way = Owner
		return w.owner()
	}
	w.result.Way = Lab
	return w.lab()
}

// enrolledAs is what the agent in the system says of its device.
func (w *work) enrolledAs() (string, error) {
	output, err := w.run("getprop", deviceProperty)
	return strings.TrimSpace(output.Out), err
}

// probe asks the device who it is.
func (w *work) probe() (daemon string, ready bool, err error) {
	get := func(name string) (value string) {
		if err == nil {
			var output adb.Output
			output, err = w.run("getprop", name)
			value = validate.Clean(output.Out, 100)
		}
		return value
	}
	r := &w.result
	level := get("ro.build.version.sdk")
	r.AndroidVersion, r.ABI = get("ro.build.version.release"), get("ro.product.cpu.abi")
	r.Manufacturer, r.Model = get("ro.product.manufacturer"), get("ro.product.model")
	daemon, booted := get(daemonProperty), get("sys.boot_completed")
	if err != nil {
		return "", false, err
	}
	if r.SDK, err = strconv.Atoi(level); err != nil {
		return "", false, errors.New("it does not tell its API level: is this Android?")
	}
	return daemon, booted == "1", nil
}

// run runs a command that must succeed.
func (w *work) run(words ...string) (adb.Output, error) {
	output, err := w.ask(words...)
	if err == nil && output.Code != 0 {
		err = fmt.Errorf("%s failed on the device: %s", words[0], output.Message())
	}
	return output, err
}

// each runs commands that must succeed, one after the other.
func (w *work) each(commands ...[]string) error {
	for _, words := range commands {
		if _, err := w.run(words...); err != nil {
			return err
		}
	}
	return nil
}

// tidy removes something from the device, whatever happened.
func (w *work) tidy(path string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), tidyTime)
	defer cancel()
	_, _ = w.ADB.Run(ctx, w.result.Serial, "rm", "-r", "-f", path) // the token in it works once, and ends by itself
}

// begin says that the work begins.
func (w *work) begin(text string) {
	output := w.result
	output.Outcome, output.Detail = Working, text
	w.note(output)
}

// system hands the bundle to the agent in the device's system, which init starts
// when it is asked to.
func (w *work) system() error {
	w.begin("enrolling through the agent in its system")
	bundle, err := w.Enroller.Issue(w.ctx)
	if err != nil {
		return err
	}
	defer w.tidy(daemonBundle)
	// Only system and shell may look into this directory (init file), so that the
	// wide mode that adb gives a file does no harm.
	if err := w.push(bundle.Text, daemonBundle); err != nil {
		return err
	}
	err = w.each([]string{"chmod", "640", daemonBundle}, []string{"setprop", daemonProperty, daemonReady},
		[]string{"setprop", daemonProperty, daemonEnroll})
	if err != nil {
		return err
	}
	if err := w.await(bundle); err != nil {
		if device, asked := w.enrolledAs(); asked == nil && device == deviceAsking {
			w.asks()
			return nil
		}
		if left, asked := w.ADB.Exists(w.ctx, w.result.Serial, daemonBundle); asked == nil && left {
			return errors.New("the agent in its system did not take the bundle: is the image's init file that of docs/aosp.md?")
		}
		return err
	}
	return nil
}

// push copies data to a path on the device. It lies on this machine in a file without
// a name, so that nothing is left of it if this program is killed.
func (w *work) push(data []byte, path string) error {
	file, err := os.CreateTemp("", "muster-usb-")
	if err != nil {
		return err
	}
	defer file.Close()
	if err := os.Remove(file.Name()); err != nil {
		return err
	}
	if _, err := file.Write(data); err != nil {
		return err
	}
	return w.ADB.Push(w.ctx, w.result.Serial, path, file)
}

// lab brings an agent along, enrolls it, and starts it.
func (w *work) lab() error {
	enrolled, err := w.ADB.Exists(w.ctx, w.result.Serial, labState+"/identity.json")
	if err != nil {
		return err
	}
	if enrolled {
		return w.again()
	}
	program, err := w.Programs.Open(w.result.ABI)
	if none, ok := errors.AsType[*NoProgramError](err); ok {
		w.result.Outcome, w.result.Detail = Unsupported, none.Error()
		return nil
	}
	if err != nil {
		return err
	}
	defer program.Close()
	w.begin("no agent in its system: bringing one along, " + labLimits)
	done := false
	defer func() {
		if !done {
			w.tidy(labDir)
		}
	}()
	// The directory is closed before anything lies in it.
	if err := w.each([]string{"mkdir", "-p", labDir}, []string{"chmod", "700", labDir}); err != nil {
		return err
	}
	if err := w.ADB.Push(w.ctx, w.result.Serial, labProgram, program); err != nil {
		return err
	}
	bundle, err := w.Enroller.Issue(w.ctx)
	if err != nil {
		return err
	}
	if err := w.push(bundle.Text, labBundle); err != nil {
		return err
	}
	err = w.each([]string{"chmod", "700", labProgram}, []string{"chmod", "600", labBundle},
		[]string{labProgram, "enroll", "--state", labState, "--driver", "shell", "--bundle", labBundle})
	if err != nil {
		return err
	}
	done = true // from here on the service knows the device
	if err := w.start(); err != nil {
		return err
	}
	return w.await(bundle)
}

// start starts the agent that was brought along, detached from this USB session.
func (w *work) start() error {
	_, err := w.run(labProgram, "run", "--state", labState, "--driver", "shell", "--detach")
	return err
}

// again starts the agent of an enrollment that is there already, if it does not run.
func (w *work) again() error {
	// The agent says which device it is; its identity file is not read, as it holds the device's key.
	status, err := w.run(labProgram, "status", "--state", labState)
	if err != nil {
		return err
	}
	startOver := fmt.Sprintf("to start over: adb -s %s shell rm -r %s", w.result.Serial, labDir)
	if err := w.recognize(deviceOf(status.Out), startOver); err != nil || w.result.Outcome != AlreadyEnrolled {
		return err
	}
	if err := w.start(); err != nil {
		return fmt.Errorf("it has an enrollment of before whose agent does not start; to start again: adb -s %s shell rm -r %s: %w",
			w.result.Serial, labDir, err)
	}
	w.result.Detail = "the agent that was brought along runs (again); " + labLimits
	return nil
}

// deviceOf finds the device's id in what the agent says of itself.
func deviceOf(status string) string {
	for line := range strings.Lines(status) {
		if id, found := strings.CutPrefix(line, "Device:"); found {
			return strings.TrimSpace(id)
		}
	}
	return ""
}

// recognize distinguishes a device of this service from one of another. remedy says how
// another's becomes free.
func (w *work) recognize(id, remedy string) error {
	if !resource.IsID(id) {
		w.result.Outcome, w.result.Detail = Elsewhere, "its agent does not say which device it is; "+remedy
		return nil
	}
	asset, err := w.Enroller.Known(w.ctx, id)
	switch {
	case err != nil:
		return err
	case asset == "":
		w.result.Outcome, w.result.Detail = Elsewhere, "it is enrolled, and this service's company does not manage it; "+remedy
	default:
		w.result.Outcome, w.result.Asset = AlreadyEnrolled, asset
	}
	return nil
}

// lookEvery is how often the service is asked.
const lookEvery = 300 * time.Millisecond

// await waits until the service says that the bundle's device is enrolled.
func (w *work) await(b Bundle) error {
	late := fmt.Errorf("the service has not seen it within %v: is it on a network from which it reaches the service?", w.Patience)
	ctx, cancel := context.WithTimeoutCause(w.ctx, w.Patience, late)
	defer cancel()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		asset, err := w.Enroller.Enrolled(ctx, b)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case asset != "":
			w.result.Outcome, w.result.Asset, w.result.Detail = Enrolled, asset, ""
			if w.result.Way == Lab {
				w.result.Detail = labLimits
			}
			return nil
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// Title is the device for people.
func (r Result) Title() string {
	title := r.Serial
	if who := strings.TrimSpace(r.Manufacturer + " " + r.Model); who != "" {
		title += " (" + who + ", Android " + r.AndroidVersion + ")"
	}
	return title
}
