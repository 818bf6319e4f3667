package agentserver_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
)

// saying is a log with this text.
type saying string

// Text implements agent.Kept.
func (s saying) Text() ([]byte, error) { return []byte(s), nil }

// logging enrolls a device that has logged a text.
func (w *world) logging(text string) *phone {
	w.t.Helper()
	p := w.enroll(protocol.ES256)
	p.options.Kept = saying(text)
	_ = p.agent.Close()
	p.start()
	p.mustCheckIn()
	return p
}

// logs are those of the device as an API key sees them.
func (p *phone) logs() []command.LogEntry {
	p.world.t.Helper()
	all, err := p.world.commands.ListLogs(p.world.t.Context(), p.world.call, asset.Target{AssetID: p.assetID})
	if err != nil {
		p.world.t.Fatal(err)
	}
	return all.Logs
}

// A log is uploaded for a command alone, and can be read once the command has succeeded.
// What a device sends is text without what controls or hides.
func TestUploadLog_Once(t *testing.T) {
	w := newWorld(t)
	p := w.logging("first\ttab\x00\xff\u202e\r\nsecond <b>\n")
	if logs := p.logs(); len(logs) != 0 {
		t.Fatalf("without a command there are %v", logs)
	}
	p.send(command.UploadLog, nil)
	p.mustCheckIn()
	if c := p.latest(); c.State != command.Succeeded || c.Outcome != "log uploaded" {
		t.Fatalf("%s: %s", c.State, c.Outcome)
	}
	logs := p.logs()
	if len(logs) != 1 || logs[0].ID != p.latest().ID {
		t.Fatalf("the logs are %v", logs)
	}
	got, err := w.commands.ReadLog(t.Context(), w.call, command.LogArgs{Target: asset.Target{AssetID: p.assetID}, LogID: logs[0].ID})
	if want := "first tab?\nsecond <b>\n"; err != nil || got.PlainText() != want || got.Bytes != len(want) {
		t.Errorf("the text is %q of %d bytes, want %q: %v", got.PlainText(), got.Bytes, want, err)
	}
	other := w.logging("other")
	for name, args := range map[string]command.LogArgs{
		"of another device": {Target: asset.Target{AssetID: other.assetID}, LogID: logs[0].ID},
		"that is none":      {Target: asset.Target{AssetID: p.assetID}, LogID: "none"},
	} {
		if _, err := w.commands.ReadLog(t.Context(), w.call, args); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("a log %s: %v", name, err)
		}
	}
	foreign := w.call
	foreign.Principal.CompanyID = "another"
	if _, err := w.commands.ListLogs(t.Context(), foreign, asset.Target{AssetID: p.assetID}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("another company lists them: %v", err)
	}
}

// An answer that is lost has the log sent again, and it is kept once; a crash before the
// end of the command does the same.
func TestUploadLog_LostAnswerAndCrash(t *testing.T) {
	w := newWorld(t)
	p := w.logging("kept")
	var uploads atomic.Int32
	w.losing(func(r *http.Request) bool {
		return strings.Contains(r.URL.Path, "/log/") && uploads.Add(1) == 1
	})
	p.send(command.UploadLog, nil)
	if err := p.checkIn(); err == nil {
		t.Fatal("the answer was lost, and the agent did not notice")
	}
	p.options.Crash = func(step string) {
		if step == "before done" {
			panic(step)
		}
	}
	_ = p.agent.Close()
	p.start()
	func() {
		defer func() { _ = recover() }()
		_ = p.checkIn()
	}()
	p.options.Crash = nil
	_ = p.agent.Close()
	p.start()
	p.mustCheckIn()
	if c := p.latest(); c.State != command.Succeeded || len(p.logs()) != 1 || uploads.Load() != 3 {
		t.Errorf("%s after %d uploads, with the logs %v", c.State, uploads.Load(), p.logs())
	}
}

// Without an open command no log is taken: not for another command, another device's, or
// one that is over; and a device that says it is done has to have sent one.
func TestUploadLog_Refusals(t *testing.T) {
	w := newWorld(t)
	p, other := w.logging("mine"), w.logging("other")
	other.send(command.UploadLog, nil)
	p.send(command.SyncPolicy, nil)
	for name, id := range map[string]string{"none": "none", "another's": other.latest().ID, "of another type": p.latest().ID} {
		err := w.link.KeepLog(t.Context(), w.device(p), id, []byte("x"))
		if refused, ok := errors.AsType[*protocol.Refusal](err); !ok || refused.Code != protocol.NotFound {
			t.Errorf("a log for a command that is %s: %v", name, err)
		}
	}
	p.mustCheckIn()
	p.options.Kept = nil
	_ = p.agent.Close()
	p.start()
	p.send(command.UploadLog, nil)
	p.mustCheckIn()
	if c := p.latest(); c.State != command.Failed || !strings.Contains(c.Outcome, "keeps no log") {
		t.Errorf("an agent without a log: %s: %s", c.State, c.Outcome)
	}
	p.send(command.UploadLog, nil)
	if _, err := w.link.Hear(t.Context(), w.device(p),
		protocol.CheckinRequest{Acks: []protocol.Ack{{CommandID: p.latest().ID, State: protocol.Done}}}); err != nil {
		t.Fatal(err)
	}
	if c := p.latest(); c.State != command.Failed || c.Outcome != "the device sent no log" || len(p.logs()) != 0 {
		t.Errorf("a device that only says so: %s: %s", c.State, c.Outcome)
	}
}

// A body without end is cut off at the limit, before anything is kept, and costs no more
// than that.
func TestUploadLog_EndlessBody(t *testing.T) {
	w := newWorld(t)
	p := w.logging("x")
	var sent atomic.Int64
	body := io.LimitReader(reading(func(b []byte) (int, error) {
		sent.Add(int64(len(b)))
		return copy(b, bytes.Repeat([]byte{'x'}, len(b))), nil
	}), 1<<30)
	response, err := http.Post(w.server.URL+protocol.Base+"/log/"+p.assetID, "text/plain", body)
	if err == nil {
		defer response.Body.Close()
	}
	if err == nil && response.StatusCode != http.StatusBadRequest || sent.Load() > 64<<20 {
		t.Errorf("%v, %v, after %d bytes", response, err, sent.Load())
	}
}

// reading is a reader.
type reading func([]byte) (int, error)

// Read implements io.Reader.
func (r reading) Read(b []byte) (int, error) { return r(b) }
