package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
)

// A command is one line of data of an event of its type. Other data is a hint, and everything else shows that the service is
// there.
func TestEvents(t *testing.T) {
	t.Parallel()
	const command = `data: {"keyId":"k1"}` + "\n"
	long := func(size int) string {
		return fmt.Sprintf(`data: {"keyId":"k1","payload":%q}`+"\n", strings.Repeat("x", size))
	}
	for name, test := range map[string]struct{ stream, want string }{
		"a comment":                {": here\n", "alive"},
		"data":                     {"data: x\n\n", "hint alive"},
		"data without a value":     {"data\n", "hint"},
		"a command":                {"event: command\n" + command + "\n", "alive k1 alive"},
		"a command without spaces": {"event:command\ndata:{\"keyId\":\"k1\"}\n", "alive k1"},
		"a command of another system": {"event: command\r\n" +
			strings.TrimSpace(command) + "\r\n\r\n" + command, "alive k1 alive hint"},
		"another type":                    {"event: other\n" + command, "alive hint"},
		"another type after it":           {"event: command\nevent: other\n" + command, "alive alive hint"},
		"without a type":                  {command, "hint"},
		"after an event":                  {"event: command\n\n" + command, "alive alive hint"},
		"a comment within":                {"event: command\n: here\n" + command, "alive alive k1"},
		"a comment before":                {": here\n" + command, "alive hint"},
		"two commands":                    {"event: command\n" + command + command, "alive k1 k1"},
		"not a command":                   {"event: command\ndata: x\n", "alive hint"},
		"an unknown field":                {"id: 1\n", "alive"},
		"a long command":                  {"event: command\n" + long(10_000) + "data:\n", "alive k1 hint"},
		"the longest command":             {"event: command\n" + long(protocol.MaxStreamCommand-27) + "data:\n", "alive k1 hint"},
		"a command that is too long":      {"event: command\n" + long(2*protocol.MaxStreamCommand) + "data:\n", "alive hint hint"},
		"a comment that fills the buffer": {":" + strings.Repeat(" ", 254) + "\ndata:\n", "alive hint"},
		"padding":                         {":" + strings.Repeat(" ", 1000) + "\n" + command, "alive hint"},
		"half a line":                     {"data: x", ""},
	} {
		if got := strings.Join(agent.Events(test.stream), " "); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// Commands of the stream that a key signed which the device does not know wait for the check-in that announces it: as many as
// have a place.
func TestOffered_UnknownKey(t *testing.T) {
	t.Parallel()
	next := vectorKey(t, "next")
	d := &interrupted{commandWorld: newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,away,does"), end: func() {}}
	f := forger{t: t}
	d.commands = nil
	announced := f.seal(d.key, "k1", protocol.KindKey, protocol.CommandKey{ID: "k2", Key: f.public(next), NotBefore: commandsNow})
	a := d.agentFor(d, d.answers(func(answer *protocol.CheckinResponse, _ int64) { answer.Keys = []protocol.Envelope{announced} }))
	defer d.close(a)
	for round := range 2 { // the service is away
		for i := range 15 {
			c := commandOf("LAUNCH_APP", false)
			c.ID = fmt.Sprintf("c%d-%d", round, i)
			a.Offered(f.seal(next, "k2", protocol.KindCommand, c))
		}
		if _, err := a.Once(t.Context()); err == nil {
			t.Fatal("the check-in was answered")
		}
	}
	d.service = "answers"
	for range 2 {
		if _, err := a.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(strings.Join(d.trace, " "), "do:LAUNCH_APP"); n != 20 {
		t.Errorf("%d commands are carried out, want 20", n)
	}
}

// open is the body of a stream that says something and then stays open.
type open struct {
	io.Reader
	ctx context.Context
}

func (o open) Read(p []byte) (int, error) {
	if n, err := o.Reader.Read(p); err == nil {
		return n, nil
	}
	<-o.ctx.Done()
	return 0, o.ctx.Err()
}

func (open) Close() error { return nil }

// What the stream brings is done at once: a command without another check-in before it, a hint with one.
func TestRun_Stream(t *testing.T) {
	for says, want := range map[string]struct{ checkIns, did int }{": here\n": {1, 0}, "data:\n\n": {2, 0}, "command": {2, 1}} {
		synctest.Test(t, func(t *testing.T) {
			w := newUpdateWorld(t)
			if says == "command" {
				c := commandOf("LAUNCH_APP", false)
				c.Deadline = 0
				text, err := json.Marshal(commandEnvelope(t, w.key, c))
				if err != nil {
					t.Fatal(err)
				}
				says = "event: command\ndata: " + string(text) + "\n\n"
			}
			a := (&interrupted{commandWorld: w.commandWorld}).agentFor(w, roundTripper(func(r *http.Request) (*http.Response, error) {
				if !strings.HasSuffix(r.URL.Path, "/wake") {
					return w.RoundTrip(r)
				}
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r,
					Body: open{strings.NewReader(says), r.Context()}}, nil
			}))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_ = a.Run(ctx)
			w.close(a)
			if n := strings.Count(strings.Join(w.trace, " "), "do:LAUNCH_APP"); w.checkIns != want.checkIns || n != want.did {
				t.Errorf("%q: %d check-ins, %d commands done, want %v", says, w.checkIns, n, want)
			}
		})
	}
}
