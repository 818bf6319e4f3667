package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/durable"
)

// Stage is how far the agent has come with a command.
//
//	RECEIVED ──► STARTED(boot id) ──► DONE(result) ──► CONFIRMED
//
// Each step is on disk before the next begins. A command that is CONFIRMED is
// remembered for Remember, so that a late second delivery does nothing.
type Stage string

// The stages.
const (
	Received  Stage = "RECEIVED"
	Started   Stage = "STARTED"
	Done      Stage = "DONE"
	Confirmed Stage = "CONFIRMED"
)

// Remember is how long the ids of finished commands are kept.
const Remember = 30 * 24 * time.Hour

// Entry is one command in the journal, in its latest stage.
type Entry struct {
	Command  protocol.Command  `json:"command"`
	Stage    Stage             `json:"stage"`
	BootID   string            `json:"bootId,omitempty"` // when it was started
	Result   protocol.AckState `json:"result,omitempty"` // with Done: Done or Failed
	Outcome  string            `json:"outcome,omitempty"`
	At       int64             `json:"at"` // Unix milliseconds of the latest step
	Accepted bool              `json:"accepted,omitempty"`
}

// Journal is the agent's memory of commands: an append-only file of lines,
// each with its checksum, forced to the disk before a step counts.
type Journal struct {
	mu      sync.Mutex
	path    string
	file    *os.File
	size    int64 // of what is whole on disk
	limit   int64 // compact above it
	torn    bool  // the file may be longer than size: a write failed
	swapped bool  // the file is new, and its place in the directory may not be durable
	skipped int   // damaged lines that were passed over when it was opened
	entries map[string]Entry
	order   []string // ids, oldest first
	// unwritten are later steps of entries that are STARTED, by id.
	unwritten map[string]Entry
	syncDir   func(path string) error
}

// maxJournalLine bounds a line, and compactAbove the file, in bytes.
const (
	maxJournalLine = 64 << 10
	compactAbove   = 1 << 20
)

// OpenJournal reads the journal at path, or begins one. A last line that is not
// whole is a write that a crash interrupted: that step had not happened, and the
// line is dropped. Any other damaged line is the disk's fault: it is passed over
// and counted (Skipped), and what follows it is kept.
func OpenJournal(path string, now time.Time) (*Journal, error) {
	j := &Journal{path: path, entries: map[string]Entry{}, unwritten: map[string]Entry{}, limit: compactAbove, syncDir: durable.Sync}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the journal: %w", err)
	}
	if j.size, j.skipped, err = ReadJournal(file, j.keep); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if err := file.Truncate(j.size); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open the journal: %w", err), file.Close())
	}
	j.file = file
	j.forget(now)
	return j, nil
}

// LoadJournal reads the journal at path and changes nothing. The caller cannot
// write to it.
func LoadJournal(path string) (*Journal, error) {
	j := &Journal{path: path, entries: map[string]Entry{}}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the journal: %w", err)
	}
	_, j.skipped, err = ReadJournal(file, j.keep)
	return j, errors.Join(err, file.Close())
}

// ReadJournal calls each for every whole line, in order. It returns where the
// last whole line ends and how many damaged lines there are. What has no end is
// not one of them.
func ReadJournal(r io.Reader, each func(Entry)) (good int64, skipped int, err error) {
	var at int64 // how far it has read
	lines := bufio.NewReaderSize(r, maxJournalLine)
	for long := false; ; {
		line, err := lines.ReadSlice('\n')
		at += int64(len(line))
		switch {
		case errors.Is(err, bufio.ErrBufferFull): // longer than any line can be
			long = true
			continue
		case errors.Is(err, io.EOF):
			return good, skipped, nil
		case err != nil:
			return good, skipped, fmt.Errorf("cannot read the journal: %w", err)
		}
		if entry, ok := parseLine(line); ok && !long {
			each(entry)
			good = at
		} else {
			skipped++
		}
		long = false
	}
}

// parseLine reads "<crc32 in hexadecimal> <json>\n".
func parseLine(line []byte) (Entry, bool) {
	sum, body, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
	want, err := strconv.ParseUint(string(sum), 16, 32)
	if !ok || err != nil || uint32(want) != crc32.ChecksumIEEE(body) {
		return Entry{}, false
	}
	var e Entry
	if json.Unmarshal(body, &e) != nil || e.Command.ID == "" {
		return Entry{}, false
	}
	return e, true
}

// maxGrowth is by how much the later steps of a command may lengthen its line, in
// bytes.
const maxGrowth = 8 << 10

// keeps reports whether a command fits, also with what its later steps add.
func keeps(e Entry) bool {
	body, err := json.Marshal(e)
	return err == nil && len(body) <= maxJournalLine-maxGrowth
}

func formatLine(e Entry) ([]byte, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	line := fmt.Appendf(nil, "%08x %s\n", crc32.ChecksumIEEE(body), body)
	if len(line) > maxJournalLine {
		return nil, fmt.Errorf("command %s is too large for the journal", e.Command.ID)
	}
	return line, nil
}

// Entry returns the command's entry.
func (j *Journal) Entry(id string) (Entry, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, ok := j.entries[id]
	return e, ok
}

// Entries returns the entries of a stage, oldest first, without those of which a later step could not be written.
func (j *Journal) Entries(stage Stage) []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []Entry
	for _, id := range j.order {
		if _, ended := j.unwritten[id]; j.entries[id].Stage == stage && !ended {
			found = append(found, j.entries[id])
		}
	}
	return found
}

// settle writes what became of commands that were STARTED, where that could not be written before: the disk was full.
func (j *Journal) settle() error {
	j.mu.Lock()
	ended := slices.Collect(maps.Values(j.unwritten))
	j.mu.Unlock()
	if len(ended) == 0 {
		return nil
	}
	return j.Write(ended...)
}

// Write records an entry and returns when it is on the disk. On failure the journal stays as it was; a step after STARTED,
// which the device cannot take back, is remembered for settle.
func (j *Journal) Write(entries ...Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var lines []byte
	for _, e := range entries {
		line, err := formatLine(e)
		if err != nil {
			return err
		}
		lines = append(lines, line...)
	}
	if err := withReserve(filepath.Dir(j.path), func() error { return j.append(lines) }); err != nil {
		for _, e := range entries {
			if j.entries[e.Command.ID].Stage == Started {
				j.unwritten[e.Command.ID] = e
			}
		}
		return fmt.Errorf("cannot write the journal: %w", err)
	}
	for _, e := range entries {
		j.keep(e)
		delete(j.unwritten, e.Command.ID)
	}
	if j.size > j.limit {
		j.forget(time.UnixMilli(entries[len(entries)-1].At))
	}
	return nil
}

// append puts lines at the end of the file and forces them to the disk. What a
// failed attempt left behind is cut off, at the latest before the next one:
// otherwise the next lines would follow half a line, and look whole until the
// next start. Nothing is written to a new file before its place is durable: a
// power cut would bring the former file back, without the lines.
func (j *Journal) append(lines []byte) error {
	if j.swapped {
		if err := j.syncDir(filepath.Dir(j.path)); err != nil {
			return err
		}
		j.swapped = false
	}
	if j.torn {
		if err := j.file.Truncate(j.size); err != nil {
			return err
		}
		j.torn = false
	}
	_, err := j.file.WriteAt(lines, j.size)
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		j.torn = j.file.Truncate(j.size) != nil
		return err
	}
	j.size += int64(len(lines))
	return nil
}

// Skipped is how many damaged lines were passed over when the journal was opened.
func (j *Journal) Skipped() int { return j.skipped }

func (j *Journal) keep(e Entry) {
	if _, known := j.entries[e.Command.ID]; !known {
		j.order = append(j.order, e.Command.ID)
	}
	if e.Stage == Confirmed { // only its id matters from now on
		e.Command = protocol.Command{ID: e.Command.ID, Type: e.Command.Type}
	}
	j.entries[e.Command.ID] = e
}

// forget drops what was finished long ago. The caller holds mu, or has the journal
// alone.
func (j *Journal) forget(now time.Time) {
	kept := j.order[:0]
	for _, id := range j.order {
		if e := j.entries[id]; e.Stage == Confirmed && now.Sub(time.UnixMilli(e.At)) > Remember {
			delete(j.entries, id)
			continue
		}
		kept = append(kept, id)
	}
	j.order = kept
	j.compact()
}

// compact writes the entries as they stand to a new file and swaps it in. Where
// that fails, on a full disk for instance, the longer file goes on: nothing is
// missing from it.
func (j *Journal) compact() {
	if err := j.swap(); err != nil {
		j.limit = j.size + compactAbove
	}
}

func (j *Journal) swap() error {
	var lines []byte
	for _, id := range j.order {
		line, err := formatLine(j.entries[id])
		if err != nil {
			return err
		}
		lines = append(lines, line...)
	}
	file, err := durable.Replace(j.path, lines)
	if err != nil {
		return err
	}
	_ = j.file.Close() // replaced; everything in it was synced
	// Where much must be remembered, the file may double before the next time: otherwise
	// each line would write it all again.
	j.file, j.size, j.limit, j.torn = file, int64(len(lines)), max(compactAbove, 2*int64(len(lines))), false
	j.swapped = j.syncDir(filepath.Dir(j.path)) != nil
	return nil
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// writeFile replaces a file, whole or not at all, if need be in the place of the
// reserve.
func writeFile(path string, data []byte) error {
	return withReserve(filepath.Dir(path), func() error { return durable.Write(path, data) })
}
