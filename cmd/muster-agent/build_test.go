package main_test

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// maxSize is what a device may be asked to hold, in bytes.
const maxSize = 10_000_000

// The agent is built for each kind of device, small, and needs nothing that the
// device does not have.
func TestBuild_AgentsForDevices(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds three programs")
	}
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "../../scripts/agents.sh", dir)
	for _, pair := range os.Environ() { // also when the race detector builds the tests
		if !strings.HasPrefix(pair, "GOFLAGS=") {
			build.Env = append(build.Env, pair)
		}
	}
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for name, want := range map[string]struct {
		machine elf.Machine
		linker  string // empty: static
	}{
		"android-arm64": {elf.EM_AARCH64, "/system/bin/linker64"},
		"linux-arm64":   {elf.EM_AARCH64, ""},
		"linux-amd64":   {elf.EM_X86_64, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, "muster-agent-"+name)
			info, err := os.Stat(path)
			if err != nil {
				t.Error(err)
				return
			}
			if info.Size() >= maxSize {
				t.Errorf("%s has %d bytes, more than %d", name, info.Size(), maxSize)
			}
			file, err := elf.Open(path)
			if err != nil {
				t.Error(err)
				return
			}
			defer file.Close()
			if file.Machine != want.machine || linker(t, file) != want.linker {
				t.Errorf("%s is for %s and is linked by %q", name, file.Machine, linker(t, file))
			}
			if needed, err := file.ImportedLibraries(); want.linker == "" && (err != nil || len(needed) > 0) {
				t.Errorf("%s needs %v, %v", name, needed, err)
			}
		})
	}
}

// linker is the program that links another at its start; empty: none does.
func linker(t *testing.T, file *elf.File) string {
	t.Helper()
	for _, p := range file.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		text := make([]byte, p.Filesz)
		if _, err := p.ReadAt(text, 0); err != nil {
			t.Fatal(err)
		}
		return strings.TrimRight(string(text), "\x00")
	}
	return ""
}
