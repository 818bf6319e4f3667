package pgtest

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/musterhq/muster/test/needs"
	"github.com/musterhq/muster/test/poll"
	"github.com/musterhq/muster/test/port"
)

// keepBouncer runs PgBouncer until standard input ends, so that it ends with the
// test, however that ends.
const keepBouncer = `"$@" & while read -r _; do :; done; kill -9 $!`

// Bouncer starts a PgBouncer before the server of a DSN, with lines of its
// section [pgbouncer], and returns the DSN that leads through it. Where there is
// no PgBouncer the test is skipped, and fails with CI=true.
func Bouncer(tb testing.TB, dsn string, settings ...string) string {
	tb.Helper()
	program := needs.PgBouncer().Of(tb)
	target, err := url.Parse(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	number := strconv.Itoa(port.Reserve(tb))
	address := "127.0.0.1:" + number
	password, _ := target.User.Password()
	name := strings.TrimPrefix(target.Path, "/")
	text := fmt.Sprintf("[databases]\n%s = host=%s port=%s dbname=%s user=%s password=%s\n[pgbouncer]\nlisten_addr = "+
		"127.0.0.1\nlisten_port = %s\nunix_socket_dir =\nauth_type = any\n%s\n",
		name, target.Hostname(), target.Port(), name, target.User.Username(), password, number, strings.Join(settings, "\n"))
	file := filepath.Join(tb.TempDir(), "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	words := []string{"-c", keepBouncer, "sh", program}
	if os.Geteuid() == 0 { // PgBouncer refuses to serve as root
		words = append(words, "-u", unprivileged())
	}
	var log bytes.Buffer
	process := exec.Command("sh", append(words, file)...)
	process.Stdout, process.Stderr = &log, &log
	lifeline, err := process.StdinPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = lifeline.Close()
		_ = process.Wait()
		if tb.Failed() {
			tb.Logf("PgBouncer said:\n%s", log.Bytes())
		}
	})
	poll.Until(tb, "PgBouncer does not serve", func() error {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err
	})
	target.Host = address
	return target.String()
}

// unprivileged is the account that database programs run as when we are root.
func unprivileged() string {
	if _, err := user.Lookup("postgres"); err == nil {
		return "postgres"
	}
	return "nobody"
}

// BouncerPrepares reports whether the PgBouncer here prepares statements itself,
// which is so from version 1.21.
func BouncerPrepares(tb testing.TB) bool {
	tb.Helper()
	text, _ := exec.CommandContext(tb.Context(), needs.PgBouncer().Of(tb), "--version").Output()
	var major, minor int
	_, err := fmt.Sscanf(string(text), "PgBouncer %d.%d", &major, &minor)
	return err == nil && (major > 1 || minor >= 21)
}
