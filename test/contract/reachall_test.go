package contract_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/servertest"
)

// patient runs docs/reach_all.py with pauses that the test ends.
const patient = `
import sys, time
sys.path.insert(0, sys.argv.pop(1))
def pause(seconds):
    print("PAUSE", int(seconds), flush=True)
    sys.stdin.readline()
time.sleep = pause
import reach_all
reach_all.main()
`

// The script of the documentation reaches more devices than a minute allows, each once,
// also when it is started again.
func TestReachAll_Script(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not here: the script in docs/ was not run")
	}
	env := servertest.New(t)
	replica := env.Start()
	tenant := env.NewTenant("acme")
	phones := tenant.Devices(replica, servertest.FullyManaged(), 23)
	key := env.Key(tenant.Company, access.All)
	for _, want := range []struct {
		run    string
		pauses int // at least
		sent   int // to each device, so far
	}{{"monday", 2, 1}, {"monday", 0, 1}, {"tuesday", 2, 2}} {
		lines, pauses := reachAll(t, env, python, key, replica.PublicURL(), want.run, "reboot")
		if len(lines) != len(phones) || pauses < want.pauses || want.pauses == 0 && pauses > 0 {
			t.Errorf("run %s: %d devices and %d pauses: %q", want.run, len(lines), pauses, lines)
		}
		for _, phone := range phones {
			if n := len(replica.As(env.Key(tenant.Company, access.All)).History(phone.AssetID)); n != want.sent {
				t.Errorf("run %s: device %s got %d commands, want %d", want.run, phone.AssetID, n, want.sent)
			}
		}
		env.Advance(time.Minute)
	}
}

// reachAll returns the lines of the script, and how often it paused.
func reachAll(t *testing.T, env *servertest.Env, python, key string, args ...string) (lines []string, pauses int) {
	t.Helper()
	script := exec.CommandContext(t.Context(), python, append([]string{"-c", patient, filepath.Join("..", "..", "docs")}, args...)...)
	script.Env = append(os.Environ(), "MUSTER_API_KEY="+key, "PYTHONDONTWRITEBYTECODE=1")
	var errors bytes.Buffer
	script.Stderr = &errors
	in, err := script.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := script.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := script.Start(); err != nil {
		t.Fatal(err)
	}
	for scan := bufio.NewScanner(out); scan.Scan(); {
		pause, is := strings.CutPrefix(scan.Text(), "PAUSE ")
		if !is {
			lines = append(lines, scan.Text())
			continue
		}
		pauses++
		seconds, _ := strconv.Atoi(pause)
		env.Advance(time.Duration(seconds) * time.Second)
		if _, err := io.WriteString(in, "\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := script.Wait(); err != nil {
		t.Errorf("the script: %v %s", err, errors.String())
	}
	return lines, pauses
}
