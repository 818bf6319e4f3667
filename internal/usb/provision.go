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
	"github.com/musterhq/muster/internal/script"
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

// work is one device being provisioned, as a script: a step that fails ends it (script.Attempt).
type work struct {
	*Tool
	ctx    context.Context
	result Result
}

// provision finds out what the device is, and does what it takes.
func (w *work) provision() {
	daemon, ready := w.probe()
	switch {
	case w.result.SDK < oldest:
		w.result.Outcome, w.result.Detail = Unsupported, "its Android is older than 5 (API level 21)"
	case !ready:
		w.result.Outcome, w.result.Detail = NotReady, "Android is still starting on it"
	case daemon == daemonReady || daemon == daemonEnroll:
		w.result.Way = System
		w.system()
	case daemon == daemonEnrolled:
		w.result.Way = System
		if device := w.enrolledAs(); device == deviceAsking {
			w.asks()
		} else {
			w.recognize(device, "to enroll it here, relinquish it at the service that manages it, or reset it")
		}
	case len(w.App) > 0 && w.result.SDK >= ownerOldest:
		w.result.Way = Owner
		w.owner()
	default:
		w.result.Way = Lab
		w.lab()
	}
}

// enrolledAs is what the agent in the system says of its device.
func (w *work) enrolledAs() string { return strings.TrimSpace(w.run("getprop", deviceProperty).Out) }

// probe asks the device who it is.
func (w *work) probe() (daemon string, ready bool) {
	get := func(name string) string { return validate.Clean(w.run("getprop", name).Out, 100) }
	r := &w.result
	level := get("ro.build.version.sdk")
	r.AndroidVersion, r.ABI = get("ro.build.version.release"), get("ro.product.cpu.abi")
	r.Manufacturer, r.Model = get("ro.product.manufacturer"), get("ro.product.model")
	daemon, booted := get(daemonProperty), get("sys.boot_completed")
	var err error
	if r.SDK, err = strconv.Atoi(level); err != nil {
		script.Fail("it does not tell its API level: is this Android?")
	}
	return daemon, booted == "1"
}

// run runs a command that must succeed.
func (w *work) run(words ...string) adb.Output {
	output := w.ask(words...)
	if output.Code != 0 {
		script.Fail("%s failed on the device: %s", words[0], output.Message())
	}
	return output
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
func (w *work) system() {
	w.begin("enrolling through the agent in its system")
	bundle := script.Must(w.Enroller.Issue(w.ctx))
	defer w.tidy(daemonBundle)
	// Only system and shell may look into this directory (init file), so that the
	// wide mode that adb gives a file does no harm.
	w.push(bundle.Text, daemonBundle)
	w.run("chmod", "640", daemonBundle)
	w.run("setprop", daemonProperty, daemonReady)
	w.run("setprop", daemonProperty, daemonEnroll)
	if err := w.await(bundle); err != nil {
		var device string
		_ = script.Attempt(func() { device = w.enrolledAs() }) // else the first failure counts
		if device == deviceAsking {
			w.asks()
			return
		}
		if left, asked := w.ADB.Exists(w.ctx, w.result.Serial, daemonBundle); asked == nil && left {
			script.Fail("the agent in its system did not take the bundle: is the image's init file that of docs/aosp.md?")
		}
		script.Need(err)
	}
}

// push copies data to a path on the device. It lies on this machine in a file without
// a name, so that nothing is left of it if this program is killed.
func (w *work) push(data []byte, path string) {
	file := script.Must(os.CreateTemp("", "muster-usb-"))
	defer file.Close()
	script.Need(os.Remove(file.Name()))
	script.Must(file.Write(data))
	script.Need(w.ADB.Push(w.ctx, w.result.Serial, path, file))
}

// lab brings an agent along, enrolls it, and starts it.
func (w *work) lab() {
	if script.Must(w.ADB.Exists(w.ctx, w.result.Serial, labState+"/identity.json")) {
		w.again()
		return
	}
	program, err := w.Programs.Open(w.result.ABI)
	if none, ok := errors.AsType[*NoProgramError](err); ok {
		w.result.Outcome, w.result.Detail = Unsupported, none.Error()
		return
	}
	script.Need(err)
	defer program.Close()
	w.begin("no agent in its system: bringing one along, " + labLimits)
	done := false
	defer func() {
		if !done {
			w.tidy(labDir)
		}
	}()
	w.makeDir(labDir)
	script.Need(w.ADB.Push(w.ctx, w.result.Serial, labProgram, program))
	bundle := script.Must(w.Enroller.Issue(w.ctx))
	w.push(bundle.Text, labBundle)
	w.run("chmod", "700", labProgram)
	w.run("chmod", "600", labBundle)
	w.run(labProgram, "enroll", "--state", labState, "--driver", "shell", "--bundle", labBundle)
	done = true // from here on the service knows the device
	w.start()
	script.Need(w.await(bundle))
}

// makeDir makes a directory that is closed before anything lies in it.
func (w *work) makeDir(path string) {
	w.run("mkdir", "-p", path)
	w.run("chmod", "700", path)
}

// start starts the agent that was brought along, detached from this USB session.
func (w *work) start() {
	w.run(labProgram, "run", "--state", labState, "--driver", "shell", "--detach")
}

// again starts the agent of an enrollment that is there already, if it does not run.
func (w *work) again() {
	// It is asked for its device. Its identity file is not read: it holds the device's key.
	id := deviceOf(w.run(labProgram, "status", "--state", labState).Out)
	remove := fmt.Sprintf("adb -s %s shell rm -r %s", w.result.Serial, labDir)
	w.recognize(id, "to start over: "+remove)
	if w.result.Outcome != AlreadyEnrolled {
		return
	}
	script.Within("it has an enrollment of before whose agent does not start; to start again: "+remove, w.start)
	w.result.Detail = "the agent that was brought along runs (again); " + labLimits
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
func (w *work) recognize(id, remedy string) {
	if !resource.IsID(id) {
		w.result.Outcome, w.result.Detail = Elsewhere, "its agent does not say which device it is; "+remedy
		return
	}
	if asset := script.Must(w.Enroller.Known(w.ctx, id)); asset == "" {
		w.result.Outcome, w.result.Detail = Elsewhere, "it is enrolled, and this service's company does not manage it; "+remedy
	} else {
		w.result.Outcome, w.result.Asset = AlreadyEnrolled, asset
	}
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
