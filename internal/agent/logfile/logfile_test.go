package logfile_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/agent/logfile"
)

var update = flag.Bool("update", false, "write the table of lines again")

// linesFile has lines before and after Clean. The Android app is compared with it.
const linesFile = "../../../android/test/log.tsv"

func lines() []string {
	long := strings.Repeat("aZ09", 10)
	return []string{
		"time=2026-11-21T09:30:00Z level=WARN msg=\"cannot check in\" retryIn=1m30s error=\"dial tcp 192.0.2.1:443: connect: " +
			"connection refused\"",
		"command ended: NOTIFICATION_MESSAGE 8k2v0r6m4q1x7t9c3w5y2n8b6d DONE",
		"a setting was refused: REPORT_APPLICATION_USAGE_STATISTICS_EVENTS",
		"javax.net.ssl.SSLHandshakeException: java.security.cert.CertPathValidatorException: no trust anchor",
		"Authorization: Bearer abc def", "authorization=\"Basic dXNlcg==\" next=1",
		"password=hunter2 next=1", "newPassword: \"correct horse\" next", "msg=\"{\\\"newPassword\\\":\\\"correct horse\\\",\\\"a\\\":1}\"",
		"Secret = s3cr3t; more", "the token is refused", "token=abc, key=abc", "a private key: abc",
		"https://user:pass@muster.example/path", "https://muster.example/a@b",
		"enrolls with met_abcdefghijkl0123456789", "X-API-Key mk_abc_def",
		"trusts " + long, "digest " + strings.Repeat("0123456789abcdef", 4), "name " + strings.Repeat("ab", 20),
		"two\u2028lines\x00and\x1b[31m color\u0085",
	}
}

// Secrets of every form are taken out, and what says what happened stays.
func TestClean_Golden(t *testing.T) {
	t.Parallel()
	text := "# Written by internal/agent/logfile.TestClean_Golden -update: a line, and what is kept of it, both quoted as in JSON.\n"
	for _, line := range lines() {
		text += fmt.Sprintf("%s\t%s\n", quoted(line), quoted(logfile.Clean(line)))
	}
	if *update {
		if err := os.WriteFile(linesFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(linesFile); err != nil || string(got) != text {
		t.Errorf("%s is another (%v): run the test with -update, and see that the app agrees", linesFile, err)
	}
	for _, secret := range []string{"hunter2", "correct horse", "s3cr3t", "user:pass", "Bearer", "dXNlcg", "0123456789", "abc_def"} {
		for _, line := range lines() {
			if clean := logfile.Clean(line); strings.Contains(clean, secret) {
				t.Errorf("%q keeps %q", clean, secret)
			}
		}
	}
}

func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString("\\" + string(r))
		case r < ' ' || r > '~':
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// The file never grows beyond its limit, keeps the youngest lines whole, and is UTF-8.
func TestFile_IsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	log := logfile.Open(path)
	if text, err := log.Text(); err != nil || len(text) != 0 {
		t.Fatalf("before the first line: %q, %v", text, err)
	}
	var writing sync.WaitGroup
	for writer := range 4 {
		writing.Go(func() {
			for i := range 600 {
				_, _ = fmt.Fprintf(log, "writer %d line %d \xff%s\n", writer, i, strings.Repeat("x ", 700))
			}
		})
	}
	writing.Wait()
	_, _ = fmt.Fprintln(log, "the last")
	info, err := os.Stat(path)
	if err != nil || info.Size() > logfile.Max || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	text, err := log.Text()
	if err != nil || len(text) > logfile.Max || !utf8.Valid(text) {
		t.Errorf("the text: %d bytes, %v, valid UTF-8 %v", len(text), err, utf8.Valid(text))
	}
	if !strings.HasSuffix(string(text), "\nthe last\n") || !strings.HasPrefix(string(text), "writer ") {
		t.Errorf("the text begins with %.40q and has %d bytes; want whole lines and the last one", text, len(text))
	}
	for line := range strings.Lines(string(text)) {
		if len(line) > 1001 {
			t.Errorf("a line has %d bytes", len(line))
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the log: %v, %v", entries, err)
	}
}

// A log that cannot be written stops nothing.
func TestFile_CannotBeWritten(t *testing.T) {
	t.Parallel()
	log := logfile.Open(filepath.Join(t.TempDir(), "none", "log"))
	if n, err := log.Write([]byte("a line\n")); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
