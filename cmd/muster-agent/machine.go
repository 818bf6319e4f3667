package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/dns"
	"github.com/musterhq/muster/internal/agent/shell"
	"github.com/musterhq/muster/internal/agent/simulated"
)

// shellDriver is the driver of real devices; the other one simulates a device.
const shellDriver = "shell"

// common is what every command takes.
type common struct {
	State  string `name:"state" required:"" placeholder:"DIR" help:"The directory that holds the device's identity and journal."`
	Driver string `name:"driver" enum:"simulated,shell" default:"simulated" help:"What the agent drives: simulated, a model of a device kept in the state directory; or shell, the Android device that it runs on."`
	Serial string `name:"serial" placeholder:"NUMBER" help:"The simulated device's serial number, when it is made; by default one of its own."`
	Root   string `name:"root" hidden:"" default:"/"` // of the Android device; a test's device is a directory
	Push   string `name:"push" placeholder:"URL" help:"A simulated companion's push service: the address of the platform's emulator. It is remembered."`
}

// device opens the machine under the agent, and what wakes it besides the
// service's own stream.
func (c common) device() (agent.Device, agent.Push, error) {
	if c.Driver == shellDriver {
		if c.Push != "" {
			return nil, nil, errors.New("--push is for the simulated driver")
		}
		return &shell.Device{Tools: c.tools(), Root: c.Root, UID: os.Getuid(), Now: time.Now}, nil, nil
	}
	device, err := simulated.Open(c.State, simulated.Default(c.serial()), time.Now)
	if err != nil {
		return nil, nil, err
	}
	service, err := device.PushService(c.Push)
	if err != nil || service == "" {
		return device, nil, err
	}
	return device, simulated.Push{Device: device, Emulator: service, Client: agent.NewClient()}, nil
}

// serial is the number that a simulated device gets when it is made. Two devices
// must not share one: to the service they would be the same hardware, and the
// second would take over the first one's asset.
func (c common) serial() string { return cmp.Or(c.Serial, "SIM"+rand.Text()[:10]) }

// released informs a device's system that the agent is over, if the identity is gone:
// also when an agent before this one did not get as far. One that is damaged is gone
// until the device has a code, with which it asks.
func (c common) released(env *environment) {
	_, err := agent.LoadConnection(c.State)
	_, asks := agent.Asking(c.State)
	if lost := errors.Is(err, agent.ErrLost) && !asks; c.Driver != shellDriver || !errors.Is(err, agent.ErrNotEnrolled) && !lost {
		return
	}
	device, _, err := c.device()
	if android, ok := device.(*shell.Device); ok && err == nil {
		err = android.Released(context.WithoutCancel(env.ctx))
	}
	if err != nil {
		env.log.Warn("the system was not told that the agent is over", "error", err)
	}
}

func (c common) tools() shell.Exec { return shell.Exec{Dirs: shell.AndroidDirs(c.Root)} }

// client is the way to the service. On Android names are looked up by the agent
// itself; elsewhere the machine knows how.
func (c common) client(way agent.Connection) *http.Client {
	if c.Driver != shellDriver {
		return way.Client(nil, nil, c.passed())
	}
	resolver := &dns.Resolver{Run: c.tools().Run, Given: way.NameServers, Memory: filepath.Join(c.State, agent.AddressesFile)}
	if _, err := os.Stat(filepath.Join(c.Root, "etc/resolv.conf")); !errors.Is(err, fs.ErrNotExist) {
		resolver.System = net.DefaultResolver
	}
	return way.Client(resolver.Dial, c.clock, c.passed())
}

// passed is the time by which certificates of a pinned authority are judged.
func (c common) passed() func() time.Time {
	day, _ := time.Parse(time.DateOnly, built) // a build without one knows none
	return agent.SignedTime(c.State, day)
}

// clock is the time by which other certificates are judged: a device whose clock is
// dead begins in 1970, but it is never earlier than when it was last written
// down who it is.
func (c common) clock() time.Time {
	now := time.Now()
	if info, err := os.Stat(filepath.Join(c.State, "identity.json")); err == nil && info.ModTime().After(now) {
		return info.ModTime()
	}
	return now
}
