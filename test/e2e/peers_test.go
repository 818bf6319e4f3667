package e2e_test

import (
	"database/sql"
	"debug/buildinfo"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/test/poll"
)

// Muster beside programs of others, in one sitting on one machine, in turn:
//
//	make bench-peers
//
// installs the programs into a temporary directory and runs this test.
var (
	peersDir   = flag.String("peers", "", "directory with the programs that scripts/bench-peers.sh builds")
	peerRounds = flag.Int("rounds", 3, "rounds of each comparison with -peers")
	peerRound  = flag.Duration("round", 300*time.Millisecond, "length of each side of a round with -peers")
	peerTable  = flag.String("table", "", "document whose table of peers is replaced")
)

func TestPeers(t *testing.T) {
	if *peersDir == "" {
		t.Skip("without -peers; see make bench-peers")
	}
	p := &peers{}
	t.Run("commands", p.commands)
	t.Run("commands on SQLite", p.commandsSQLite)
	t.Run("records", p.records)
	t.Run("idle", p.idle)
	text := p.text(t)
	t.Log("\n" + text)
	if *peerTable != "" && !t.Failed() {
		if err := replaceBetween(*peerTable, "bench-peers", text); err != nil {
			t.Error(err)
		}
	}
}

// peers collects the comparisons.
type peers struct{ contests []*contest }

// side is one of two that are compared.
type side struct {
	name    string
	callers int
	do      func(n int) error
	process *underLoad // whose CPU counts
	next    atomic.Int64
}

// run lets the callers do it again and again for a time.
func (s *side) run(length time.Duration) (done int64, took time.Duration, err error) {
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	start := time.Now()
	for range s.callers {
		all.Go(func() {
			for time.Since(start) < length && failed.Load() == nil {
				if err := s.do(int(s.next.Add(1))); err != nil {
					failed.Store(&err)
					return
				}
				atomic.AddInt64(&done, 1)
			}
		})
	}
	all.Wait()
	if first := failed.Load(); first != nil {
		err = *first
	}
	return done, time.Since(start), err
}

// perSecondOf is how often it is done in a second.
func perSecondOf(s *side) (float64, error) {
	done, took, err := s.run(*peerRound)
	return float64(done) / took.Seconds(), err
}

// cpuOf is the process's CPU time for each time it is done, in microseconds.
func cpuOf(s *side) (float64, error) {
	before := s.process.cpu()
	done, _, err := s.run(*peerRound)
	return float64(s.process.cpu()-before) / 1e3 / float64(max(1, done)), err
}

// run compares ours with the other in rounds; who is first alternates.
func (p *peers) run(t *testing.T, c *contest, ours, other *side, figure func(*side) (float64, error)) {
	t.Helper()
	c.other = other.name
	for n := range *peerRounds + 1 {
		var got [2]float64
		for i := range 2 {
			which := (i + n) % 2
			value, err := figure([]*side{ours, other}[which])
			if err != nil {
				t.Fatalf("%s, %s: %v", c.what, []*side{ours, other}[which].name, err)
			}
			got[which] = value
		}
		if n > 0 { // the first warms up
			c.rounds = append(c.rounds, got)
		}
	}
	t.Log(c.row())
	p.contests = append(p.contests, c)
}

// startPeer starts a program of others, and waits until its port takes connections.
func startPeer(t *testing.T, port int, program string, words ...string) *underLoad {
	t.Helper()
	process := exec.CommandContext(t.Context(), program, words...)
	process.Dir = t.TempDir()
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceValue(func() error {
		_ = process.Process.Signal(syscall.SIGTERM)
		return process.Wait()
	})
	t.Cleanup(func() { _ = stop() })
	poll.Until(t, program+" takes connections", func() error {
		c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err == nil {
			err = c.Close()
		}
		return err
	})
	return &underLoad{fmt.Sprintf("http://127.0.0.1:%d", port), process.Process.Pid, loader(), stop}
}

// send makes a request of any kind; anything but 200 is an error.
func (u *underLoad) send(method, path string, headers http.Header, body string) (string, error) {
	request, err := http.NewRequest(method, u.url+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header = headers
	response, err := u.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %d %.300s", method, path, response.StatusCode, text)
	}
	return string(text), err
}

// settings says what ran where.
func (p *peers) settings(t *testing.T) string {
	t.Helper()
	version := func(program string) string {
		info, err := buildinfo.ReadFile(filepath.Join(*peersDir, program))
		if err != nil {
			t.Fatal(err)
		}
		return info.Main.Version
	}
	firstLine := func(program string, words ...string) string {
		out, _ := exec.Command(program, words...).CombinedOutput() // some help ends with 1
		line, _, _ := strings.Cut(string(out), "\n")
		return strings.TrimSpace(line)
	}
	db, err := sql.Open("pgx", pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var postgres string
	if err := db.QueryRow(`SHOW server_version`).Scan(&postgres); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("Measured on %s with %d cores (%s), %s, PostgreSQL %s with `synchronous_commit = on`: Muster %s, NanoMDM %s, "+
		"PocketBase %s, %s. "+
		"%d rounds, each side %s in a round. %d agents, %d assets, %d idle connections.",
		time.Now().Format(time.DateOnly), runtime.NumCPU(), processor(), runtime.Version(), strings.Fields(postgres)[0],
		firstLine("git", "describe", "--tags", "--always", "--dirty"),
		version("nanomdm"), version("base"), firstLine(mosquitto(), "-h"), *peerRounds, *peerRound, *loadAgents, *loadAssets, *peerIdle)
}

// processor names the machine's.
func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // on Linux alone
	for line := range strings.Lines(string(text)) {
		if name, found := strings.CutPrefix(line, "model name"); found {
			return strings.Trim(name, " \t:\n")
		}
	}
	return runtime.GOARCH
}
