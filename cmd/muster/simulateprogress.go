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

// tellEvery is how often progress is a line of its own, where no terminal shows it.
const tellEvery = 5 * time.Second

// progressLine shows how far a simulation is: in a line that is renewed on a terminal, else in a
// line every few seconds. Its methods may be called concurrently.
type progressLine struct {
	out      io.Writer
	terminal bool

	mu    sync.Mutex
	shown bool          // the last line on the terminal is progress
	last  time.Duration // when the last line was written without a terminal
}

func newProgressLine(out io.Writer) *progressLine {
	file, isFile := out.(*os.File)
	return &progressLine{out: out, terminal: isFile && term.IsTerminal(int(file.Fd()))}
}

// clearLine moves to the beginning of the terminal's line and erases it.
const clearLine = "\r\x1b[K"

// say writes a line that stays.
func (l *progressLine) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
	fmt.Fprintf(l.out, format+"\n", args...)
}

// show shows the progress.
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

// end removes the progress, for what comes next.
func (l *progressLine) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
}

func (l *progressLine) clear() {
	if l.shown {
		fmt.Fprint(l.out, clearLine)
		l.shown = false
	}
}
