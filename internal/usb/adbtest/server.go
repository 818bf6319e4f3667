package adbtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Server plays an adb server.
type Server struct {
	Address string

	mu       sync.Mutex
	devices  []*Device
	changed  chan struct{} // closed when devices change
	Requests []string      // what was asked, for tests that nothing runs meanwhile
}

// NewServer starts one, which ends with the test.
func NewServer(tb testing.TB, devices ...*Device) *Server {
	tb.Helper()
	s := &Server{devices: devices, changed: make(chan struct{})}
	s.Address = listen(tb, s.serve)
	return s
}

// Connect changes which devices are connected.
func (s *Server) Connect(devices ...*Device) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.devices = devices
	close(s.changed)
	s.changed = make(chan struct{})
}

// Asked lists what was asked so far.
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.Requests...)
}

// serve answers requests until one hands the connection over.
func (s *Server) serve(ctx context.Context, conn net.Conn) {
	var chosen *Device
	for {
		request, err := read(conn)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.Requests = append(s.Requests, request)
		s.mu.Unlock()
		if chosen != nil {
			granted := func() error { _, err := io.WriteString(conn, "OKAY"); return err }
			if err := chosen.serve(ctx, request, granted, conn); err != nil {
				fail(conn, err.Error())
			}
			return
		}
		if serial, ok := strings.CutPrefix(request, "host:transport:"); ok {
			if chosen, err = s.find(serial); err != nil {
				fail(conn, err.Error())
				return
			}
			_, _ = io.WriteString(conn, "OKAY")
			continue
		}
		s.answer(ctx, request, conn)
		return
	}
}

// answer answers a question to the server itself.
func (s *Server) answer(ctx context.Context, request string, conn net.Conn) {
	rest, _ := strings.CutPrefix(request, "host-serial:")
	serial, isFeatures := strings.CutSuffix(rest, ":features")
	switch {
	case request == "host:version":
		okay(conn, "0029")
	case request == "host:devices-l":
		text, _ := s.list()
		okay(conn, text)
	case request == "host:track-devices":
		_, _ = io.WriteString(conn, "OKAY")
		for {
			text, changed := s.list()
			if _, err := fmt.Fprintf(conn, "%04x%s", len(text), text); err != nil {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	case isFeatures:
		d, err := s.find(serial)
		if err != nil {
			fail(conn, err.Error())
			return
		}
		okay(conn, d.features())
	default:
		fail(conn, "unknown host service")
	}
}

func (s *Server) list() (string, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text strings.Builder
	for i, d := range s.devices {
		fmt.Fprintf(&text, "%-22s %s usb:1-%d product:sim model:Sim device:sim transport_id:%d\n", d.Serial, d.state(), i, i+1)
	}
	return text.String(), s.changed
}

func (s *Server) find(serial string) (*Device, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.devices {
		if d.Serial == serial {
			if d.state() != "device" {
				return nil, fmt.Errorf("device %s.\nThis adb server's $ADB_VENDOR_KEYS is not set", d.state())
			}
			return d, nil
		}
	}
	return nil, fmt.Errorf("device '%s' not found", serial)
}

func okay(w io.Writer, text string) { fmt.Fprintf(w, "OKAY%04x%s", len(text), text) }

func fail(w io.Writer, text string) { fmt.Fprintf(w, "FAIL%04x%s", len(text), text) }

func read(r io.Reader) (string, error) {
	var digits [4]byte
	if _, err := io.ReadFull(r, digits[:]); err != nil {
		return "", err
	}
	length, err := strconv.ParseUint(string(digits[:]), 16, 16)
	if err != nil {
		return "", err
	}
	text := make([]byte, length)
	_, err = io.ReadFull(r, text)
	return string(text), err
}
