// Package shell drives a device by Android's own command lines: pm, settings,
// cmd, am, svc, dumpsys, getprop. Each is started with a vector of arguments;
// there is no shell, so no text of the service or of the device can become a
// command. docs/aosp.md says what each setting and command needs.
package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
)

// Runner starts one of Android's tools by its bare name and returns what it
// wrote on standard output. A tool that ends with another code than 0 is a
// *ToolError.
type Runner interface {
	Run(ctx context.Context, tool string, args ...string) (string, error)
}

// ToolError is a tool that failed.
type ToolError struct {
	Tool string
	Code int
	Text string // what it wrote to standard error and output, shortened to one line
}

// Error implements error.
func (e *ToolError) Error() string {
	return fmt.Sprintf("%s ended with code %d: %s", e.Tool, e.Code, e.Text)
}

// The user ids with the powers of a system daemon.
const (
	rootUID   = 0
	systemUID = 1000
)

// Device is the device that the tools work on. It implements agent.Device.
type Device struct {
	Tools Runner
	Root  string // the root of the file system: "/", or a directory in tests
	UID   int    // that the agent runs as: 0 and 1000 have a system daemon's powers
	Now   func() time.Time

	level atomic.Int64 // the API level, which cannot change while this runs; 0: not asked yet
}

var _ agent.Device = (*Device)(nil)

// system reports whether the agent has the powers of a system daemon. If not, adb started it over USB.
func (d *Device) system() bool { return d.UID == rootUID || d.UID == systemUID }

// Facts implements agent.Device.
func (d *Device) Facts(ctx context.Context) (protocol.Facts, error) {
	props, err := d.properties(ctx)
	if err != nil {
		return protocol.Facts{}, err
	}
	sdk, err := strconv.Atoi(props["ro.build.version.sdk"])
	if err != nil {
		return protocol.Facts{}, fmt.Errorf("getprop does not tell the API level: is this Android? %w", err)
	}
	return protocol.Facts{SerialNumber: props["ro.serialno"], Manufacturer: props["ro.product.manufacturer"],
		Brand: props["ro.product.brand"],
		Model: props["ro.product.model"], SDK: sdk, OSVersion: props["ro.build.version.release"]}, nil
}

// sdk is the device's API level.
func (d *Device) sdk(ctx context.Context) (int, error) {
	if known := d.level.Load(); known > 0 {
		return int(known), nil
	}
	text, err := d.Tools.Run(ctx, "getprop", "ro.build.version.sdk")
	if err != nil {
		return 0, err
	}
	level, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0, fmt.Errorf("getprop does not tell the API level: is this Android? %w", err)
	}
	d.level.Store(int64(level))
	return level, nil
}

func (d *Device) properties(ctx context.Context) (map[string]string, error) {
	text, err := d.Tools.Run(ctx, "getprop")
	return parseProperties(text), err
}

// BootID implements agent.Device. The kernel makes a new one at each start.
func (d *Device) BootID(context.Context) (string, error) {
	text, err := os.ReadFile(filepath.Join(d.Root, "proc/sys/kernel/random/boot_id"))
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(text))
	if id == "" {
		return "", errors.New("the kernel tells no boot id")
	}
	return id, nil
}

// The API levels from which the tools can show a notification, and find the activity that an app opens with.
const (
	notificationSDK = 29
	launchSDK       = 24
)

// Capabilities implements agent.Device.
func (d *Device) Capabilities(ctx context.Context) ([]protocol.Capability, error) {
	level, err := d.sdk(ctx)
	if err != nil {
		return nil, err
	}
	can := []protocol.Capability{protocol.Reboot, protocol.Shutdown}
	if level >= launchSDK {
		can = append(can, protocol.Launch)
	}
	if level >= notificationSDK {
		can = append(can, protocol.Notify)
	}
	if d.system() {
		can = append(can, protocol.UserRestrictions, protocol.Wipe, protocol.Persistence)
	}
	return can, nil
}

// hasFeature reports whether the device declares a feature, such as android.hardware.telephony.
func (d *Device) hasFeature(ctx context.Context, name string) (bool, error) {
	text, err := d.Tools.Run(ctx, "pm", "has-feature", name)
	if failed, ok := errors.AsType[*ToolError](err); ok && failed.Code == 1 {
		return false, nil // pm exits with 1 if the device does not have the feature
	}
	return strings.TrimSpace(text) == "true", err
}
