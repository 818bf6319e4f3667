package e2e_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/test/poll"
	"github.com/musterhq/muster/test/port"
)

var peerIdle = flag.Int("idle", 200, "idle connections of each side of a round with -peers")

// idleWarm connections are there before the memory is read for the first time.
const idleWarm = 50

// idle compares the memory of an agent that waits over TLS with that of a subscriber of
// mosquitto, each time in a fresh process.
func (p *peers) idle(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "idle.db")
	cert, key, _ := selfSigned(t, "localhost")
	t.Setenv("MUSTER_TLS_CERT", cert)
	t.Setenv("MUSTER_TLS_KEY", key)
	fleet := newLoadFleet(t, url, *peerIdle+idleWarm, 1)
	if err := fleet.ours.stop(); err != nil {
		t.Fatal(err)
	}
	muster := &side{name: "Muster"}
	p.run(t, &contest{what: "memory of an idle agent under TLS", unit: "KiB", goal: "≤ 1.4"}, muster, &side{name: "mosquitto"},
		func(s *side) (float64, error) {
			if s == muster {
				fleet.ours = startUnderLoad(t, "service", url)
				return kibOfIdle(t, fleet.ours, func(n int) (net.Conn, error) { return fleet.agents[n].listen(fleet) })
			}
			broker := startMosquitto(t, cert, key)
			return kibOfIdle(t, broker, func(n int) (net.Conn, error) { return subscriber(strings.TrimPrefix(broker.url, "http://"), n) })
		})
}

// kibOfIdle is the process's resident memory for each connection, in KiB. The process
// is stopped.
func kibOfIdle(t *testing.T, u *underLoad, dial func(n int) (net.Conn, error)) (float64, error) {
	t.Helper()
	all := &connected{process: u, conns: make([]net.Conn, idleWarm+*peerIdle)}
	defer all.close()
	warm := &connected{conns: all.conns[:idleWarm]}
	warm.dialAll(t, dial)
	poll.Pause(3 * time.Second) // until what it took to start is free
	before := resident(t, u.pid)
	more := &connected{conns: all.conns[idleWarm:]}
	more.dialAll(t, func(n int) (net.Conn, error) { return dial(idleWarm + n) })
	poll.Pause(3 * time.Second)
	kib := float64(resident(t, u.pid)-before) / 1024 / float64(*peerIdle)
	if t.Failed() {
		return 0, errors.New("not every connection was made")
	}
	_ = u.stop()
	return kib, nil
}

// mosquitto finds the program, which Debian keeps where only root looks.
func mosquitto() string {
	if path, err := exec.LookPath("mosquitto"); err == nil {
		return path
	}
	return "/usr/sbin/mosquitto"
}

// startMosquitto starts one with a certificate.
func startMosquitto(t *testing.T, cert, key string) *underLoad {
	t.Helper()
	number := port.Reserve(t)
	file := filepath.Join(t.TempDir(), "mosquitto.conf")
	text := fmt.Sprintf("user root\nlistener %d 127.0.0.1\nallow_anonymous true\ncertfile %s\nkeyfile %s\nlog_type error\n", number, cert,
		key)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return startPeer(t, number, mosquitto(), "-c", file)
}

// subscriber connects to a broker over TLS, and subscribes to a subject of its own
// (MQTT 3.1.1).
func subscriber(address string, n int) (net.Conn, error) {
	c, err := tls.Dial("tcp", address, anyCertificate())
	if err != nil {
		return nil, err
	}
	name := "device/" + strconv.Itoa(n)
	text := append([]byte{0, byte(len(name))}, name...)
	connect := append([]byte{0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 0}, text...) // a clean session without an end
	subscribe := append(append([]byte{0, 1}, text...), 0)
	for _, exchange := range []struct {
		kind, answer byte
		body         []byte
	}{{0x10, 0x20, connect}, {0x82, 0x90, subscribe}} {
		if _, err = c.Write(append([]byte{exchange.kind, byte(len(exchange.body))}, exchange.body...)); err != nil {
			return nil, err
		}
		head := make([]byte, 2)
		if _, err = io.ReadFull(c, head); err != nil {
			return nil, err
		}
		answer := make([]byte, head[1])
		if _, err = io.ReadFull(c, answer); err != nil {
			return nil, err
		}
		if head[0] != exchange.answer || !bytes.Equal(answer[len(answer)-1:], []byte{0}) {
			return nil, fmt.Errorf("the broker answered % x % x", head, answer)
		}
	}
	return c, nil
}
