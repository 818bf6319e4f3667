package adbtest

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strconv"
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
	port := freePort(tb)
	environment := []string{"HOME=" + tb.TempDir(), "PATH=" + os.Getenv("PATH"), "ANDROID_ADB_SERVER_PORT=" + port, "ADB_LOCAL_TRANSPORT_MAX_PORT=5554"}
	server := exec.CommandContext(context.WithoutCancel(tb.Context()), program, "-P", port, "nodaemon", "server")
	server.Env = environment
	if err := server.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait() // says that it was killed
	})
	address := net.JoinHostPort("127.0.0.1", port)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			break
		}
		if time.Now().After(deadline) {
			tb.Fatalf("the adb server does not start: %v", err)
		}
	}
	for _, device := range devices {
		connect := exec.CommandContext(tb.Context(), program, "-P", port, "connect", device)
		connect.Env = environment
		if said, err := connect.CombinedOutput(); err != nil {
			tb.Logf("adb connect %s: %v: %s", device, err, said) // an unauthorised device is no success
		}
	}
	return address
}

func freePort(tb testing.TB) string {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}
