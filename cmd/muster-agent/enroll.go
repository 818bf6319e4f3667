package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/alecthomas/kong"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agent/shell"
)

// enrollCommand redeems a token.
type enrollCommand struct {
	common
	Server string   `name:"server" placeholder:"URL" help:"The service's address: https, or http on this machine."`
	Token  string   `name:"token" help:"The one-time token from the QR code. Other users of the device can see flags: prefer --bundle."`
	Bundle string   `name:"bundle" placeholder:"FILE" help:"Instead of --server, --token, --pin and --command-key: a file with a code's whole text, as the USB tool hands it over. It is read once and deleted."`
	Again  bool     `name:"again" help:"Enroll a device again that its service manages: it stays the same asset. Stop the agent first. A device that was superseded or released needs no flag."`
	Role   string   `name:"role" enum:"manager,companion" default:"manager" help:"manager, or companion on a device that the platform manages."`
	Pin    pins     `name:"pin" placeholder:"PIN" help:"The pin of the service's certificate from the QR code; repeat it for a second."`
	Key    string   `name:"command-key" placeholder:"KEY" help:"The service's command key for the device key's algorithm, from the QR code, or sha256: and its digest; without it the device keeps the key that signs the answer."`
	DNS    []string `name:"dns" placeholder:"IP" help:"A name server to ask where Android tells of none."`
	Alg    string   `name:"alg" enum:"ed25519,es256" default:"ed25519" help:"The device key's algorithm: ed25519 or es256."`
}

// pins are a flag that may be repeated.
type pins []string

// Decode takes the next argument as it is: the parser itself would take a pin
// that begins with a hyphen for a flag.
func (p *pins) Decode(c *kong.DecodeContext) error {
	next := c.Scan.Pop()
	if next.IsEOL() {
		return errors.New("missing value")
	}
	*p = append(*p, next.String())
	return nil
}

// Validate says what is missing, or too much, on the command line.
func (c *enrollCommand) Validate() error {
	switch {
	case c.Bundle != "" && (c.Server != "" || c.Token != "" || c.Key != "" || len(c.Pin) > 0):
		return errors.New("--bundle takes the place of --server, --token, --pin and --command-key")
	case c.Bundle == "" && (c.Server == "" || c.Token == ""):
		return errors.New("missing flags: --server=URL and --token=TOKEN, or --bundle=FILE")
	}
	return nil
}

// Run enrolls the device.
func (c *enrollCommand) Run(env *environment) error {
	code := protocol.Code{Server: c.Server, Token: c.Token, CommandKey: c.Key, CommandKeyES256: c.Key, Pins: c.Pin}
	if c.Bundle != "" {
		var err error
		if code, err = takeBundle(c.Bundle); err != nil {
			return err
		}
	}
	if protocol.Algorithm(c.Alg) == protocol.ES256 {
		code.CommandKey = code.CommandKeyES256
	}
	lock, err := c.lock()
	if busy := (*busyError)(nil); errors.As(err, &busy) && !c.Again {
		if _, enrolled := agent.LoadConnection(c.State); enrolled == nil {
			return agent.ErrEnrolled // and running
		}
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	device, _, err := c.device()
	if err != nil {
		return err
	}
	err = c.enroll(env, device, agent.Enrollment{Server: code.Server, Token: code.Token, Role: protocol.Role(c.Role),
		Algorithm:  protocol.Algorithm(c.Alg),
		Connection: agent.Connection{Pins: code.Pins, NameServers: c.DNS}, CommandKey: code.CommandKey, Again: c.Again},
		func() (bool, error) { return c.handOver(env.ctx, device) })
	if errors.Is(err, agent.ErrWaiting) && env.ctx.Err() == nil {
		return nil // the agent's service goes on to ask
	}
	return err
}

// handOver has init start the agent's service, which goes on to ask, and reports whether it does. It does
// nothing for a device whose identity is intact: the agent's service would run as the device that it was.
func (c common) handOver(ctx context.Context, device agent.Device) (bool, error) {
	android, ok := device.(*shell.Device)
	if _, goesOn := agent.Asking(c.State); !ok || !goesOn {
		return false, nil
	}
	return android.Asks(ctx)
}

// comeBack asks until a device that lost its identity, and was given a code, is enrolled.
func (c common) comeBack(env *environment) error {
	e, asks := agent.Asking(c.State)
	if !asks {
		return nil
	}
	device, _, err := c.device()
	if err != nil {
		return err
	}
	return c.enroll(env, device, e, func() (bool, error) { return false, nil })
}

// enroll enrolls the device, and has its system start the agent. See redeem.
func (c common) enroll(env *environment, device agent.Device, e agent.Enrollment, handOver func() (bool, error)) error {
	e.Options = agent.Options{Dir: c.State, Version: version, Device: device, Client: c.client(e.Connection), Now: time.Now}
	enrolled, err := redeem(env, e, handOver)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.out, "Enrolled as %s.\n", enrolled.DeviceID)
	if e.CommandKey == "" {
		env.log.Warn("no command key was named: from now on this device obeys the key that signed the answer", "key", enrolled.Key)
	}
	if android, ok := device.(*shell.Device); ok {
		if err := android.Enrolled(env.ctx, enrolled.DeviceID); err != nil {
			return fmt.Errorf("the device is enrolled, but its system was not told to start the agent: %w", err)
		}
	}
	return nil
}

// askEvery is the interval at which a waiting device asks whether an administrator has
// confirmed it.
const askEvery = time.Minute

// redeem enrolls a device. Where the service asks to be asked again later, it waits for that. A
// device that lost its identity waits until an administrator confirms that it is enrolled again,
// or until env.ctx ends; or it returns agent.ErrWaiting at once where handOver has another process
// ask.
func redeem(env *environment, e agent.Enrollment, handOver func() (bool, error)) (agent.Enrolled, error) {
	for asked := false; ; {
		enrolled, err := agent.Enroll(env.ctx, e)
		pause := agent.RetryAfter(err)
		switch {
		case errors.Is(err, agent.ErrWaiting):
			if pause = askEvery; !asked {
				asked = true
				fmt.Fprintf(env.out, "This device asks to be enrolled again. Its serial number is %q. An administrator confirms that "+
					"in the portal, at the asset with this number.\n", agent.SerialNumber(env.ctx, e.Device))
				if other, failed := handOver(); failed != nil {
					return enrolled, failed
				} else if other {
					return enrolled, err
				}
			}
		case pause > 0:
			env.log.Warn("the service asks to be asked again later", "error", err, "after", pause.Round(time.Second))
		default:
			return enrolled, withSerial(env.ctx, e.Device, err)
		}
		select {
		case <-env.ctx.Done():
			return enrolled, err
		case <-time.After(pause):
		}
	}
}

// withSerial adds the serial number to the error of a device that lost its identity, so
// that a person finds its asset.
func withSerial(ctx context.Context, d agent.Device, err error) error {
	if !errors.Is(err, agent.ErrLost) {
		return err
	}
	return fmt.Errorf("%w: its serial number is %q: enroll it with a code of the same service (muster-agent enroll)", err,
		agent.SerialNumber(ctx, d))
}

// maxBundle is more than a code can hold.
const maxBundle = 64 << 10

// takeBundle reads a code's text from a file and deletes the file, also if it is not
// valid: other users may reach the file, and its token must not be used twice.
func takeBundle(path string) (protocol.Code, error) {
	text, err := readBundle(path)
	if errors.Is(err, fs.ErrNotExist) {
		return protocol.Code{}, err
	}
	if removed := os.Remove(path); removed != nil {
		return protocol.Code{}, fmt.Errorf("the bundle must be deleted before it is used: %w", removed)
	}
	if err != nil {
		return protocol.Code{}, err
	}
	return protocol.ParseCode(string(text))
}

func readBundle(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxBundle {
		return nil, fmt.Errorf("%s is not a file with the text of a code", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxBundle))
}
