package fleetsim_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/fleetsim"
)

// process is a service to measure as a process of its own, which can be killed.
type process struct {
	fleetsim.Access
	t       *testing.T
	program string
	dir     string
	start   time.Time
	cmd     *exec.Cmd
	in      io.WriteCloser
}

// startProcess builds the program, without the race detector, and starts it.
func startProcess(t *testing.T, agents, keys int) *process {
	t.Helper()
	p := &process{t: t, program: filepath.Join(t.TempDir(), "muster"), dir: t.TempDir(), start: time.Now().Truncate(time.Millisecond)}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", p.program, "github.com/musterhq/muster/cmd/muster")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the service: %v\n%s", err, out)
	}
	p.Access = p.run(fleetsim.ServiceSettings{Agents: agents, Keys: keys})
	t.Cleanup(p.end)
	return p
}

func (p *process) run(settings fleetsim.ServiceSettings) (served fleetsim.Access) {
	p.t.Helper()
	settings.Dir, settings.Start, settings.Pace = p.dir, p.start.UnixMilli(), pace
	p.cmd = exec.Command(p.program, "simulate-service")
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		p.t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	if err := json.NewEncoder(p.in).Encode(settings); err != nil {
		p.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &served)
	}
	if err != nil {
		p.t.Fatalf("the service did not start: %v", err)
	}
	return served
}

// kill ends the service with SIGKILL and starts it again on the same address.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = p.cmd.Wait() // says that it was killed
	p.run(fleetsim.ServiceSettings{Listen: p.Server[len("http://"):]})
	return nil
}

func (p *process) end() {
	_ = p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the service did not end well: %v", err)
	}
}
