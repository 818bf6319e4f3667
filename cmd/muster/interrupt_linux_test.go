package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterhq/muster/internal/surface/cli"
	"github.com/musterhq/muster/test/poll"
)

// ends waits until a process ends, and returns its exit code; -1 if it has to be killed.
func ends(c *exec.Cmd) int {
	late := time.AfterFunc(20*time.Second, func() { _ = c.Process.Kill() })
	defer late.Stop()
	_ = c.Wait() // the code says it
	return c.ProcessState.ExitCode()
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	if err := poll.For(time.Minute, func() error {
		if !done() {
			return errors.New("not yet: " + what)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// A command that waits for standard input ends when it is interrupted.
func TestInterrupt_EndsReading(t *testing.T) {
	t.Parallel()
	p := processes{t: t, dir: t.TempDir()}
	p.run("company", "create", "acme")
	for _, args := range [][]string{{"asset", "import", "--company", "acme", "--file", "-"},
		{"user", "create", "--company", "acme", "a@example.com", "--password-stdin"}} {
		in, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c := p.command(args...)
		var says bytes.Buffer
		c.Stdin, c.Stderr = in, &says
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		_, _ = out.WriteString("identification")
		until(t, "it reads", func() bool {
			unread, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCINQ)
			return err == nil && unread == 0
		})
		_ = c.Process.Signal(syscall.SIGINT)
		if code := ends(c); code != cli.ExitFailed || !strings.Contains(says.String(), "interrupted: nothing was changed") {
			t.Errorf("muster %v ends with %d: %s", args, code, says.String())
		}
		_, _ = in.Close(), out.Close()
	}
}

// Ctrl-C ends a command that asks for a password, and the terminal shows again what is typed.
func TestInterrupt_EndsAskingForAPassword(t *testing.T) {
	t.Parallel()
	p := processes{t: t, dir: t.TempDir()}
	p.run("company", "create", "acme")
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer keyboard.Close()
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	c := p.command("user", "create", "--company", "acme", "a@example.com")
	var says bytes.Buffer
	c.Stdin, c.Stderr, c.SysProcAttr = terminal, &says, &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	shows := func() bool {
		mode, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
		return err == nil && mode.Lflag&unix.ECHO != 0
	}
	until(t, "it asks", func() bool { return !shows() })
	_, _ = keyboard.WriteString("\x03")
	want := "Password: \nmuster: cannot read the password from the terminal: interrupted: nothing was changed\n"
	if code := ends(c); code != cli.ExitFailed || says.String() != want {
		t.Errorf("it ends with %d and says %q", code, says.String())
	}
	if !shows() {
		t.Error("the terminal does not show what is typed")
	}
}
