package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
)

// commandsFile is what every command comes to from every state of the journal.
const commandsFile = "../../android/test/commands.tsv"

// commandsNow is when the commands of the table arrive, in Unix milliseconds.
const commandsNow = 1_795_000_000_000

const (
	// unreadable is a command whose arguments are not what its type has.
	unreadable = "UNREADABLE"
	// tooLarge is one that no journal can keep. Another comes beside it.
	tooLarge = "TOO_LARGE"
)

func commandTypes() []string {
	return []string{"NOTIFICATION_MESSAGE", "STATUS_REPORT", "LOCATION_UPDATE", "SYNC_POLICY", "CHANGE_POLICY", "REBOOT",
		"SHUTDOWN", "LAUNCH_APP",
		"WIPE_COMPANY_DATA", "RELINQUISH_OWNERSHIP", "UPLOAD_LOG", "UNKNOWN", unreadable, tooLarge}
}

// commandOf is the command of a type in the table.
func commandOf(kind string, late bool) protocol.Command {
	c := protocol.Command{DeviceID: "d1", ID: "c1", Type: kind,
		Args:      json.RawMessage(`{"title":"t","body":"b\nb\t\u2028\u0000b","packageName":"p"}`),
		NotBefore: 1, Deadline: commandsNow + 10*time.Hour.Milliseconds()}
	if late {
		c.Deadline = commandsNow - time.Hour.Milliseconds()
	}
	switch kind {
	case unreadable:
		c.Type, c.Args = "NOTIFICATION_MESSAGE", json.RawMessage(`{"title":1}`)
	case tooLarge:
		c.Type, c.Args = "NOTIFICATION_MESSAGE", json.RawMessage(`{"title":"t","body":"`+strings.Repeat("x", 70<<10)+`"}`)
	}
	return c
}

func journalStages(kind string) []string {
	if kind == tooLarge {
		return []string{"NEW"}
	}
	return []string{"NEW", "RECEIVED", "ACCEPTED", "STARTED", "STARTED_LONG_AGO", "STARTED_BEFORE_BOOT", "DONE", "FAILED", "CONFIRMED"}
}

// entryAt is the command's entry in the journal at a stage; false: it has none.
func entryAt(stage string, c protocol.Command) (e agent.Entry, has bool) {
	const second = 1000
	e = agent.Entry{Command: c, Stage: agent.Received, At: commandsNow - 60*second}
	started := func(boot string, ago int64) {
		e.Stage, e.Accepted, e.BootID, e.At = agent.Started, true, boot, commandsNow-ago
	}
	finished := func(how protocol.AckState, outcome string) {
		started("boot-1", 60*second)
		e.Stage, e.Result, e.Outcome = agent.Done, how, outcome
	}
	switch stage {
	case "NEW":
		return e, false
	case "ACCEPTED":
		e.Accepted = true
	case "STARTED":
		started("boot-1", second)
	case "STARTED_LONG_AGO":
		started("boot-1", 600*second)
	case "STARTED_BEFORE_BOOT":
		started("boot-0", 600*second)
	case "DONE":
		finished(protocol.Done, "did")
	case "FAILED":
		finished(protocol.Failed, "no")
	case "CONFIRMED":
		finished(protocol.Done, "did")
		e.Stage = agent.Confirmed
	}
	return e, true
}

// circumstances are when the command arrives, what the service does at first (it
// answers, is away, or does not confirm), and what the device answers.
func circumstances(kind string) []string {
	all := []string{"late,answers,does", "intime,answers,does", "intime,answers,refuses", "intime,answers,cannot", "intime,away,does",
		"intime,silent,does",
		"intime,silent,refuses"}
	if kind == "WIPE_COMPANY_DATA" {
		all = append(all, "intime,answers,orders", "intime,away,orders", "intime,silent,orders")
	}
	return all
}

// TestCommands_Golden: every command from every state of the journal, three
// times: at the start, a quarter of an hour later, and in a new process. The Android
// app's core is compared with this table. Each line: type, state, what happened, and
// the circumstances in which it is so.
func TestCommands_Golden(t *testing.T) {
	t.Parallel()
	key := vectorKey(t, "device")
	lines := []string{"# Written by internal/agent.TestCommands_Golden -update."}
	for _, kind := range commandTypes() {
		for _, stage := range journalStages(kind) {
			var outcomes []string
			when := map[string][]string{}
			for _, how := range circumstances(kind) {
				w := newCommandWorld(t, key, kind, stage, how)
				outcome := w.live()
				if when[outcome] == nil {
					outcomes = append(outcomes, outcome)
				}
				when[outcome] = append(when[outcome], how)
			}
			for _, outcome := range outcomes {
				lines = append(lines, strings.Join([]string{kind, stage, outcome, strings.Join(when[outcome], " ")}, "\t"))
			}
		}
	}
	text := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(commandsFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(commandsFile); err != nil || string(got) != text {
		t.Errorf("%s is another (%v): run the test with -update, and see that the app agrees", commandsFile, err)
	}
}

// commandWorld is a device, its service and the way between, for one command. It
// writes down what happens.
type commandWorld struct {
	t               *testing.T
	dir             string
	service, does   string
	key             protocol.PrivateKey // the service's
	document        protocol.Envelope
	commands        []protocol.Envelope
	now             time.Time
	check, checkIns int // which of the three times, and how many check-ins in all
	boot            string
	restarted, over bool // over: the service has the command's last word
	settings        map[string]string
	trace           []string
}

func newCommandWorld(t *testing.T, key protocol.PrivateKey, kind, stage, how string) *commandWorld {
	t.Helper()
	parts := strings.Split(how, ",")
	w := &commandWorld{t: t, key: key, dir: memoryDir(t), service: parts[1], does: parts[2], now: time.UnixMilli(commandsNow),
		boot:     "boot-1",
		settings: map[string]string{"CAMERA": "BLOCK"}}
	c := commandOf(kind, parts[0] == "late")
	w.commands, w.document = []protocol.Envelope{commandEnvelope(t, key, c)}, policyEnvelope(t, key)
	if kind == tooLarge {
		beside := commandOf("LAUNCH_APP", false)
		beside.ID = "c2"
		w.commands = append(w.commands, commandEnvelope(t, key, beside))
	}
	public, err := key.Public()
	if err != nil {
		t.Fatal(err)
	}
	secret, err := key.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	w.write("identity.json", object{"server": "https://muster.example", "deviceId": "d1", "role": "manager", "key": secret, "reserved": 1,
		"keyMade": commandsNow, "latest": commandsNow,
		"commandKeys": []protocol.CommandKey{{ID: "k1", Key: public, NotBefore: 1}}, "connection": object{}})
	w.write("applied.json", object{"policy": protocol.PolicyRef{ID: "p1", Version: 1}, "wanted": w.settings,
		"reported": true, "bootId": "boot-1",
		"settings": []protocol.SettingReport{{ID: "CAMERA", State: protocol.Applied}},
		"checkAt":  commandsNow + 24*time.Hour.Milliseconds()})
	if e, has := entryAt(stage, c); has {
		journal, err := agent.OpenJournal(filepath.Join(w.dir, "journal"), w.now)
		if err == nil {
			err = errors.Join(journal.Write(e), journal.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// memoryDir is a folder in memory where there is one: the table takes ten thousand
// writes that are forced to the disk.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "muster-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func commandEnvelope(t *testing.T, key protocol.PrivateKey, c protocol.Command) protocol.Envelope {
	t.Helper()
	sealed, err := protocol.Seal(key, "k1", protocol.KindCommand, c)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func policyEnvelope(t *testing.T, key protocol.PrivateKey) protocol.Envelope {
	t.Helper()
	sealed, err := protocol.Seal(key, "k1", protocol.KindPolicy,
		protocol.Policy{ID: "p1", CompanyID: "acme", Version: 1, Settings: map[string]string{"CAMERA": "BLOCK"}})
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func (w *commandWorld) write(name string, value any) {
	w.t.Helper()
	text, err := json.Marshal(value)
	if err == nil {
		err = os.WriteFile(filepath.Join(w.dir, name), text, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// edit changes members of a file of the agent.
func (w *commandWorld) edit(name string, changes object) {
	w.t.Helper()
	all := object{}
	if err := json.Unmarshal([]byte(w.kept(name)), &all); err != nil {
		w.t.Fatal(err)
	}
	maps.Copy(all, changes)
	w.write(name, all)
}

// clock is what the device's clock shows.
func (w *commandWorld) clock() time.Time { return w.now }

// kept is the text of a file of the agent; "" if there is none.
func (w *commandWorld) kept(name string) string {
	text, _ := os.ReadFile(filepath.Join(w.dir, name))
	return string(text)
}

func (w *commandWorld) record(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

// live is the three times. Between them is a quarter of an hour.
func (w *commandWorld) live() string {
	var a *agent.Agent
	for w.check = range 3 {
		if w.check > 0 {
			w.record("|")
			w.now = w.now.Add(15 * time.Minute)
		}
		if w.check == 2 || w.restarted {
			w.close(a)
			a, w.restarted = nil, false
		}
		if a == nil {
			var err error
			a, err = agent.New(agent.Options{Dir: w.dir, Device: w, Client: &http.Client{Transport: w},
				Now: func() time.Time { return w.now },
				Log: slog.New(slog.DiscardHandler), Kept: w})
			if errors.Is(err, agent.ErrNotEnrolled) {
				w.record("not_enrolled")
				return strings.Join(w.trace, " ")
			}
			if err != nil {
				w.t.Fatal(err)
			}
		}
		next, err := a.Once(w.t.Context())
		switch {
		case errors.Is(err, agent.ErrEnded):
			w.record("ended")
		case err != nil:
			w.record("error")
		default:
			w.record("next=%d", next/time.Second)
		}
	}
	w.close(a)
	journal, err := agent.LoadJournal(filepath.Join(w.dir, "journal"))
	if err != nil {
		w.t.Fatal(err)
	}
	if e, has := journal.Entry("c1"); has {
		w.record("journal=%s,%s", e.Stage, e.Result)
	}
	return strings.Join(w.trace, " ")
}

func (w *commandWorld) close(a *agent.Agent) {
	if a != nil {
		if err := a.Close(); err != nil {
			w.t.Fatal(err)
		}
	}
}

// RoundTrip implements http.RoundTripper: the service.
func (w *commandWorld) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if w.service == "away" && w.check == 0 {
		w.record("unreached")
		return nil, errors.New("away")
	}
	var answer any = w.document
	switch {
	case strings.HasSuffix(r.URL.Path, "/checkin"):
		answer = w.checkin(body, r.Header.Get(protocol.HeaderSequence))
	case r.Method == http.MethodPost:
		w.record("upload:%s,%s", strings.TrimPrefix(r.URL.RequestURI(), protocol.Base), body)
		answer = struct{}{}
	default:
		w.record("fetch:%s", strings.TrimPrefix(r.URL.RequestURI(), protocol.Base))
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, nil
}

// checkin writes down what the device reports, and answers. The command is handed out
// until the service has its last word.
func (w *commandWorld) checkin(body []byte, sequence string) protocol.CheckinResponse {
	var request protocol.CheckinRequest
	if err := json.Unmarshal(body, &request); err != nil {
		w.t.Error(err)
	}
	number, _ := strconv.ParseInt(sequence, 10, 64)
	assignment, err := protocol.Seal(w.key, "k1", protocol.KindAssignment,
		protocol.Assignment{DeviceID: "d1", CompanyID: "acme", PolicyID: "p1", Version: 1,
			Number: number, Time: w.now.UnixMilli()})
	if err != nil {
		w.t.Error(err)
	}
	line := "checkin:" + request.BootID
	answer := protocol.CheckinResponse{NextSeconds: 900, Assignment: &assignment}
	w.checkIns++
	hears := w.checkIns > 2 || w.service != "silent"
	for _, ack := range request.Acks {
		line += fmt.Sprintf("[%s,%s]", ack.State, strings.ReplaceAll(ack.Outcome, " ", "_"))
		if hears {
			answer.Acked = append(answer.Acked, ack.CommandID)
			w.over = w.over || ack.State != protocol.Accepted
		}
	}
	for _, part := range []struct {
		name    string
		present bool
	}{{"can", request.Capabilities != nil}, {"status", request.Status != nil}, {"location", request.Location != nil},
		{"policy", request.Policy != nil}} {
		if part.present {
			line += "[" + part.name + "]"
		}
	}
	w.record("%s", line)
	if !w.over {
		answer.Commands = w.commands
	}
	return answer
}

// refusal is what the device answers.
func (w *commandWorld) refusal() error {
	switch w.does {
	case "refuses":
		return errors.New("no\n\tway\u2028out\x00")
	case "cannot":
		return agent.ErrUnsupported
	case "inapplicable":
		return agent.ErrNotApplicable
	case "orders":
		return agent.ErrOrdered
	}
	return nil
}

// Text implements agent.Kept, or cannot.
func (w *commandWorld) Text() ([]byte, error) { return []byte("logged"), w.refusal() }

// Facts implements agent.Device.
func (w *commandWorld) Facts(context.Context) (protocol.Facts, error) {
	return protocol.Facts{}, nil
}

// Capabilities implements agent.Device.
func (w *commandWorld) Capabilities(context.Context) ([]protocol.Capability, error) {
	return []protocol.Capability{protocol.Notify}, nil
}

// BootID implements agent.Device.
func (w *commandWorld) BootID(context.Context) (string, error) { return w.boot, nil }

// Settings implements agent.Device.
func (w *commandWorld) Settings() []string { return []string{"CAMERA", "SMS"} }

// Read implements agent.Device.
func (w *commandWorld) Read(_ context.Context, setting string) (string, error) {
	return w.settings[setting], nil
}

// Apply implements agent.Device.
func (w *commandWorld) Apply(_ context.Context, setting, value string) error {
	w.record("set:%s=%s", setting, value)
	if err := w.refusal(); err != nil {
		return err
	}
	if w.does != "ignores" {
		w.settings[setting] = value
	}
	return nil
}

// Do implements agent.Device.
func (w *commandWorld) Do(_ context.Context, a agent.Action) (string, error) {
	var args struct{ Title, Body, PackageName string }
	if err := a.Read(&args); err != nil {
		return "", err
	}
	line := "do:" + a.Type
	body := strings.NewReplacer("\n", "[n]", "\t", "[t]", "\u2028", "[2028]", "\x00", "[0]").Replace(args.Body)
	for _, argument := range []string{a.CommandID, args.Title, body, args.PackageName} {
		if argument != "" {
			line += "," + argument
		}
	}
	if a.Again {
		line += ",again"
	}
	w.record("%s", line)
	if err := w.refusal(); err != nil {
		return "", err
	}
	if slices.Contains([]string{agent.Restart, agent.PowerOff}, a.Type) {
		w.boot, w.restarted = fmt.Sprintf("boot-%d", 2+w.check), true
	}
	return "did", nil
}

// Report implements agent.Device.
func (w *commandWorld) Report(_ context.Context, groups agent.Reporting) (agent.Report, error) {
	report := agent.Report{Values: json.RawMessage(`{"batteryLevel":80}`)}
	w.record("report")
	if groups.Location {
		w.trace[len(w.trace)-1] = "locate"
		report.Location = &protocol.Location{Latitude: 1, Longitude: 2, AccuracyMeters: 3, At: w.now.UnixMilli()}
	}
	return report, w.refusal()
}
