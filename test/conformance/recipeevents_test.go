package conformance_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/test/port"
)

const loopback = "127.0.0.0/8"

// toLoopback lets webhooks send to receivers on this computer.
func toLoopback(c *config.Service, _ *service.Options) {
	c.WebhookNetworks.WebhookNetworks = []string{loopback}
}

// background is a program that runs until it is killed.
type background struct {
	out  *output
	kill func()
}

// begin starts commands with further variables of the environment.
func (r recipes) begin(commands string, environment ...string) background {
	r.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	shell := r.shell(ctx, commands)
	shell.Env = append(shell.Env, environment...)
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) } // also what the shell started
	p := background{out: &output{}}
	shell.Stdout, shell.Stderr = p.out, p.out
	if err := shell.Start(); err != nil {
		cancel()
		r.Fatal(err)
	}
	p.kill = func() {
		cancel()
		_ = shell.Wait() // says that it was killed
	}
	r.Cleanup(p.kill)
	return p
}

// prints waits until a program has printed a text a number of times.
func (r recipes) prints(p background, text string, times int) {
	r.Helper()
	r.Eventually(fmt.Sprintf("the output has %q", text), func() error {
		if sofar := p.out.String(); strings.Count(sofar, text) != times {
			return fmt.Errorf("it is %q, want %d times", sofar, times)
		}
		return nil
	})
}

// fallsSilent has a device become INACTIVE, again if it already was.
func (r recipes) fallsSilent(d *servertest.AgentDevice) {
	r.Helper()
	d.MustCheckIn()
	if n, err := r.DB().MarkInactive(r.Context(), r.Company.ID, r.Now().Add(time.Minute), 10); err != nil || n != 1 {
		r.Fatalf("%d devices became INACTIVE, %v", n, err)
	}
}

// receiveEvents: the receiver reads the device that fell silent, answers 401 to what is not signed,
// and passes over an event that it has handled, also after a restart.
func receiveEvents(r recipes) {
	r.Helper()
	number := strconv.Itoa(port.Reserve(r.T))
	r.Policy = r.AgentPolicy(r.Company, "Kiosk")
	device := r.AgentDevice(r.service)
	var made struct{ ID, Secret string }
	r.CLI(&made, "webhook", "create", "--company", "acme", "--url", "http://127.0.0.1:"+number+"/", "--event", "device.silent",
		"--webhook-networks", loopback)
	command, secret := r.with(r.receive, "8080", number), "MUSTER_WEBHOOK_SECRET="+made.Secret
	receiver := r.begin(command, secret)
	r.prints(receiver, "listening on port "+number, 1)
	r.fallsSilent(device)
	line := device.AssetID + "\t"
	r.prints(receiver, line, 1)
	receiver.kill()
	receiver = r.begin(command, secret)
	r.prints(receiver, "listening on port "+number, 1)
	var tried []struct{ EventID, Outcome, After string }
	deliveries := func() { r.CLI(&tried, "webhook", "deliveries", "--company", "acme", made.ID) }
	deliveries()
	r.CLI(new(any), "webhook", "replay", "--company", "acme", made.ID, "--after", tried[0].After)
	r.Eventually("the repetition is delivered", func() error {
		if deliveries(); len(tried) != 2 || tried[0].Outcome != "DELIVERED" || tried[0].EventID != tried[1].EventID {
			return fmt.Errorf("deliveries are %+v", tried)
		}
		return nil
	})
	r.fallsSilent(device)
	r.prints(receiver, line, 1) // of the new event
	answer, err := http.Post("http://127.0.0.1:"+number, "application/json", strings.NewReader(`{}`))
	if err != nil || answer.StatusCode != http.StatusUnauthorized {
		r.Fatalf("what is not signed is answered %v, %v", answer, err)
	}
	_ = answer.Body.Close()
}

// followEvents: a program that follows the feed reads the device that fell silent, goes on where it
// stopped, and with the oldest event where its cursor is not known.
func followEvents(r recipes) {
	r.Helper()
	r.Policy = r.AgentPolicy(r.Company, "Kiosk")
	device := r.AgentDevice(r.service)
	kept := filepath.Join(r.dir, "cursor.txt")
	follower := r.begin(r.follow)
	r.Eventually("a cursor is kept", func() error {
		_, err := os.Stat(kept)
		return err
	})
	r.fallsSilent(device)
	line := device.AssetID + "\t"
	r.prints(follower, line, 1)
	follower.kill()
	r.fallsSilent(device) // while nothing follows
	follower = r.begin(r.follow)
	r.prints(follower, line, 1)
	follower.kill()
	if err := os.WriteFile(kept, []byte("of-another-history"), 0o600); err != nil {
		r.Fatal(err)
	}
	follower = r.begin(r.follow)
	r.prints(follower, line, 2)
	r.prints(follower, "some events are gone: ", 1)
	r.fallsSilent(device)
	r.prints(follower, line, 3)
}
