package conformance_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/servertest"
)

// googleSteps are the steps that each program of Google's clients reports.
const googleSteps = 6

// Google's clients make enterprises, rich policies, tokens, devices, commands
// and operations at the emulator, with their default settings.
func TestEmulator_GoogleClients(t *testing.T) {
	t.Parallel()
	needPrograms(t)
	for name, run := range map[string]func(*testing.T, string) (int, string){
		"python": func(t *testing.T, emulator string) (int, string) {
			return program(t, emulator, filepath.Join(*python, "bin", "python"), "amapi.py")
		},
		"node": func(t *testing.T, emulator string) (int, string) {
			return node(t, nil, []string{emulator}, "amapi.mjs")
		},
		"java": func(t *testing.T, emulator string) (int, string) {
			return program(t, emulator, "java", "-cp", filepath.Join(*maven, "*"), "Amapi.java")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out := run(t, "EMULATOR="+servertest.New(t).Emulator.URL())
			if done := strings.Count(out, "ok "); code != 0 || done != googleSteps {
				t.Errorf("exit %d after %d of %d steps:\n%s", code, done, googleSteps, out)
			}
		})
	}
}

// program runs a program in the directory of the packages and returns its exit
// code and what it printed.
func program(t *testing.T, environment, name string, arguments ...string) (int, string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	command.Dir = *npm
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "NO_COLOR=1", environment}
	out, err := command.CombinedOutput()
	if err != nil && command.ProcessState == nil {
		t.Fatalf("cannot run %s: %v", name, err)
	}
	return command.ProcessState.ExitCode(), string(out)
}
