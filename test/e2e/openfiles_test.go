package e2e_test

import (
	"bufio"
	"database/sql"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/musterhq/muster/internal/servertest"
)

// A process that may open few files refuses the wake streams beyond its share
// and goes on with everything else: requests, commands, and check-ins of the
// agents that it refused. Told to end, it leaves nothing that an upgrade would
// wait for.
func TestProcess_FewOpenFiles(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no limit of open files")
	}
	const agents = 210
	path := filepath.Join(t.TempDir(), "few.db")
	f := newLoadFleet(t, "sqlite:"+path, agents, 10, "sh", "-c", `ulimit -n 200 && exec "$0"`)
	streams, refused := 0, -1
	for n, a := range f.agents {
		c, err := a.askToListen(f)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		switch answer := answerOf(t, c); {
		case answer.StatusCode == http.StatusOK:
			streams++
		case answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "":
			t.Fatalf("stream %d was answered %d with the headers %v", n, answer.StatusCode, answer.Header)
		default:
			refused = n
			_ = c.Close()
		}
	}
	_, text := servertest.Fetch(t, f.ours.url+"/metrics")
	limit := metric(t, text, "muster_agent_streams_limit")
	if streams != limit || limit == 0 || limit >= 144 || refused < 0 {
		t.Fatalf("%d of %d agents have a stream, the limit is %d", streams, agents, limit)
	}
	for n := range 20 {
		for path, want := range map[string]int{"/readyz": 200, "/api/v1/assets/" + f.agents[n].asset: 401} {
			if status, body := servertest.Fetch(t, f.ours.url+path); status != want {
				t.Errorf("%s: %d %s, want %d", path, status, body, want)
			}
		}
	}
	if err := f.agents[refused].trip(f); err != nil {
		t.Errorf("a command to an agent without a stream: %v", err)
	}
	if err := f.ours.stop(); err != nil {
		t.Errorf("told to end, the process ended with %v", err)
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	present := -1
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM leases WHERE name LIKE 'replica/%'`).Scan(&present); err != nil ||
		present != 0 {
		t.Errorf("%d replicas are present after the end, %v; want none", present, err)
	}
}

// answerOf reads the head of an answer.
func answerOf(t *testing.T, c net.Conn) *http.Response {
	t.Helper()
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}
