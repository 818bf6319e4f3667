package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/musterhq/muster/internal/surface/cli"
)

// processes runs commands of muster in a directory of its own.
type processes struct {
	t       *testing.T
	dir     string
	env     []string
	program string              // empty: muster
	user    *syscall.Credential // nil: the user of the test
}

// with returns processes with more variables.
func (p processes) with(variables ...string) processes {
	p.env = append(p.env[:len(p.env):len(p.env)], variables...)
	return p
}

func (p processes) command(args ...string) *exec.Cmd {
	c := exec.CommandContext(p.t.Context(), cmp.Or(p.program, "muster"), args...)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: p.user}
	c.Dir, c.Env, c.Stderr = p.dir, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "GORACE=" + os.Getenv("GORACE"),
		"MUSTER_LISTEN=127.0.0.1:0"}, p.env...), os.Stderr
	return c
}

// run runs a command that must succeed, and returns what it prints.
func (p processes) run(args ...string) string {
	p.t.Helper()
	output, err := p.command(args...).Output()
	if err != nil {
		p.t.Fatalf("muster %v: %v: %s", args, err, output)
	}
	return string(output)
}

func (p processes) json(v any, args ...string) {
	p.t.Helper()
	output := p.run(append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(output), v); err != nil {
		p.t.Fatalf("muster %v: %v: %s", args, err, output)
	}
}

// refused runs a command that must fail with one line, which says all of says.
func (p processes) refused(title string, says []string, args ...string) {
	p.t.Helper()
	var out, errOut bytes.Buffer
	c := p.command(args...)
	c.Stdout, c.Stderr = &out, &errOut
	err := c.Run()
	if code := c.ProcessState.ExitCode(); code != cli.ExitFailed {
		p.t.Errorf("%s: muster %v ends with %d (%v), want %d: %s", title, args, code, err, cli.ExitFailed, errOut.Bytes())
	}
	line := errOut.String()
	if out.Len() > 0 || strings.Count(line, "\n") != 1 || !strings.HasPrefix(line, "muster: ") {
		p.t.Errorf("%s: muster %v prints %q and %q, want one line on standard error", title, args, out.Bytes(), line)
	}
	for _, part := range says {
		if !strings.Contains(line, part) {
			p.t.Errorf("%s: muster %v says %q, want %q in it", title, args, line, part)
		}
	}
}

// served is a service that runs as a process.
type served struct {
	t       *testing.T
	process *exec.Cmd
	address string
	log     *strings.Builder // complete once drained is closed
	drained chan struct{}
}

// serve starts the service, and ends it with the test at the latest.
func (p processes) serve() *served { p.t.Helper(); return p.startUntil("publicURL=", "serve") }

// startUntil starts a process, and waits for its line that says after before where it
// answers.
func (p processes) startUntil(before string, args ...string) *served {
	p.t.Helper()
	s := &served{t: p.t, process: p.command(args...), log: &strings.Builder{}, drained: make(chan struct{})}
	s.process.Stderr = nil
	log, err := s.process.StderrPipe()
	s.process.Stdout = s.process.Stderr
	if err == nil {
		err = s.process.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	lines := bufio.NewScanner(log)
	for s.address == "" && lines.Scan() {
		s.log.WriteString(lines.Text() + "\n")
		if _, after, found := strings.Cut(lines.Text(), before); found {
			s.address = strings.Fields(after)[0]
		}
	}
	go func() {
		defer close(s.drained)
		for lines.Scan() {
			s.log.WriteString(lines.Text() + "\n")
		}
	}()
	if s.address == "" {
		<-s.drained
		p.t.Fatalf("the service did not start: %v\n%s", s.process.Wait(), s.log)
	}
	return s
}

// wait waits until the process has ended, and returns its exit code.
func (s *served) wait() int {
	<-s.drained
	_ = s.process.Wait() // the code says it
	return s.process.ProcessState.ExitCode()
}

// end ends the service as an operator does.
func (s *served) end() {
	s.t.Helper()
	_ = s.process.Process.Signal(syscall.SIGTERM)
	if code := s.wait(); code != cli.ExitOK {
		s.t.Errorf("the service ended with %d\n%s", code, s.log)
	}
	if strings.Contains(s.log.String(), "met_") {
		s.t.Error("a token is in the service's log")
	}
}

// kill ends the service as a crash does.
func (s *served) kill() {
	_ = s.process.Process.Kill()
	s.wait()
}
