package servertest

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
)

// Log keeps what is logged, in memory.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// Text is everything logged so far.
func (l *Log) Text() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.text.Bytes())
}

// shown is how many warnings and errors of its log a failing test prints.
const shown = 40

// failure is what a failing test prints of the log: the last warnings and errors, and the
// name of a file with the whole log.
func (l *Log) failure() string {
	var found []string
	for line := range strings.Lines(string(l.Text())) {
		if strings.Contains(line, " level=WARN ") || strings.Contains(line, " level=ERROR ") {
			found = append(found, line)
		}
	}
	last := found[max(0, len(found)-shown):]
	return fmt.Sprintf("log: the last %d of %d warnings and errors; %s\n%s", len(last), len(found), l.save(), strings.Join(last, ""))
}

// save writes the log to a file that stays after the test, and says where it is.
func (l *Log) save() string {
	f, err := os.CreateTemp("", "muster-test-*.log")
	if err != nil {
		return "cannot keep the whole log: " + err.Error()
	}
	_, err = f.Write(l.Text())
	if closing := f.Close(); err != nil || closing != nil {
		return fmt.Sprintf("cannot keep the whole log: %v, %v", err, closing)
	}
	return "the whole log is in " + f.Name()
}
