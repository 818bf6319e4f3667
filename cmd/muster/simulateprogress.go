package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/musterhq/muster/internal/fleetsim"
)

// tellEvery is how often at most show writes a line if the output is no terminal.
const tellEvery = 5 * time.Second

// progressLine shows the progress of a simulation. On a terminal it rewrites one line; elsewhere it writes a line every
// tellEvery. Concurrent use is safe.
type progressLine struct {
	out      io.Writer
	terminal bool

	mu    sync.Mutex
	shown bool          // the last line on the terminal is a progress line
	last  time.Duration // Progress.Since of the last line that was written without a terminal
}

func newProgressLine(out io.Writer) *progressLine {
	file, isFile := out.(*os.File)
	return &progressLine{out: out, terminal: isFile && term.IsTerminal(int(file.Fd()))}
}

// clearLine moves to the beginning of the terminal's line and erases it.
const clearLine = "\r\x1b[K"

// say writes a line that stays, in place of the progress line.
func (l *progressLine) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
	fmt.Fprintf(l.out, format+"\n", args...)
}

// show shows the progress p. Without a terminal it skips p within tellEvery of the last line.
func (l *progressLine) show(p fleetsim.Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.terminal {
		fmt.Fprint(l.out, clearLine, p)
		l.shown = true
		return
	}
	if p.Since-l.last >= tellEvery {
		l.last = p.Since
		fmt.Fprintln(l.out, p)
	}
}

// end removes the progress line, so that other output can follow.
func (l *progressLine) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
}

// clear erases the progress line, if one is on the terminal. The caller holds l.mu.
func (l *progressLine) clear() {
	if l.shown {
		fmt.Fprint(l.out, clearLine)
		l.shown = false
	}
}
