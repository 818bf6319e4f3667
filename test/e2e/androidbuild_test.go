package e2e_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/test/executable"
)

// A newcomer who builds the app reads, in one line and before anything is made, which
// programs are missing and how to install them.
func TestAndroidBuild_NamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	script, err := filepath.Abs("../../android/build.sh")
	if err != nil {
		t.Fatal(err)
	}
	everything := []string{"javac", "java", "keytool", "mvn", "apksigner", "unzip", "chmod", "cut", "date", "dirname", "mkdir", "rm",
		"sha256sum", "sort", "stat", "find", "grep", "sed"}
	for name, c := range map[string]struct{ there, missing, packages []string }{
		"an empty PATH": {nil, everything, []string{"openjdk-17-jdk-headless", "maven", "apksigner", "unzip", "coreutils",
			"findutils", "grep", "sed"}},
		"a JDK without keytool, no Maven": {without(everything, "keytool", "mvn"), []string{"keytool", "mvn"},
			[]string{"openjdk-17-jdk-headless", "maven"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
			for _, name := range c.there {
				executable.Write(t, filepath.Join(path, name), []byte("#!/bin/false\n"))
			}
			build := exec.CommandContext(t.Context(), bash, script, out)
			build.Env = []string{"PATH=" + path}
			output, err := build.CombinedOutput()
			if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("it ends with %v, want exit code 1", err)
			}
			want := "cannot build the app: these programs are missing: " + strings.Join(c.missing, ", ") +
				"; install them, on Debian as root with: apt-get install " + strings.Join(c.packages, " ") + "\n"
			if string(output) != want {
				t.Errorf("it says\n%swant\n%s", output, want)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("it has begun to build")
			}
		})
	}
}

// without is a list without some of its texts.
func without(all []string, some ...string) (left []string) {
	for _, one := range all {
		if !strings.Contains(" "+strings.Join(some, " ")+" ", " "+one+" ") {
			left = append(left, one)
		}
	}
	return left
}
