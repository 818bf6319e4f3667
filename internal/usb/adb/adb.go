// Package adb runs the adb program of Android's developer tools: it lists devices,
// runs commands in their shell and copies files to them. What a device sends is
// bounded and cleaned, because a device can send anything.
package adb

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/validate"
)

// maxOutput bounds each of the two outputs of one call.
const maxOutput = 1 << 20

// Client runs the adb program with one adb server.
type Client struct {
	Program string // empty: adb in PATH
	Address string // of the adb server, HOST:PORT
}

// Error is what adb or a device refused, in its own words, cleaned.
type Error struct{ Text string }

// Error implements error.
func (e *Error) Error() string { return "adb: " + e.Text }

// Address reads where the adb server is from what adb itself takes:
// ADB_SERVER_SOCKET (tcp:HOST:PORT or tcp:PORT) or ANDROID_ADB_SERVER_PORT.
func Address(socket, port string) (string, error) {
	host, wanted := "127.0.0.1", "5037"
	switch rest, tcp := strings.CutPrefix(socket, "tcp:"); {
	case socket != "" && !tcp:
		return "", fmt.Errorf("ADB_SERVER_SOCKET %q is not tcp:HOST:PORT", socket)
	case socket != "":
		wanted = rest
		if cut := strings.LastIndexByte(rest, ':'); cut >= 0 {
			host, wanted = strings.Trim(rest[:cut], "[]"), rest[cut+1:]
		}
	case port != "":
		wanted = port
	}
	if n, err := strconv.ParseUint(wanted, 10, 16); err != nil || n == 0 || host == "" {
		return "", fmt.Errorf("the adb server's port %q is not a number from 1 to 65535", wanted)
	}
	return net.JoinHostPort(host, wanted), nil
}

// Start makes sure that an adb server runs: adb starts one on this machine if none
// answers. It reports whether one was started, which then still looks for devices.
func (c Client) Start(ctx context.Context) (started bool, err error) {
	_, output, err := c.call(ctx, nil, "start-server")
	return strings.Contains(output, "started"), err
}

// Output is what a command on a device wrote, at most 1 MiB of each, and its exit
// code. A device before Android 7 mixes the two outputs in Out.
type Output struct {
	Out, Err string
	Code     int
}

// Message is the end of what the command wrote, cleaned, for an error message.
func (o Output) Message() string {
	return cmp.Or(clean(o.Err), clean(o.Out), "exit code "+strconv.Itoa(o.Code))
}

// exitMark precedes a command's exit code in its output. The shell of a device before
// Android 7 reports no exit code, so the code is asked for on every device.
const exitMark = "muster-exit="

// Run runs one command with its arguments on a device, as the shell user. The
// device's shell reads the words as they are, because Quote protects them. A command
// that fails is an Output with another code than 0, not an error.
func (c Client) Run(ctx context.Context, serial string, words ...string) (Output, error) {
	command, err := Quote(words...)
	if err != nil {
		return Output{}, err
	}
	out, output, err := c.call(ctx, nil, "-s", serial, "shell", command+"; echo "+exitMark+"$?")
	if err != nil {
		return Output{}, err
	}
	if strings.HasSuffix(out, "\r\n") { // the shell of a device before Android 7 has a terminal
		out = strings.ReplaceAll(out, "\r\n", "\n")
	}
	cut := strings.LastIndex(out, exitMark)
	if cut < 0 {
		return Output{}, &Error{"the connection ended: was the device unplugged?"}
	}
	code, err := strconv.ParseUint(strings.TrimSpace(out[cut+len(exitMark):]), 10, 8)
	if err != nil {
		return Output{}, errors.New("cannot read the exit code that the device sent")
	}
	return Output{out[:cut], output, int(code)}, nil
}

// Exists reports whether a device has something at a path that its shell user may see.
func (c Client) Exists(ctx context.Context, serial, path string) (bool, error) {
	output, err := c.Run(ctx, serial, "[", "-e", path, "]")
	if err == nil && output.Code > 1 {
		err = errors.New(output.Message())
	}
	return output.Code == 0, err
}

// Push copies a regular file to a path on a device and replaces what was there. adb
// reads it as its standard input, so that a file without a name can be copied. The
// device gives its group and all others the rights of its owner: what is secret
// belongs into a directory that is closed to them.
func (c Client) Push(ctx context.Context, serial, path string, content *os.File) error {
	_, _, err := c.call(ctx, content, "-s", serial, "push", "/dev/stdin", path)
	return err
}

// Quote writes words as a POSIX shell, such as Android's, reads them back: each
// within single quotes, in which nothing but a single quote has a meaning.
func Quote(words ...string) (string, error) {
	quoted := make([]string, len(words))
	for i, word := range words {
		if strings.ContainsRune(word, 0) {
			return "", errors.New("an argument with a NUL cannot be handed to a program")
		}
		quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " "), nil
}

// command is one call of adb. Its standard input is empty.
func (c Client) command(ctx context.Context, args ...string) (*exec.Cmd, error) {
	program, err := exec.LookPath(cmp.Or(c.Program, "adb"))
	if err != nil {
		return nil, errors.New("cannot find the program adb: install Android's platform tools (Debian: apt-get install adb)")
	}
	host, port, err := net.SplitHostPort(c.Address)
	if err != nil {
		return nil, err
	}
	server := []string{"-P", port}
	// With -H adb takes the server for one on another machine and starts none.
	if ip := net.ParseIP(host); host != "localhost" && !ip.IsLoopback() {
		server = append(server, "-H", host)
	}
	cmd := exec.CommandContext(ctx, program, append(server, args...)...)
	cmd.WaitDelay = time.Second // a server that adb started may hold on to the pipes
	return cmd, nil
}

// call runs adb to its end and returns its outputs.
func (c Client) call(ctx context.Context, stdin *os.File, args ...string) (out, output string, err error) {
	cmd, err := c.command(ctx, args...)
	if err != nil {
		return "", "", err
	}
	var stdout, stderr limited
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if stdin != nil {
		cmd.Stdin = stdin
	}
	err = cmd.Run()
	out, output = stdout.kept.String(), stderr.kept.String()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return out, output, nil
	}
	return "", "", c.reason(ctx, err, cmp.Or(output, out))
}

// reason is why a call failed: its context's end, or adb's own words.
func (c Client) reason(ctx context.Context, err error, output string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	output = clean(output)
	for _, prefix := range []string{"adb: ", "error: "} {
		output = strings.TrimPrefix(output, prefix)
	}
	return &Error{cmp.Or(output, err.Error())}
}

// limited keeps the beginning of what is written to it.
type limited struct{ kept bytes.Buffer }

// Write implements io.Writer; it drops what is too much.
func (l *limited) Write(p []byte) (int, error) {
	if room := maxOutput - l.kept.Len(); room > 0 {
		l.kept.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

// clean makes what a device or adb wrote fit to be shown.
func clean(text string) string { return validate.Clean(text, 300) }
