package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"time"

	"github.com/musterhq/muster/internal/agent/download"
	"github.com/musterhq/muster/internal/agent/protocol"
)

// Installer installs updates of the agent.
type Installer interface {
	// Package is what it installs: updates for another are refused.
	Package() string
	// Code is the number of the version that runs.
	Code() int64
	// Check refuses a file that must not be installed: of another signer, for another
	// package, or not the version that the update names.
	Check(path string, u protocol.Update) error
	// Install begins. After ErrRestart the new version runs in a process of its own, and
	// this one must end; any other error means that the version before runs on.
	Install(ctx context.Context, path string, u protocol.Update) error
}

// ErrRestart is returned by Once and Run when an update is to be installed.
var ErrRestart = errors.New("the agent is to be started again in another version")

// ErrProved is returned by Run of a trial.
var ErrProved = errors.New("the new version is in touch")

const (
	// maxUpdate is the size of an update, in bytes.
	maxUpdate = 64 << 20
	// maxTries is how often an update is tried until it has failed.
	maxTries = 3
	// tryAgain is how long an update that failed rests.
	tryAgain = 24 * time.Hour
	// fetchTries is how often a download goes on until the next check-in.
	fetchTries = 5

	updateFile   = "update.json"
	programFile  = "update"      // what was downloaded
	downloadPart = "update.part" // what there is of it
)

// stage is how far an update is.
type stage string

const (
	wanted   stage = "wanted"
	verified stage = "verified"
	began    stage = "began"
	over     stage = "over"
)

// update is what the agent notes of an update.
type update struct {
	Want      protocol.Update      `json:"want"`
	Stage     stage                `json:"stage"`
	State     protocol.UpdateState `json:"state,omitempty"` // of one that is over
	Detail    string               `json:"detail,omitempty"`
	Delivered bool                 `json:"told,omitempty"` // the service has it
	Tries     int                  `json:"tries,omitempty"`
	Until     int64                `json:"until,omitempty"` // Unix milliseconds: it rests until then
}

// updates follows the service's updates. Its methods are called under the agent's lock,
// but for those of the download.
type updates struct {
	agent    *Agent
	now      update
	sent     bool // by this process, since the stage changed
	fetching bool
	fetched  chan error // of one place: how a download ended
}

// newUpdates opens what an agent before has noted.
func newUpdates(a *Agent) (*updates, error) {
	u := &updates{agent: a, fetched: make(chan error, 1)}
	err := a.store.load(updateFile, &u.now)
	if errors.Is(err, errDamaged) { // it repeats what the service knows
		u.now, err = update{}, a.store.remove(updateFile)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	installer := a.options.Installer
	switch {
	case installer == nil:
	case u.now.Stage == began && installer.Code() < u.now.Want.Code:
		// The process ended before the new version ran, or that did not start.
		return u, u.failed(errors.New("the new version did not start"))
	case (u.now.Stage == wanted || u.now.Stage == verified) && installer.Code() >= u.now.Want.Code:
		u.now = update{} // it was installed in another way
		return u, errors.Join(u.drop(), a.store.remove(updateFile))
	}
	return u, nil
}

// update follows the update in an answer. Of its errors only ErrRestart holds back anything.
func (a *Agent) update(ctx context.Context, request protocol.CheckinRequest, answer protocol.CheckinResponse, sequence int64) error {
	err := a.updates.receive(ctx, request.Update, answer.Update, sequence)
	if err != nil && !errors.Is(err, ErrRestart) {
		a.options.Log.WarnContext(ctx, "cannot update", "error", err)
		return nil
	}
	return err
}

func (u *updates) to(next update) error {
	u.agent.crash("before update " + string(next.Stage))
	u.sent = false
	u.now = next
	return u.agent.store.save(updateFile, next)
}

// failed notes an attempt that failed. After some of them the update is over, for a day.
func (u *updates) failed(why error) error {
	u.agent.options.Log.Warn("an update failed", "version", u.now.Want.Version, "error", why)
	next := u.now
	if next.Tries++; next.Tries < maxTries {
		next.Stage = wanted
		return u.to(next)
	}
	return u.end(protocol.UpdateFailed, oneLine(why.Error()))
}

func (u *updates) end(state protocol.UpdateState, detail string) error {
	next := update{Want: u.now.Want, Stage: over, State: state, Detail: detail, Until: u.agent.link.serviceTime().Add(tryAgain).UnixMilli()}
	if err := u.to(next); err != nil {
		return err
	}
	return u.drop()
}

// drop removes what was downloaded.
func (u *updates) drop() error {
	return errors.Join(u.agent.store.remove(programFile), u.agent.store.remove(downloadPart))
}

// build is what runs.
func (u *updates) build() *protocol.Build {
	if u.agent.options.Installer == nil || u.agent.link.companion() {
		return nil
	}
	return &protocol.Build{Package: u.agent.options.Installer.Package(), Code: u.agent.options.Installer.Code()}
}

// report is what the service gets with the next check-in.
func (u *updates) report() *protocol.UpdateReport {
	u.settle()
	state := u.state()
	if state == "" {
		return nil
	}
	u.sent = true
	return &protocol.UpdateReport{SHA256: u.now.Want.File.SHA256, State: state, Detail: u.now.Detail}
}

// state is what the service is to know of the update; empty: nothing.
func (u *updates) state() protocol.UpdateState {
	switch {
	case u.agent.options.Installer == nil:
	case u.now.Stage == began && u.agent.options.Installer.Code() >= u.now.Want.Code:
		return protocol.UpdateInstalled // it is in touch once this is answered
	case u.now.Stage == verified:
		return protocol.UpdateReady
	case u.now.Stage == over && !u.now.Delivered:
		return u.now.State
	}
	return ""
}

// unsent reports whether the service lacks what the agent knows of an update.
func (u *updates) unsent() bool { return !u.sent && u.state() != "" }

// delivered notes that the service has answered a request. What cannot be written down is noted at the next check-in.
func (u *updates) delivered(sent, confirmed *protocol.UpdateReport) {
	if sent == nil {
		return
	}
	var err error
	before := u.now
	if sent.State == protocol.UpdateInstalled && u.now.Stage == began { // in touch: the new version stays
		err = u.end(protocol.UpdateInstalled, "")
	}
	if err == nil && confirmed != nil && *confirmed == *sent && u.now.Stage == over {
		next := u.now
		next.Delivered = true
		err = u.to(next)
	}
	u.sent = true
	if err != nil {
		u.now = before
		u.agent.options.Log.Warn("cannot write down what the service has of an update", "error", err)
	}
}

// shaForm is that of a SHA-256 in hexadecimal.
var shaForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// receive follows the update in the answer to the request with the sequence number. What it
// cannot do is noted, and holds back nothing else.
func (u *updates) receive(ctx context.Context, report *protocol.UpdateReport, sealed *protocol.Envelope, sequence int64) error {
	if u.build() == nil || sealed == nil || u.agent.options.Trial {
		return nil
	}
	var want protocol.Update
	if err := u.agent.link.open(*sealed, protocol.KindUpdate, &want); err != nil {
		return fmt.Errorf("cannot trust an update: %w", err)
	}
	own := u.agent.options.Installer
	switch {
	case want.DeviceID != u.agent.link.deviceID() || want.Number != sequence:
		return errors.New("an update is for another device or another request")
	case want.Package != own.Package() || want.Code <= own.Code():
		return fmt.Errorf("an update to %s (code %d) for %s is not higher than what runs, or for another package", oneLine(want.Version),
			want.Code, oneLine(want.Package))
	case !shaForm.MatchString(want.File.SHA256) || want.File.Size <= 0 || want.File.Size > maxUpdate:
		return errors.New("an update names no file that can be used")
	}
	u.agent.link.keepTime(want.Time)
	return u.follow(ctx, report, want)
}

func (u *updates) follow(ctx context.Context, report *protocol.UpdateReport, want protocol.Update) error {
	if want.File != u.now.Want.File || want.Code != u.now.Want.Code {
		if u.fetching {
			return nil // the download of another file has to end first
		}
		if err := u.drop(); err != nil {
			return err
		}
		if err := u.to(update{Want: want, Stage: wanted}); err != nil {
			return err
		}
	}
	switch u.now.Stage {
	case over:
		left := time.UnixMilli(u.now.Until).Sub(u.agent.link.serviceTime()) // more than tryAgain: a wrong clock set it
		if u.now.State == protocol.UpdateFailed && left > 0 && left <= tryAgain || u.now.State == protocol.UpdateWentBack {
			return nil
		}
		if err := u.to(update{Want: want, Stage: wanted}); err != nil {
			return err
		}
		u.fetch(ctx)
	case wanted:
		u.fetch(ctx)
	case verified:
		if report != nil && report.State == protocol.UpdateReady && report.SHA256 == want.File.SHA256 {
			return u.install(ctx)
		}
	default: // the update has begun
	}
	return nil
}

// settle notes how a download ended.
func (u *updates) settle() {
	var err error
	select {
	case err = <-u.fetched:
	default:
		return
	}
	u.fetching = false
	switch {
	case u.now.Stage != wanted:
		return
	case err == nil:
		err = u.agent.options.Installer.Check(u.agent.store.path(programFile), u.now.Want)
		if err == nil {
			next := u.now
			next.Stage = verified
			err = u.to(next)
		} else {
			err = u.refuse(err)
		}
	case errors.Is(err, download.ErrWrong):
		err = u.failed(err)
	}
	if err != nil { // the next check-in goes on
		u.agent.options.Log.Warn("cannot get an update", "version", u.now.Want.Version, "error", err)
	}
}

// refuse ends an update whose file must not be installed.
func (u *updates) refuse(why error) error {
	return errors.Join(why, u.end(protocol.UpdateFailed, oneLine(why.Error())))
}

// install begins. Nothing is begun while the device is going down.
func (u *updates) install(ctx context.Context) error {
	if len(u.agent.journal.Entries(Started)) > 0 {
		return nil
	}
	path := u.agent.store.path(programFile)
	if !download.Has(path, u.now.Want.File) {
		return u.failed(errors.New("the file of the update is damaged"))
	}
	if err := u.agent.options.Installer.Check(path, u.now.Want); err != nil {
		return u.refuse(err)
	}
	next := u.now
	next.Stage = began
	if err := u.to(next); err != nil {
		return u.failed(err)
	}
	u.sent = true
	u.agent.crash("before install")
	err := u.agent.options.Installer.Install(ctx, path, u.now.Want)
	if err == nil || errors.Is(err, ErrRestart) {
		return err
	}
	return u.failed(err)
}

// WentBack notes in the state directory of an agent that does not run that the new version
// had no contact. It is not tried again.
func WentBack(dir, why string, now time.Time) error {
	s := store{dir}
	var note update
	if err := s.load(updateFile, &note); err != nil || note.Stage != began {
		return err
	}
	note.Stage, note.State, note.Detail, note.Delivered, note.Until = over, protocol.UpdateWentBack, oneLine(why), false, now.UnixMilli()
	return errors.Join(s.save(updateFile, note), s.remove(programFile))
}

// Proved reports whether the new version that was begun in a state directory is in touch.
func Proved(dir string) bool {
	var note update
	return store{dir}.load(updateFile, &note) == nil && note.Stage == over && note.State == protocol.UpdateInstalled
}
