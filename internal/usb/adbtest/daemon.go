package adbtest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// The messages between an adb server and a device: six little-endian words, then
// data.
const (
	msgConnect = "CNXN"
	msgAuth    = "AUTH"
	msgOpen    = "OPEN"
	msgOkay    = "OKAY"
	msgWrite   = "WRTE"
	msgClose   = "CLSE"
)

// publicKey marks an AUTH message that asks for trust.
const publicKey = 3

const (
	wireVersion = 0x01000001 // from which data has no checksums
	maxData     = 256 << 10
)

// NewDaemon plays the daemon on a device (adbd) on TCP, as `adb connect` wants it,
// and returns its address. It ends with the test. A device in the state
// "unauthorized" never trusts the computer.
func NewDaemon(tb testing.TB, d *Device) string {
	tb.Helper()
	return listen(tb, func(ctx context.Context, conn net.Conn) {
		t := &transport{conn: conn, device: d, streams: map[uint32]*stream{}}
		t.run(ctx)
	})
}

// transport is one connection of a server to a device.
type transport struct {
	conn   net.Conn
	device *Device

	mu      sync.Mutex
	streams map[uint32]*stream // by the device's id
	last    uint32
	all     sync.WaitGroup
}

func (t *transport) send(kind string, first, second uint32, data []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	head := []byte(kind)
	for _, n := range []uint32{first, second, uint32(len(data)), 0, binary.LittleEndian.Uint32([]byte(kind)) ^ 0xffffffff} {
		head = binary.LittleEndian.AppendUint32(head, n)
	}
	_, err := t.conn.Write(append(head, data...))
	return err
}

// run reads messages until the connection ends.
func (t *transport) run(ctx context.Context) {
	defer func() {
		t.mu.Lock()
		for _, s := range t.streams {
			s.end()
		}
		t.mu.Unlock()
		t.all.Wait()
	}()
	for {
		var head [24]byte
		if _, err := io.ReadFull(t.conn, head[:]); err != nil {
			return
		}
		word := func(i int) uint32 { return binary.LittleEndian.Uint32(head[4*i:]) }
		data := make([]byte, min(word(3), maxData))
		if _, err := io.ReadFull(t.conn, data); err != nil {
			return
		}
		if err := t.take(ctx, string(head[:4]), word(1), word(2), data); err != nil {
			return
		}
	}
}

func (t *transport) take(ctx context.Context, kind string, first, second uint32, data []byte) error {
	switch kind {
	case msgConnect, msgAuth:
		if t.device.state() == "unauthorized" {
			if kind == msgAuth && first == publicKey {
				return nil // somebody would have to allow it on the device
			}
			return t.send(msgAuth, 1, 0, make([]byte, 20)) // a token to be signed by a key that it never trusts
		}
		banner := fmt.Sprintf("device::ro.product.name=sim;ro.product.model=Sim;ro.product.device=sim;features=%s", t.device.features())
		return t.send(msgConnect, wireVersion, maxData, []byte(banner))
	case msgOpen:
		t.open(ctx, first, strings.TrimRight(string(data), "\x00"))
	default:
		t.mu.Lock()
		s := t.streams[second]
		t.mu.Unlock()
		if s == nil {
			return nil // it is over
		}
		switch kind {
		case msgOkay:
			s.acknowledged()
		case msgWrite:
			s.in <- data
		case msgClose:
			s.end()
		}
	}
	return nil
}

// open plays a service on a stream of its own.
func (t *transport) open(ctx context.Context, remote uint32, service string) {
	t.mu.Lock()
	t.last++
	s := &stream{t: t, local: t.last, remote: remote, in: make(chan []byte, 64), okay: make(chan struct{}, 1), done: make(chan struct{})}
	t.streams[s.local] = s
	t.mu.Unlock()
	t.all.Go(func() {
		_ = t.device.serve(ctx, service, func() error { return t.send(msgOkay, s.local, s.remote, nil) }, s)
		t.mu.Lock()
		delete(t.streams, s.local)
		t.mu.Unlock()
		_ = t.send(msgClose, s.local, s.remote, nil)
	})
}

// stream is one service's connection. One message is on its way at a time.
type stream struct {
	t             *transport
	local, remote uint32
	in            chan []byte
	rest          []byte
	okay          chan struct{}
	done          chan struct{}
	once          sync.Once
}

var errClosed = errors.New("the stream is closed")

func (s *stream) end() { s.once.Do(func() { close(s.done) }) }

func (s *stream) acknowledged() {
	select {
	case s.okay <- struct{}{}:
	default:
	}
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		select {
		case s.rest = <-s.in:
			if err := s.t.send(msgOkay, s.local, s.remote, nil); err != nil {
				return 0, err
			}
		case <-s.done:
			return 0, io.EOF
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Write implements io.Writer.
func (s *stream) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		part := p[:min(len(p), 16<<10)]
		if err := s.t.send(msgWrite, s.local, s.remote, part); err != nil {
			return n, err
		}
		select {
		case <-s.okay:
		case <-s.done:
			return n, errClosed
		}
		n, p = n+len(part), p[len(part):]
	}
	return n, nil
}
