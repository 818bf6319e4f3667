// Package adb talks to the adb server, the program of Android's developer tools
// that holds the USB connections, by its own protocol ("smart sockets"): which
// devices there are, commands on their shell, files onto them. What devices send
// is bounded and is not to be trusted.
package adb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/check"
)

// Limits of one exchange with the server.
const (
	dialTime  = 5 * time.Second
	maxAnswer = 0xffff // what four hexadecimal digits can say
	maxOutput = 1 << 20
)

// Server is an adb server.
type Server struct {
	Address string // host:port
}

// Error is what the server or a device refused, in its own words, cleaned.
type Error struct{ Text string }

// Error implements error.
func (e *Error) Error() string { return "adb: " + e.Text }

// ErrNoServer is returned when nothing answers at the server's address.
var ErrNoServer = errors.New("no adb server answers")

// Address reads where the adb server is from what its own programs take:
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

// Version asks for the server's version: proof that it is one.
func (s Server) Version(ctx context.Context) (int, error) {
	text, err := s.query(ctx, "host:version")
	if err != nil {
		return 0, err
	}
	version, err := strconv.ParseUint(text, 16, 32)
	if err != nil {
		return 0, fmt.Errorf("what listens at %s is no adb server", s.Address)
	}
	return int(version), nil
}

// Features lists what a device's side of adb can do.
func (s Server) Features(ctx context.Context, serial string) ([]string, error) {
	text, err := s.query(ctx, "host-serial:"+serial+":features")
	return strings.Split(text, ","), err
}

// query asks the server for one text.
func (s Server) query(ctx context.Context, service string) (string, error) {
	l, err := s.open(ctx, service)
	if err != nil {
		return "", err
	}
	defer l.close()
	text, err := l.text()
	return text, l.reason(err)
}

// line is one connection to the server. It ends with its context.
type line struct {
	net.Conn
	ctx  context.Context
	stop func() bool
}

// open connects and asks for a service.
func (s Server) open(ctx context.Context, services ...string) (*line, error) {
	dialer := net.Dialer{Timeout: dialTime}
	conn, err := dialer.DialContext(ctx, "tcp", s.Address)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("%w at %s", ErrNoServer, s.Address)
	}
	l := &line{Conn: conn, ctx: ctx}
	l.stop = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	for _, service := range services {
		if err := l.ask(service); err != nil {
			l.close()
			return nil, l.reason(err)
		}
	}
	return l, nil
}

func (l *line) close() {
	l.stop()
	_ = l.Close()
}

// reason is why the line failed: its context's end, if it has ended.
func (l *line) reason(err error) error {
	if err != nil && l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Error{"the connection ended: was the device unplugged?"}
	}
	return err
}

// ask sends a request, four hexadecimal digits of its length first, and reads
// whether it was granted.
func (l *line) ask(service string) error {
	if len(service) > maxAnswer {
		return fmt.Errorf("a request of %d bytes is too long for adb", len(service))
	}
	if _, err := fmt.Fprintf(l, "%04x%s", len(service), service); err != nil {
		return err
	}
	return l.granted()
}

func (l *line) granted() error {
	var status [4]byte
	if _, err := io.ReadFull(l, status[:]); err != nil {
		return err
	}
	switch string(status[:]) {
	case "OKAY":
		return nil
	case "FAIL":
		text, err := l.text()
		if err != nil {
			return err
		}
		return &Error{clean(text)}
	}
	return errors.New("what listens there is no adb server")
}

// text reads one text with its length before it.
func (l *line) text() (string, error) {
	var digits [4]byte
	if _, err := io.ReadFull(l, digits[:]); err != nil {
		return "", err
	}
	length, err := strconv.ParseUint(string(digits[:]), 16, 16)
	if err != nil {
		return "", errors.New("the adb server's answer has no length")
	}
	var text bytes.Buffer
	if _, err := io.CopyN(&text, l, int64(length)); err != nil {
		return "", err
	}
	return text.String(), nil
}

// clean makes what a device or the server said fit to be shown.
func clean(text string) string { return check.Clean(text, 300) }
