package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/musterhq/muster/internal/durable"
	"github.com/musterhq/muster/internal/resource"
)

const (
	// runLife is how long a run may be taken up again. The service knows an
	// Idempotency-Key for as long.
	runLife = 24 * time.Hour
	// keysKept is how old a key may be when its request is sent again: an hour less.
	keysKept = runLife - time.Hour
	// keepRuns is how long files of runs stay.
	keepRuns = 30 * 24 * time.Hour
)

// How a device of a run ended.
const (
	accepted    = "ACCEPTED"
	failed      = "FAILED"
	unconfirmed = "UNCONFIRMED"
)

// journal is a run of a command for several devices, in a file: what is to be done first,
// then a line before each request and one after it. A request that may have been sent is
// sent again with its own Idempotency-Key, or not at all.
type journal struct {
	ID      string
	Begun   time.Time
	Devices []string
	States  []state

	file  *os.File
	ended bool
}

// state is where a device of a run is.
type state struct {
	SentAt  time.Time // zero: not yet
	By      string    // prefix of the API key that sent it
	Status  string    // empty: not known yet
	Outcome string
}

// line is one line of the file.
type line struct {
	Run     string    `json:"run,omitempty"` // the first line's
	At      time.Time `json:"at,omitzero"`
	Devices []string  `json:"devices,omitempty"`
	Device  int       `json:"device,omitempty"` // from 1
	By      string    `json:"by,omitempty"`
	Status  string    `json:"status,omitempty"`
	Outcome string    `json:"outcome,omitempty"`
	Back    bool      `json:"back,omitempty"` // it was refused, and nothing was sent
	End     bool      `json:"end,omitempty"`
}

// resume opens the unfinished run in a file; nil: there is none that can be taken up.
func resume(path string, now time.Time) (*journal, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	j := parseJournal(text)
	if j == nil {
		return nil, fmt.Errorf("%s is damaged, so it is not known what was sent: look at the devices, then give --new", path)
	}
	if j.ended || now.Sub(j.Begun) >= runLife {
		return nil, nil
	}
	if j.file, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); err != nil {
		return nil, err
	}
	if !bytes.HasSuffix(text, []byte("\n")) { // the last line was cut off
		_, err = j.file.WriteString("\n")
	}
	return j, err
}

// parseJournal reads a file; nil: its first line is not there. A later line that was cut
// off says nothing: what it would have said is asked of the service.
func parseJournal(text []byte) *journal {
	var j *journal
	for one := range bytes.Lines(text) {
		var l line
		if json.Unmarshal(one, &l) != nil {
			if j == nil {
				return nil
			}
			continue
		}
		switch {
		case j == nil && l.Run != "":
			j = &journal{ID: l.Run, Begun: l.At, Devices: l.Devices, States: make([]state, len(l.Devices))}
		case j == nil:
			return nil
		case l.End:
			j.ended = true
		case l.Device < 1 || l.Device > len(j.States):
		case l.Back:
			j.States[l.Device-1] = state{}
		case l.Status != "":
			j.States[l.Device-1].Status, j.States[l.Device-1].Outcome = l.Status, l.Outcome
		default:
			j.States[l.Device-1].SentAt, j.States[l.Device-1].By = l.At, l.By
		}
	}
	return j
}

// begin makes the file of a new run in the place of a former one. If another process made
// one at this moment, that is the run.
func begin(path string, devices []string, now time.Time) (*journal, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	prune(dir, now)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	text, err := json.Marshal(line{Run: resource.NewID(), At: now.UTC(), Devices: devices})
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(dir, "run-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // it has its own name by then
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(file.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := durable.Sync(dir); err != nil {
		return nil, err
	}
	j, err := resume(path, now)
	if err == nil && j == nil {
		err = errors.New("the same command is running: start it again")
	}
	return j, err
}

// prune removes files of old runs.
func prune(dir string, now time.Time) {
	entries, _ := os.ReadDir(dir) // what stays is only untidy
	for _, e := range entries {
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > keepRuns {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// add writes a line to the disk.
func (j *journal) add(l line) error {
	text, err := json.Marshal(l)
	if err == nil {
		_, err = j.file.Write(append(text, '\n'))
	}
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("cannot write down what is sent, so nothing more is sent: %w", err)
	}
	return nil
}

// sending notes that a device's request is about to be sent.
func (j *journal) sending(i int, by string, now time.Time) error {
	j.States[i].SentAt, j.States[i].By = now.UTC(), by
	return j.add(line{Device: i + 1, At: now.UTC(), By: by})
}

// back notes that a device's request was refused before anything was sent.
func (j *journal) back(i int) error {
	j.States[i] = state{}
	return j.add(line{Device: i + 1, Back: true})
}

// settle notes how a device's request ended.
func (j *journal) settle(i int, status, outcome string) error {
	j.States[i].Status, j.States[i].Outcome = status, outcome
	return j.add(line{Device: i + 1, Status: status, Outcome: outcome})
}

// end notes that nothing is left to do.
func (j *journal) end() error { return errors.Join(j.add(line{End: true}), j.file.Close()) }

// count is how many devices have a status.
func (j *journal) count(status string) (n int) {
	for _, s := range j.States {
		if s.Status == status {
			n++
		}
	}
	return n
}
