package adbtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Installed reports whether the real adb server can be tested with: in CI always,
// where it is an error if it is missing.
func Installed() bool {
	_, err := exec.LookPath("adb")
	return err == nil || os.Getenv("CI") == "true"
}

// NewRealServer starts the real adb server on a port of its own, with a home of
// its own, connects it to devices (addresses of NewDaemon), and returns its
// address. It ends with the test.
func NewRealServer(tb testing.TB, devices ...string) string {
	tb.Helper()
	program, err := exec.LookPath("adb")
	switch {
	case err != nil && os.Getenv("CI") == "true":
		tb.Fatal("adb is missing: install adb")
	case err != nil:
		tb.Skip("adb is missing: install adb")
	}
	home := tb.TempDir()
	port, environment := "", []string(nil)
	for range 5 { // somebody else may take the port meanwhile
		port = freePort(tb)
		environment = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "ANDROID_ADB_SERVER_PORT=" + port, "ADB_LOCAL_TRANSPORT_MAX_PORT=5554"}
		server := exec.CommandContext(context.WithoutCancel(tb.Context()), program, "-P", port, "nodaemon", "server")
		server.Env = environment
		if err := server.Start(); err != nil {
			tb.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = server.Wait() // says that it was killed
		}()
		tb.Cleanup(func() {
			_ = server.Process.Kill()
			<-ended
		})
		if err = answers(port, ended); err == nil {
			break
		}
	}
	if err != nil {
		tb.Fatalf("the adb server does not start: %v", err)
	}
	for _, device := range devices {
		connect := exec.CommandContext(tb.Context(), program, "-P", port, "connect", device)
		connect.Env = environment
		if said, err := connect.CombinedOutput(); err != nil {
			tb.Logf("adb connect %s: %v: %s", device, err, said) // an unauthorised device is no success
		}
	}
	for limit := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if listed, err := ask(port, "host:devices"); err == nil && settled(listed, devices) {
			return net.JoinHostPort("127.0.0.1", port)
		} else if time.Now().After(limit) {
			tb.Fatalf("the adb server lists %q, %v", listed, err)
		}
	}
}

// settled reports whether every device is there, and getting to know it is over.
func settled(listed string, devices []string) bool {
	for _, device := range devices {
		if !strings.Contains(listed, device+"\tdevice\n") && !strings.Contains(listed, device+"\tunauthorized\n") {
			return false
		}
	}
	return true
}

// answers waits until an adb server answers at a port, or its process has ended.
func answers(port string, ended <-chan struct{}) error {
	for limit := time.After(20 * time.Second); ; {
		_, err := ask(port, "host:version")
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return errors.New("it ended: is the port taken?")
		case <-limit:
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ask asks a server for one text.
func ask(port, service string) (string, error) {
	conn, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", port), time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := fmt.Fprintf(conn, "%04x%s", len(service), service); err != nil {
		return "", err
	}
	var status [4]byte
	if _, err := io.ReadFull(conn, status[:]); err != nil || string(status[:]) != "OKAY" {
		return "", fmt.Errorf("it answers %q: %w", status, err)
	}
	return read(conn)
}

// freePort is a port outside the range from which the system hands out others.
func freePort(tb testing.TB) string {
	tb.Helper()
	for range 100 {
		port := strconv.Itoa(20_000 + rand.IntN(10_000))
		if listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err == nil {
			_ = listener.Close()
			return port
		}
	}
	tb.Fatal("there is no free port")
	return ""
}
