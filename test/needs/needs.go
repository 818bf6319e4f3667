// Package needs lists what tests use besides Go, and skips a test where that is
// missing. With CI=true a test fails instead, because a skipped test proves nothing.
package needs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Need is a program or a right that some tests use.
type Need struct {
	Name    string // Chromium
	Remedy  string // how to get it
	Without string // the tests that are skipped without it
	// Optional is a right that CI may not have: there, too, the test is skipped.
	Optional bool
	find     func() (string, error)
}

// PostgreSQL is a server that MUSTER_TEST_POSTGRES names, or the programs to start one.
func PostgreSQL() Need {
	return Need{Name: "PostgreSQL", Remedy: "apt-get install postgresql, or set MUSTER_TEST_POSTGRES",
		Without: "tests on PostgreSQL (the same tests run on SQLite)", find: func() (string, error) {
			if address := os.Getenv("MUSTER_TEST_POSTGRES"); address != "" {
				return address, nil
			}
			return program("initdb", "/usr/lib/postgresql/*/bin/initdb", "/usr/local/pgsql/bin/initdb")
		}}
}

// PgBouncer is the connection pooler.
func PgBouncer() Need {
	return Need{Name: "PgBouncer", Remedy: "apt-get install pgbouncer", Without: "tests behind a connection pooler",
		find: func() (string, error) { return program("pgbouncer", "/usr/sbin/pgbouncer") }}
}

// Nginx is a proxy for which the documentation has an example.
func Nginx() Need {
	return Need{Name: "nginx", Remedy: "apt-get install nginx", Without: "the example of nginx",
		find: func() (string, error) { return program("nginx", "/usr/sbin/nginx") }}
}

// HAProxy is a proxy; see Nginx.
func HAProxy() Need {
	return Need{Name: "HAProxy", Remedy: "apt-get install haproxy", Without: "the example of HAProxy",
		find: func() (string, error) { return program("haproxy", "/usr/sbin/haproxy") }}
}

// Caddy is a proxy; see Nginx.
func Caddy() Need {
	return Need{Name: "Caddy", Remedy: "apt-get install caddy", Without: "the example of Caddy",
		find: func() (string, error) { return program("caddy") }}
}

// Chromium is a browser that the DevTools protocol controls.
func Chromium() Need {
	return Need{Name: "Chromium", Remedy: "apt-get install chromium", Without: "the portal in a browser",
		find: func() (string, error) {
			return program("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
		}}
}

// Zsh is a shell whose completion is tested.
func Zsh() Need {
	return Need{Name: "zsh", Remedy: "apt-get install zsh", Without: "completion in zsh", find: func() (string, error) {
		return program("zsh")
	}}
}

// Fish is a shell; see Zsh.
func Fish() Need {
	return Need{Name: "fish", Remedy: "apt-get install fish", Without: "completion in fish", find: func() (string, error) {
		return program("fish")
	}}
}

// Zbar reads QR codes.
func Zbar() Need {
	return Need{Name: "zbarimg", Remedy: "apt-get install zbar-tools", Without: "QR codes read by a second program",
		find: func() (string, error) { return program("zbarimg") }}
}

// JDK compiles and runs the Android app's core.
func JDK() Need {
	return Need{Name: "JDK", Remedy: "apt-get install openjdk-17-jdk-headless", Without: "the core of the Android app",
		find: func() (string, error) { return program("javac") }}
}

// Enjarify translates Android's bytecode back to Java's.
func Enjarify() Need {
	return Need{Name: "enjarify", Remedy: "apt-get install enjarify maven", Without: "the bytecode of the Android app",
		find: func() (string, error) { return program("/usr/bin/enjarify") }}
}

// Maven fetches the libraries that the Android app is built with.
func Maven() Need {
	return Need{Name: "Maven", Remedy: "apt-get install maven", Without: "the bytecode of the Android app",
		find: func() (string, error) { return program("mvn") }}
}

// Root may start processes of other users.
func Root() Need {
	return Need{Name: "root", Remedy: "run the tests as root, with setpriv of util-linux",
		Without: "the agent as a system service of Android, and files that root leaves to the service",
		find: func() (string, error) {
			if os.Getuid() != 0 {
				return "", errors.New("this is another user")
			}
			return program("setpriv")
		}}
}

// Mount is the right to mount a small file system, which a test fills.
func Mount() Need {
	return Need{Name: "mount", Remedy: "run the tests as root, with the right to mount", Without: "full disks", Optional: true,
		find: func() (string, error) {
			return "", exec.Command("unshare", "--mount", "sh", "-c", "mount -t tmpfs none /mnt").Run()
		}}
}

// Promtool checks the alerts.
func Promtool() Need {
	return Need{Name: "promtool", Remedy: "apt-get install prometheus", Without: "that the alerts fire",
		find: func() (string, error) { return program("promtool") }}
}

// Fail2ban reads the log of refused sign-ins.
func Fail2ban() Need {
	return Need{Name: "fail2ban-regex", Remedy: "apt-get install fail2ban", Without: "that fail2ban finds refused sign-ins",
		find: func() (string, error) { return program("fail2ban-regex") }}
}

// Curl makes the requests of the documentation's examples.
func Curl() Need {
	return Need{Name: "curl", Remedy: "apt-get install curl", Without: "the commands of the documentation", find: func() (string, error) {
		return program("curl")
	}}
}

// All lists the needs of `go test ./...`. The conformance suites have needs of their
// own, which `make conformance` installs.
func All() []Need {
	return []Need{PostgreSQL(), PgBouncer(), Nginx(), HAProxy(), Caddy(), Zsh(), Fish(), Chromium(), Zbar(), JDK(), Enjarify(), Maven(),
		Root(), Mount(), Promtool(), Fail2ban(), Curl()}
}

// Find returns where it is, or why it is missing.
func (n Need) Find() (string, error) { return n.find() }

// Of returns where it is, or skips the test.
func (n Need) Of(tb testing.TB) string {
	tb.Helper()
	path, err := n.find()
	if err != nil {
		n.Missing(tb, err)
	}
	return path
}

// Missing skips a test that found out by itself that something is missing.
func (n Need) Missing(tb testing.TB, err error) {
	tb.Helper()
	text := fmt.Sprintf("%s is missing (%v): %s", n.Name, err, n.Remedy)
	if os.Getenv("CI") == "true" && !n.Optional {
		tb.Fatal(text)
		return
	}
	tb.Skip(text)
}

// program returns the first of several programs: a name in PATH, or a pattern of paths.
func program(names ...string) (string, error) {
	for _, name := range names {
		paths, _ := filepath.Glob(name)
		for _, path := range append(paths, name) {
			if found, err := exec.LookPath(path); err == nil {
				return found, nil
			}
		}
	}
	return "", exec.ErrNotFound
}
