// Package logfile keeps the last lines of what the agent logs in a file, without secrets,
// for the service to ask for.
package logfile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/agent/protocol"
)

const (
	// Max is how long the file may grow, in bytes. Then its older half goes.
	Max = protocol.MaxLog
	// maxLine is how much is kept of a line, in bytes.
	maxLine = 1000
)

// File is the log's file. It may be used concurrently.
type File struct {
	path string
	mu   sync.Mutex
}

// Open returns the log that is kept at a path. The file is made with the first line.
func Open(path string) *File { return &File{path: path} }

// Write adds what is one line, cleaned and shortened. It always reports success: an agent
// whose disk is full goes on without a log.
func (f *File) Write(line []byte) (int, error) {
	text := Clean(strings.TrimSpace(string(line)))
	if len(text) > maxLine {
		text = strings.ToValidUTF8(text[:maxLine], "")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add(text + "\n")
	return len(line), nil
}

func (f *File) add(line string) {
	info, err := os.Stat(f.path)
	if err == nil && info.Size()+int64(len(line)) > Max && f.halve() != nil {
		return
	}
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	_, _ = file.WriteString(line)
}

// halve keeps the younger half, from the beginning of a line.
func (f *File) halve() error {
	text, err := f.tail(Max / 2)
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.path+".new", text, 0o600); err != nil {
		_ = os.Remove(f.path + ".new")
		return err
	}
	return os.Rename(f.path+".new", f.path)
}

// Text is what is kept, at most Max bytes of UTF-8.
func (f *File) Text() ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, err := f.tail(Max)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// tail is the end of the file, at most limit bytes, from the beginning of a line.
func (f *File) tail(limit int64) ([]byte, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	from := max(0, size-limit)
	text, err := io.ReadAll(io.NewSectionReader(file, from, limit))
	if from > 0 {
		text = text[bytes.IndexByte(text, '\n')+1:]
	}
	return bytes.ToValidUTF8(text, []byte("?")), err
}

// Clean is a line without secrets, and without what breaks lines or controls.
func Clean(line string) string {
	line = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == 0x2028 || r == 0x2029 || r == utf8.RuneError {
			return ' '
		}
		return r
	}, line)
	return redact(line)
}

const redacted = "[redacted]"

// What is taken out of a line. The Android app has the same rules (LogFile.java), and both
// are compared with android/test/log.tsv.
var (
	// header is a header with credentials, to the end of the line.
	header = regexp.MustCompile(`(?i)(authorization["' :=]+).*`)
	// member is a secret by its name: name=value, "name": "value", or the same as text in JSON.
	member = regexp.MustCompile(`(?i)((?:password|passphrase|passwd|secret|token|signature|proof|private.?key)s?[\\"']*\s*[:=]\s*|\bkey=)(?:\\"[^\\"]*\\"|"(?:[^"\\]|\\.)*"|[^\s,;&]+)`)
	// user is what an address says of a user.
	user = regexp.MustCompile(`://[^/\s@"]*@`)
	// prefixed are secrets that say what they are.
	prefixed = regexp.MustCompile(`\b((?:met|mct|mk|whsec)_)[A-Za-z0-9_+/=-]+`)
	// word is what may be a key, a token or a digest.
	word = regexp.MustCompile(`[A-Za-z0-9_+=-]{20,}`)
)

// redact takes out what is, or looks like, a secret.
func redact(line string) string {
	line = header.ReplaceAllString(line, "${1}"+redacted)
	line = member.ReplaceAllString(line, "${1}"+redacted)
	line = user.ReplaceAllString(line, "://"+redacted+"@")
	line = prefixed.ReplaceAllString(line, "${1}"+redacted)
	return word.ReplaceAllStringFunc(line, func(w string) string {
		if secret(w) {
			return redacted
		}
		return w
	})
}

// secret reports whether a word of 20 characters or more is more likely a key, a token or
// a digest than a name: it has a digit, and an upper-case letter or 32 characters. Ids have 26
// lower-case letters and digits.
func secret(w string) bool {
	if !strings.ContainsAny(w, "0123456789") {
		return false
	}
	return len(w) >= 32 || w != strings.ToLower(w)
}
