package usb

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/usb/adb"
	"github.com/musterhq/muster/internal/validate"
)

// What the Android app has with this tool (android/README.md).
const (
	ownerPackage  = "dev.muster.agent"
	ownerReceiver = ownerPackage + ".AdminReceiver" // also under another package
	ownerDir      = "/data/local/tmp/muster-app"
	ownerApp      = ownerDir + "/agent.apk"
	ownerBundle   = ownerDir + "/bundle.json"
)

// appPackage is the app's name on a device.
func (w *work) appPackage() string { return cmp.Or(w.Package, ownerPackage) }

// provider is a path of the app's content provider.
func (w *work) provider(path string) string { return "content://" + w.appPackage() + ".enroll" + path }

// free says how the device becomes free again.
func (w *work) free() string {
	return "to make the device free again: content delete --uri " + w.provider("/owner") + ", in adb shell"
}

// ownerOldest is the API level of Android 9, the first that takes the app.
const ownerOldest = 28

// States in which the app says it is; of the others it says more in words.
const (
	ownerNone     = "not_owner" // installed, and not the device owner
	ownerEnrolled = "enrolled"
	ownerLost     = "lost"   // its key or identity: it takes a code of its service again
	ownerAsking   = "asking" // the same, with such a code: an administrator has to confirm it
)

// ownerState is what the app says of itself.
type ownerState struct{ state, device, detail string }

// owner installs the app, makes it the device owner, and hands it the bundle.
func (w *work) owner() error {
	before, err := w.ownerState()
	if err != nil {
		return err
	}
	const remedy = "to enroll it here, relinquish it at the service that manages it"
	switch before.state {
	case ownerEnrolled:
		return w.recognize(before.device, remedy)
	case ownerLost, ownerAsking:
		// Without an identity it does not know its device; it obeys no other service all the same.
		if resource.IsID(before.device) {
			if err := w.recognize(before.device, remedy); err != nil || w.result.Outcome == Elsewhere {
				return err
			}
		}
		if before.state == ownerAsking {
			w.asks()
			return nil
		}
		w.result.Outcome, w.result.Asset = "", ""
	}
	w.begin("making the app its device owner")
	defer w.tidy(ownerDir)
	// The directory is closed before anything lies in it.
	if err := w.each([]string{"mkdir", "-p", ownerDir}, []string{"chmod", "700", ownerDir}); err != nil {
		return err
	}
	if err := w.installApp(); err != nil {
		return err
	}
	now, err := w.ownerState()
	if err != nil {
		return err
	}
	if now.state == "" || now.state == ownerNone {
		if err := w.setOwner(); err != nil {
			return err
		}
	}
	// It may sleep like any other app where that is refused: orders take longer.
	if _, err := w.ask("cmd", "deviceidle", "whitelist", "+"+w.appPackage()); err != nil {
		return err
	}
	bundle, err := w.Enroller.Issue(w.ctx)
	if err != nil {
		return err
	}
	if err := w.handOver(bundle); err != nil {
		return err
	}
	if err := w.await(bundle); err != nil {
		now, asked := w.ownerState()
		switch {
		case asked == nil && now.state == ownerAsking:
			w.asks()
			return nil
		case asked == nil && now.detail != "":
			return fmt.Errorf("%w; the app says: %s; %s", err, now.detail, w.free())
		}
		return fmt.Errorf("%w; %s", err, w.free())
	}
	return nil
}

// asks notes a device that lost its key or identity and waits for an administrator.
func (w *work) asks() {
	w.result.Outcome, w.result.Asset = Asking, ""
	w.result.Detail = "it lost its key or identity and asks to be enrolled again: an administrator confirms that in the portal, by " +
		"the serial number; nothing on it is erased"
}

// ask runs a command whatever it answers.
func (w *work) ask(words ...string) (adb.Output, error) {
	output, err := w.ADB.Run(w.ctx, w.result.Serial, words...)
	w.record(words, output, err)
	return output, err
}

// ownerState asks the app; the zero state: it is not installed.
func (w *work) ownerState() (s ownerState, err error) {
	output, err := w.ask("content", "query", "--uri", w.provider("/state"))
	if err != nil {
		return s, err
	}
	_, row, found := strings.Cut(output.Out, "Row: 0 ")
	if !found {
		return s, nil
	}
	row, _, _ = strings.Cut(row, "\n")
	// The detail comes last, as it may hold the separator.
	row, s.detail, _ = strings.Cut(row, ", detail=")
	for field := range strings.SplitSeq(row, ", ") {
		name, value, _ := strings.Cut(field, "=")
		switch name {
		case "state":
			s.state = strings.TrimSpace(value)
		case "device":
			s.device = strings.TrimSpace(value)
		}
	}
	s.detail = validate.Clean(strings.TrimSpace(s.detail), 300)
	return s, nil
}

// installApp installs the app or updates it.
func (w *work) installApp() error {
	if err := w.push(w.App, ownerApp); err != nil {
		return err
	}
	// The installer's server reads the file through this command, so that the closed
	// directory is no hindrance.
	output, err := w.ask("sh", "-c", fmt.Sprintf("pm install -r -g -S %d < %s", len(w.App), ownerApp))
	if err != nil {
		return err
	}
	if !strings.Contains(output.Out+output.Err, "Success") {
		return w.explain("Android does not install the app", output, installRefusals())
	}
	return nil
}

func (w *work) setOwner() error {
	output, err := w.ask("dpm", "set-device-owner", w.appPackage()+"/"+ownerReceiver)
	if err != nil {
		return err
	}
	if !strings.Contains(output.Out, "Success") {
		return w.explain("Android does not make the app its device owner", output, ownerRefusals())
	}
	return nil
}

// handOver writes the bundle into the app's provider. It is never an argument.
func (w *work) handOver(b Bundle) error {
	if err := w.push(b.Text, ownerBundle); err != nil {
		return err
	}
	output, err := w.ask("sh", "-c", "content write --uri "+w.provider("/bundle")+" < "+ownerBundle)
	if err != nil {
		return err
	}
	if text := output.Out + output.Err; output.Code != 0 || strings.Contains(text, "Exception") || strings.Contains(text, "[ERROR]") {
		return errors.New("the app does not take the bundle: " + output.Message())
	}
	return nil
}
