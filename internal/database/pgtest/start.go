package pgtest

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// The scripts programs.sh with server.sh, and with pair.sh.
var (
	//go:embed programs.sh
	programs string
	//go:embed server.sh
	single string
	//go:embed pair.sh
	double string
)

// errNoPostgres: neither an address nor PostgreSQL's programs (or no way to run
// them) on this machine.
var errNoPostgres = errors.New("no PostgreSQL server")

// process is a script that runs servers.
type process struct {
	address string
	// lifeline is the script's standard input; it ends when that is closed.
	lifeline *os.File
	// answers is what the script prints after the address.
	answers *bufio.Reader
	stdout  *os.File
}

// start runs a script and waits for its servers to accept connections.
func start(script string) (p process, err error) {
	cmd, err := command(programs + script)
	if err != nil {
		return p, err
	}
	stdin, lifeline, err := os.Pipe()
	if err != nil {
		return p, err
	}
	stdout, output, err := os.Pipe()
	if err != nil {
		return p, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, output, output
	if err := cmd.Start(); err != nil {
		return p, fmt.Errorf("%w: %w", errNoPostgres, err)
	}
	_, _ = stdin.Close(), output.Close()
	// One line means success. Reading on would wait forever: runuser keeps its
	// copy of the pipe open as long as the server lives.
	answers := bufio.NewReader(stdout)
	text, err := answers.ReadString('\n')
	if err == nil && strings.HasPrefix(text, "postgres://") {
		return process{strings.TrimSpace(text), lifeline, answers, stdout}, nil
	}
	rest, _ := io.ReadAll(answers)
	text = strings.TrimSpace(text + string(rest))
	_, _ = lifeline.Close(), stdout.Close()
	err = cmd.Wait()
	if cmd.ProcessState.ExitCode() == 3 {
		return p, fmt.Errorf("%w: %s", errNoPostgres, text)
	}
	return p, fmt.Errorf("cannot start a private server: %w: %s", err, text)
}

// command is a script as a process of an unprivileged user: PostgreSQL refuses
// to run as root.
func command(script string) (*exec.Cmd, error) {
	if os.Geteuid() != 0 {
		return exec.Command("sh", "-c", script), nil
	}
	account := unprivileged()
	if path, err := exec.LookPath("runuser"); err == nil {
		return exec.Command(path, "-u", account, "--", "sh", "-c", script), nil
	}
	if path, err := exec.LookPath("su"); err == nil {
		return exec.Command(path, "-s", "/bin/sh", account, "-c", script), nil
	}
	return nil, fmt.Errorf("%w: root needs runuser or su to start one", errNoPostgres)
}
