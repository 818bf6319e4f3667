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

//go:embed server.sh
var script string

// errNoPostgres: neither an address nor PostgreSQL's programs (or no way to run
// them) on this machine.
var errNoPostgres = errors.New("no PostgreSQL server")

// start runs the private server and returns its address and the pipe whose
// closing ends it. It waits for the server to accept connections.
func start() (address string, lifeline *os.File, err error) {
	cmd, err := command()
	if err != nil {
		return "", nil, err
	}
	stdin, lifeline, err := os.Pipe()
	if err != nil {
		return "", nil, err
	}
	stdout, output, err := os.Pipe()
	if err != nil {
		return "", nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, output, output
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("%w: %w", errNoPostgres, err)
	}
	_, _ = stdin.Close(), output.Close()
	defer func() { _ = stdout.Close() }()
	// One line means success. Reading on would wait for ever: runuser keeps its
	// copy of the pipe open as long as the server lives.
	answer := bufio.NewReader(stdout)
	text, err := answer.ReadString('\n')
	if err == nil && strings.HasPrefix(text, "postgres://") {
		return strings.TrimSpace(text), lifeline, nil
	}
	rest, _ := io.ReadAll(answer)
	text = strings.TrimSpace(text + string(rest))
	_ = lifeline.Close()
	err = cmd.Wait()
	if cmd.ProcessState.ExitCode() == 3 {
		return "", nil, fmt.Errorf("%w: %s", errNoPostgres, text)
	}
	return "", nil, fmt.Errorf("cannot start a private server: %w: %s", err, text)
}

// command is the script as a process of an unprivileged user: PostgreSQL
// refuses to run as root.
func command() (*exec.Cmd, error) {
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
