package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/agent"
)

// enrolledProperty starts and stops the agent's service (init file).
const enrolledProperty = "persist.muster.enrolled"

// deviceProperty informs `muster usb` as which device the agent is enrolled.
const deviceProperty = "persist.muster.device"

// asking is its value while a device that lost its identity asks to be enrolled again.
const asking = "asking"

// Do implements agent.Device.
func (d *Device) Do(ctx context.Context, a agent.Action) (string, error) {
	switch a.Type {
	case agent.ShowMessage:
		return "shown", d.show(ctx, a)
	case agent.OpenApp:
		return "opened", d.open(ctx, a)
	case agent.Restart:
		return "restarting", d.either(ctx, []string{"svc", "power", "reboot"}, []string{"reboot"})
	case agent.PowerOff:
		return "switching off", d.either(ctx, []string{"svc", "power", "shutdown"}, []string{"reboot", "-p"})
	case agent.Erase:
		return "", d.erase(ctx, a.Again)
	case agent.LetGo:
		return "released", nil // Released, once the agent has nothing left to do
	}
	return "", agent.ErrUnsupported
}

// Enrolled lets init start the agent's service from now on, also after a restart,
// where the agent is a system daemon (init file). Else nothing starts it.
// id is the device's at its service.
func (d *Device) Enrolled(ctx context.Context, id string) error {
	if d.system() {
		if _, err := d.Tools.Run(ctx, "setprop", deviceProperty, id); err != nil {
			return err
		}
	}
	return d.tellInit(ctx, "1")
}

// Asks is Enrolled for a device that lost its identity and asks to be enrolled again: the
// agent's service goes on to ask. It reports whether init starts that.
func (d *Device) Asks(ctx context.Context) (bool, error) { return d.system(), d.Enrolled(ctx, asking) }

// Released lets init end the agent's service for good. It is the agent's last act:
// init does not ask before it kills, so the device must be free, the service must
// know, and the identity must be gone.
func (d *Device) Released(ctx context.Context) error { return d.tellInit(ctx, "0") }

func (d *Device) tellInit(ctx context.Context, enrolled string) error {
	if !d.system() {
		return nil
	}
	_, err := d.Tools.Run(ctx, "setprop", enrolledProperty, enrolled)
	return err
}

// show posts a notification. Its tag is the command's id: a second delivery
// replaces the first.
func (d *Device) show(ctx context.Context, a agent.Action) error {
	var args struct{ Title, Body string }
	if err := a.Read(&args); err != nil {
		return err
	}
	level, err := d.sdk(ctx)
	if err != nil {
		return err
	}
	if level < notificationSDK {
		return fmt.Errorf("%w: notifications take API level %d, the device has %d", agent.ErrUnsupported, notificationSDK, level)
	}
	_, err = d.Tools.Run(ctx, "cmd", "notification", "post", "-S", "bigtext", "-t", argument(args.Title), argument(a.CommandID),
		argument(args.Body))
	return err
}

// argument is text as the kernel can hand it to a program.
func argument(text string) string { return strings.ReplaceAll(text, "\x00", "\uFFFD") }

// open starts an app's launcher activity.
func (d *Device) open(ctx context.Context, a agent.Action) error {
	var args struct{ PackageName string }
	if err := a.Read(&args); err != nil {
		return err
	}
	name := args.PackageName
	if !packageForm.MatchString(name) {
		return fmt.Errorf("NOT_INSTALLED: %.100q cannot be a package", name)
	}
	if _, err := d.Tools.Run(ctx, "pm", "path", name); err != nil {
		if _, ended := errors.AsType[*ToolError](err); ended {
			return fmt.Errorf("NOT_INSTALLED: %s is not installed", name)
		}
		return err
	}
	text, err := d.Tools.Run(ctx, "cmd", "package", "resolve-activity", "--brief", "-c", "android.intent.category.LAUNCHER", name)
	if err != nil {
		return err
	}
	component, ok := parseComponent(text, name)
	if !ok {
		return fmt.Errorf("%s has nothing to open", name)
	}
	text, err = d.Tools.Run(ctx, "am", "start", "-n", component)
	if err == nil && strings.Contains("\n"+text, "\nError") { // am ends with 0 all the same
		err = fmt.Errorf("cannot open %s: %s", name, oneLine(text))
	}
	return err
}

// either runs the first command, or the second where the first fails.
func (d *Device) either(ctx context.Context, first, second []string) error {
	_, err := d.Tools.Run(ctx, first[0], first[1:]...)
	if _, ended := errors.AsType[*ToolError](err); !ended {
		return err
	}
	_, again := d.Tools.Run(ctx, second[0], second[1:]...)
	if again != nil {
		return errors.Join(err, again)
	}
	return nil
}

// erase asks Android for a factory reset; where it does not take the order, or
// took it before without an effect, the recovery. That one of them took it proves
// nothing: am says so whatever becomes of a broadcast. So the answer is never that
// the device is erased.
func (d *Device) erase(ctx context.Context, again bool) error {
	if !d.system() {
		return agent.ErrUnsupported
	}
	if err := d.restrict(ctx, rule{keys: []key{{name: "no_factory_reset"}}}, 0, false); err != nil {
		return err
	}
	ways := []func(context.Context) error{d.eraseByAndroid, d.eraseByRecovery}
	if again {
		slices.Reverse(ways)
	}
	var failed []error
	for _, way := range ways {
		err := way(ctx)
		if err == nil {
			return agent.ErrOrdered
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func (d *Device) eraseByAndroid(ctx context.Context) error {
	text, err := d.Tools.Run(ctx, "am", "broadcast", "-p", "android", "-a", "android.intent.action.FACTORY_RESET",
		"--receiver-foreground", "--include-stopped-packages")
	if err == nil && strings.Contains(text, "Exception") {
		err = errors.New(oneLine(text))
	}
	return err
}

func (d *Device) eraseByRecovery(ctx context.Context) error {
	if err := os.WriteFile(filepath.Join(d.Root, "cache/recovery/command"), []byte("--wipe_data\n"), 0o600); err != nil {
		return err
	}
	_, err := d.Tools.Run(ctx, "reboot", "recovery")
	return err
}

// maxToolText is the most that is kept of a tool's output, in bytes.
const maxToolText = 200

// oneLine makes a tool's output fit for a report.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if len(text) > maxToolText {
		text = strings.ToValidUTF8(text[:maxToolText], "") + "…"
	}
	return text
}
