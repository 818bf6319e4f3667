package agent_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/test/expect"
)

// newProgram is a file of an update, of three ranges.
var newProgram = bytes.Repeat([]byte("program "), 320<<10)

// updateWorld is a service that offers an update, and notes how long each request of its
// file was open.
type updateWorld struct {
	*commandWorld
	mu     sync.Mutex
	held   []time.Duration
	change func(*protocol.Update) // of what it offers; nil: nothing
	ranges func(r *http.Request, from, to int64) (*http.Response, error)
}

// RoundTrip implements http.RoundTripper.
func (w *updateWorld) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/wake"):
		return nil, errAway
	case strings.Contains(r.URL.Path, "/file/"):
		began := time.Now()
		context.AfterFunc(r.Context(), func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.held = append(w.held, time.Since(began))
		})
		var from, to int64
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); err != nil {
			w.t.Error(err)
		}
		return w.ranges(r, from, to)
	case !strings.HasSuffix(r.URL.Path, "/checkin"):
		return w.commandWorld.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseInt(r.Header.Get(protocol.HeaderSequence), 10, 64)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	answer := w.checkin(body, r.Header.Get(protocol.HeaderSequence))
	w.mu.Unlock()
	sum := sha256.Sum256(newProgram)
	offer := protocol.Update{DeviceID: "d1", Package: "test", Version: "2", Code: 2, Number: number,
		File: protocol.File{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(newProgram))}, Time: w.now.UnixMilli()}
	if w.change != nil {
		w.change(&offer)
	}
	sealed, err := protocol.Seal(w.key, "k1", protocol.KindUpdate, offer)
	if err != nil {
		return nil, err
	}
	answer.Commands, answer.Update = nil, &sealed
	text, err := json.Marshal(answer)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, err
}

// part answers a range with a body, under the name of another range.
func part(r *http.Request, from, to int64, body io.ReadCloser) *http.Response {
	h := http.Header{"Content-Range": {fmt.Sprintf("bytes %d-%d/%d", from, to, len(newProgram))}}
	return &http.Response{StatusCode: http.StatusPartialContent, Header: h, Body: body, Request: r}
}

// noInstaller installs nothing.
type noInstaller struct{}

func (noInstaller) Package() string                     { return "test" }
func (noInstaller) Code() int64                         { return 1 }
func (noInstaller) Check(string, protocol.Update) error { return errors.New("not installed here") }
func (noInstaller) Install(context.Context, string, protocol.Update) error {
	return errors.New("not installed here")
}

// A download whose answers drip, or never begin, holds each of its requests for two minutes
// and no longer, asks a few times until the next check-in, and holds back no check-in.
func TestUpdate_ExchangesEnd(t *testing.T) {
	for name, ranges := range map[string]func(r *http.Request, from, to int64) (*http.Response, error){
		"the body drips": func(r *http.Request, from, to int64) (*http.Response, error) {
			return part(r, from, to, drip{r.Context()}), nil
		},
		"no answer": func(r *http.Request, _, _ int64) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &updateWorld{commandWorld: newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does"),
				ranges: ranges}
			a, err := agent.New(agent.Options{Dir: w.dir, Device: w, Client: &http.Client{Transport: w}, Installer: noInstaller{},
				Now: time.Now, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- a.Run(ctx) }()
			time.Sleep(time.Hour)
			w.mu.Lock()
			held, checkIns := w.held, w.checkIns
			w.mu.Unlock()
			if len(held) < 5 || len(held) > 30 || checkIns < 3 {
				t.Errorf("%s: %d requests of the file in an hour, beside %d check-ins", name, len(held), checkIns)
			}
			for _, one := range held {
				if one > 2*time.Minute+time.Second {
					t.Errorf("%s: a request was open for %s", name, one)
				}
			}
			cancel()
			<-ended
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// restarts is an installer that installs by ending the process.
type restarts struct {
	noInstaller
	installed []string // the versions
}

func (*restarts) Check(string, protocol.Update) error { return nil }
func (r *restarts) Install(_ context.Context, _ string, u protocol.Update) error {
	r.installed = append(r.installed, u.Version)
	return agent.ErrRestart
}

// newUpdateWorld is a service that has the file, and sends each range of it whole.
func newUpdateWorld(t *testing.T) *updateWorld {
	t.Helper()
	return &updateWorld{commandWorld: newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does"),
		ranges: func(r *http.Request, from, to int64) (*http.Response, error) {
			to = min(to+1, int64(len(newProgram)))
			return part(r, from, to-1, io.NopCloser(bytes.NewReader(newProgram[from:to]))), nil
		}}
}

// agentWith is the agent of the device, with an installer.
func (w *updateWorld) agentWith(installer agent.Installer) *agent.Agent {
	w.t.Helper()
	a, err := agent.New(agent.Options{Dir: w.dir, Device: w, Client: &http.Client{Transport: w}, Installer: installer, Now: time.Now,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// An update is downloaded, reported as ready, and then installed.
func TestUpdate_IsInstalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, installs, began := newUpdateWorld(t), &restarts{}, time.Now()
		a := w.agentWith(installs)
		defer w.close(a)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := a.Run(ctx); !errors.Is(err, agent.ErrRestart) || time.Since(began) > time.Minute {
			t.Errorf("it ended with %v after %s", err, time.Since(began))
		}
		if len(installs.installed) != 1 || installs.installed[0] != "2" {
			t.Errorf("installed: %q", installs.installed)
		}
	})
}

// An update that failed rests for a day. A time that a wrong clock has noted, which is farther away, holds back nothing.
func TestUpdate_RestsForADay(t *testing.T) {
	for until, want := range map[time.Duration]error{20 * time.Hour: context.DeadlineExceeded, 365 * 24 * time.Hour: agent.ErrRestart} {
		synctest.Test(t, func(t *testing.T) {
			w := newUpdateWorld(t)
			sum := sha256.Sum256(newProgram)
			w.write("update.json", object{"stage": "over", "state": "failed", "told": true, "until": time.Now().Add(until).UnixMilli(),
				"want": protocol.Update{Version: "2", Code: 2, File: protocol.File{SHA256: hex.EncodeToString(sum[:]),
					Size: int64(len(newProgram))}}})
			a := w.agentWith(&restarts{})
			defer w.close(a)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			if err := a.Run(ctx); !errors.Is(err, want) {
				t.Errorf("until %s later: it ended with %v, want %v", until, err, want)
			}
		})
	}
}

// withoutRoom is an installer beside a disk that is full when an installation begins: a folder is in the place of its note.
type withoutRoom struct {
	restarts
	note   string
	checks int
}

// Check implements agent.Installer.
func (i *withoutRoom) Check(string, protocol.Update) error {
	if i.checks++; i.checks != 2 {
		return nil
	}
	return errors.Join(os.Remove(i.note), os.Mkdir(i.note, 0o700))
}

// An installation whose beginning cannot be written down begins later. Until then the agent checks in as usual.
func TestUpdate_BeginningThatCannotBeNoted(t *testing.T) {
	t.Parallel()
	w := newUpdateWorld(t)
	installs := &withoutRoom{note: filepath.Join(w.dir, "update.json")}
	a := w.agentWith(installs)
	defer w.close(a)
	if next, err := a.Once(t.Context()); err != nil || next < time.Minute || installs.checks != 2 {
		t.Errorf("with a full disk: again after %s, %v, after %d checks of the file", next, err, installs.checks)
	}
	if err := os.Remove(installs.note); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Once(t.Context()); !errors.Is(err, agent.ErrRestart) || len(installs.installed) != 1 {
		t.Errorf("when there is room again: %v, installed: %q", err, installs.installed)
	}
}

// confirms is a service that has each report of an update.
type confirms struct {
	*commandWorld
	reports []protocol.UpdateState
}

// RoundTrip implements http.RoundTripper.
func (c *confirms) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	response, err := c.commandWorld.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/checkin") {
		return response, err
	}
	var request protocol.CheckinRequest
	var answer protocol.CheckinResponse
	if err := errors.Join(json.Unmarshal(body, &request), json.NewDecoder(response.Body).Decode(&answer)); err != nil {
		return nil, err
	}
	if answer.UpdateTold = request.Update; request.Update != nil {
		c.reports = append(c.reports, request.Update.State)
	}
	text, err := json.Marshal(answer)
	response.Body = io.NopCloser(bytes.NewReader(text))
	return response, err
}

// That the service has the report of an update is noted at a later check-in if the disk is full. The agent checks in as usual
// and does what it is told.
func TestUpdate_DeliveryThatCannotBeNoted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stage string
		code  int64 // that runs; the update is to 2
		state protocol.UpdateState
	}{{"over", 1, protocol.UpdateFailed}, {"began", 2, protocol.UpdateInstalled}} {
		w := &confirms{commandWorld: newCommandWorld(t, vectorKey(t, "device"), "LAUNCH_APP", "NEW", "intime,answers,does")}
		w.write("update.json", object{"stage": c.stage, "state": c.state, "want": protocol.Update{Version: "2", Code: 2}})
		a, err := agent.New(agent.Options{Dir: w.dir, Device: w, Client: &http.Client{Transport: w}, Installer: installed{code: c.code},
			Now: func() time.Time { return w.now }, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer w.close(a)
		note := filepath.Join(w.dir, "update.json") // no file can take a folder's place
		if err := errors.Join(os.Remove(note), os.Mkdir(note, 0o700)); err != nil {
			t.Fatal(err)
		}
		next, err := a.Once(t.Context())
		if trace := strings.Join(w.trace, " "); err != nil || next < time.Minute || strings.Count(trace, "do:LAUNCH_APP") != 1 {
			t.Errorf("%s, with a full disk: again after %s, %v: %s", c.stage, next, err, trace)
		}
		if err := os.Remove(note); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Once(t.Context()); err != nil {
			t.Errorf("%s, when there is room again: %v", c.stage, err)
		}
		reported := len(w.reports)
		if _, err := a.Once(t.Context()); err != nil {
			t.Errorf("%s, afterwards: %v", c.stage, err)
		}
		text, err := os.ReadFile(note)
		if err != nil {
			t.Fatal(err)
		}
		var noted struct {
			Stage string
			State protocol.UpdateState
			Told  bool
		}
		if err := json.Unmarshal(text, &noted); err != nil {
			t.Fatal(err)
		}
		expect.Equal(t, c.stage, expect.Values{"stage": {noted.Stage, "over"}, "state": {noted.State, c.state}, "told": {noted.Told, true},
			"reported until it was noted": {reported >= 2, true}, "reports after that": {len(w.reports) - reported, 0}})
	}
}

// backAt is a service that is out of reach until a moment.
type backAt struct {
	http.RoundTripper
	at time.Time
}

// RoundTrip implements http.RoundTripper.
func (b backAt) RoundTrip(r *http.Request) (*http.Response, error) {
	if time.Now().Before(b.at) {
		return nil, errAway
	}
	return b.RoundTripper.RoundTrip(r)
}

// A new version on trial has ten minutes to be in touch: it tries at least each half minute, however long the service was away.
func TestTrial_ServiceComesBack(t *testing.T) {
	for _, away := range []time.Duration{7 * time.Minute, 8 * time.Minute, 9 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			w := newUpdateWorld(t)
			began := time.Now()
			a, err := agent.New(agent.Options{Dir: w.dir, Device: w, Client: &http.Client{Transport: backAt{w, began.Add(away)}},
				Trial: true, Installer: installed{code: 2}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			defer w.close(a)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			err = a.Run(ctx)
			if took := time.Since(began); !errors.Is(err, agent.ErrProved) || took > away+time.Minute {
				t.Errorf("away for %s: it ended with %v after %s", away, err, took)
			}
		})
	}
}

// A new version on trial goes on until it is written down that it is in touch: the version before it reads that.
func TestTrial_EndsWhenItIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newUpdateWorld(t)
		w.write("update.json", object{"stage": "began", "want": protocol.Update{Version: "2", Code: 2}})
		a, err := agent.New(agent.Options{Dir: w.dir, Device: w, Client: &http.Client{Transport: w}, Trial: true,
			Installer: installed{code: 2}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer w.close(a)
		note := filepath.Join(w.dir, "update.json")
		if err := errors.Join(os.Remove(note), os.Mkdir(note, 0o700)); err != nil {
			t.Fatal(err)
		}
		began, full := time.Now(), 5*time.Minute
		time.AfterFunc(full, func() {
			if err := os.Remove(note); err != nil {
				t.Error(err)
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err = a.Run(ctx)
		if took := time.Since(began); !errors.Is(err, agent.ErrProved) || took < full || took > full+time.Minute || !agent.Proved(w.dir) {
			t.Errorf("it ended with %v after %s; in touch, as noted: %t", err, took, agent.Proved(w.dir))
		}
	})
}
