// Package replica runs a test program a second time, as a replica in a process of its
// own, which obeys orders until it is killed.
package replica

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// line is an order, or the answer to the order with the same number.
type line struct {
	N    int
	Body json.RawMessage
}

// Serve answers the orders on standard input, all at once, until the process is killed.
func Serve[Order, Answer any](obey func(Order) Answer) error {
	answers, out := json.NewEncoder(os.Stdout), sync.Mutex{}
	if err := answers.Encode(line{}); err != nil { // it is ready
		return err
	}
	for in := json.NewDecoder(os.Stdin); ; {
		var l line
		var o Order
		if err := in.Decode(&l); err != nil {
			return err
		}
		if err := json.Unmarshal(l.Body, &o); err != nil {
			return err
		}
		go func() {
			body, err := json.Marshal(obey(o))
			if err != nil {
				panic(err)
			}
			out.Lock()
			defer out.Unlock()
			_ = answers.Encode(line{l.N, body}) // an error: the test has gone
		}()
	}
}

// Replica is such a process.
type Replica[Order, Answer any] struct {
	process *exec.Cmd
	in      io.WriteCloser
	mu      sync.Mutex
	sent    int
	waiting map[int]chan json.RawMessage // nil: it has ended
}

// Start starts one with a variable of the environment, by which the test program's
// TestMain knows that it is to Serve. It ends with the test at the latest.
func Start[Order, Answer any](tb testing.TB, variable string) *Replica[Order, Answer] {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	r := &Replica[Order, Answer]{process: exec.CommandContext(tb.Context(), self), waiting: map[int]chan json.RawMessage{}}
	r.process.Env = append(os.Environ(), variable)
	r.process.Stderr = os.Stderr
	out, err := r.process.StdoutPipe()
	if err == nil {
		r.in, err = r.process.StdinPipe()
	}
	if err == nil {
		err = r.process.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	answers := json.NewDecoder(bufio.NewReader(out))
	if err := answers.Decode(&line{}); err != nil {
		tb.Fatalf("the replica did not start: %v", err)
	}
	go r.read(answers)
	return r
}

// read passes answers on until the process has ended; what it did not answer is lost.
func (r *Replica[Order, Answer]) read(answers *json.Decoder) {
	for {
		var l line
		err := answers.Decode(&l)
		r.mu.Lock()
		if err != nil {
			for _, answer := range r.waiting {
				close(answer)
			}
			r.waiting = nil
			r.mu.Unlock()
			return
		}
		if answer := r.waiting[l.N]; answer != nil {
			answer <- l.Body
			delete(r.waiting, l.N)
		}
		r.mu.Unlock()
	}
}

// Ended reports whether the process is known to have ended.
func (r *Replica[Order, Answer]) Ended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting == nil
}

// Ask returns the answer to an order; false: the replica was killed before it answered.
func (r *Replica[Order, Answer]) Ask(o Order) (a Answer, answered bool) {
	body, _ := json.Marshal(o)
	answer := make(chan json.RawMessage, 1)
	r.mu.Lock()
	if r.waiting == nil {
		r.mu.Unlock()
		return a, false
	}
	r.sent++
	r.waiting[r.sent] = answer
	text, _ := json.Marshal(line{r.sent, body})
	_, _ = r.in.Write(append(text, '\n')) // one that was killed answers nothing
	r.mu.Unlock()
	got, ok := <-answer
	answered = ok && json.Unmarshal(got, &a) == nil
	return a, answered
}

// Kill kills the replica with SIGKILL.
func (r *Replica[Order, Answer]) Kill(tb testing.TB) {
	tb.Helper()
	if err := r.process.Process.Kill(); err != nil {
		tb.Error(err)
	}
	_ = r.process.Wait() // says that it was killed
}
