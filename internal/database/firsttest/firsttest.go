// Package firsttest holds databases that the first version of Muster made, with
// what its service answered on them, and looks at databases from outside. What
// the files are, and how they were made, testdata/README.md says.
package firsttest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"
	_ "modernc.org/sqlite"             // registers the driver "sqlite"
)

//go:embed testdata
var files embed.FS

// Fixture is what belongs to one database.
type Fixture struct {
	Now     time.Time // when the answers were given
	Key     string    // of the API
	Client  string    // the AI client's id
	Session string    // the portal's cookie
	Tokens  struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	Reads []struct {
		Path   string // relative to base_url
		Answer any
	}
	Commands []struct {
		Command string // of the command line, without -o json
		Answer  any
	}
	Agents []Agent

	keys []byte
}

// Agent is the state directory of a device with our own agent.
type Agent struct {
	Identity, Applied json.RawMessage
	Journal           string
}

// Load fills the empty database at a URL. With agents, two of its devices have our
// own agent; they and their commands are missing otherwise.
func Load(tb testing.TB, url string, agents bool) (f Fixture) {
	tb.Helper()
	engine := engineOf(url)
	name := engine
	if agents {
		name += "-agents"
	}
	order := []string{"sqlite.schema.sql", name + ".sql"}
	if engine == "postgres" {
		order = []string{"postgres.pre-data.sql", name + ".sql", "postgres.post-data.sql"}
	} else {
		// The first version's files are in this mode, and stay in it.
		Exec(tb, url, `PRAGMA journal_mode=WAL`)
	}
	var all strings.Builder
	for _, file := range order {
		all.Write(read(tb, file))
	}
	Exec(tb, url, "BEGIN;"+all.String()+"COMMIT;")
	if err := json.Unmarshal(read(tb, name+".answers.json"), &f); err != nil {
		tb.Fatal(err)
	}
	f.keys = read(tb, name+".keys.json")
	return f
}

// Keys writes the key file that belongs to the database.
func (f Fixture) Keys(tb testing.TB, path string) {
	tb.Helper()
	if err := os.WriteFile(path, f.keys, 0o600); err != nil {
		tb.Fatal(err)
	}
}

// Dir writes the agent's state directory.
func (a Agent) Dir(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, content := range map[string][]byte{"identity.json": a.Identity, "applied.json": a.Applied, "journal": []byte(a.Journal)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// Exec runs statements on a connection of its own, past the program.
func Exec(tb testing.TB, url, statements string) {
	tb.Helper()
	within(tb, url, func(ctx context.Context, c *sql.Conn) error {
		_, err := c.ExecContext(ctx, statements)
		return err
	})
}

// Hold runs statements as Exec does, and keeps the connection, with the locks that
// they took, until the test ends or release is called.
func Hold(tb testing.TB, url, statements string) (release func()) {
	tb.Helper()
	held, end, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		within(tb, url, func(ctx context.Context, c *sql.Conn) error {
			if _, err := c.ExecContext(ctx, statements); err != nil {
				return err
			}
			close(held)
			<-end
			return nil
		})
	}()
	select {
	case <-held:
	case <-done: // it failed, and says so
	}
	release = sync.OnceFunc(func() {
		close(end)
		<-done
	})
	tb.Cleanup(release)
	return release
}

// Digest is a checksum of every row of every table. Leases, which come and go
// with the programs that run, are left out.
func Digest(tb testing.TB, url string) string {
	tb.Helper()
	tables := `SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'leases' ORDER BY name`
	if engineOf(url) == "postgres" {
		tables = `SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'leases' ORDER BY tablename`
	}
	sum := sha256.New()
	within(tb, url, func(ctx context.Context, c *sql.Conn) error {
		names, err := texts(ctx, c, tables)
		for _, name := range names {
			var rows []string
			if rows, err = texts(ctx, c, `SELECT * FROM `+name+` ORDER BY 1, 2`); err != nil {
				return err
			}
			fmt.Fprintf(sum, "%s %q\n", name, rows)
		}
		return err
	})
	return hex.EncodeToString(sum.Sum(nil))
}

func read(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := files.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func engineOf(url string) string {
	engine, _, _ := strings.Cut(url, ":")
	return strings.TrimSuffix(engine, "ql")
}

func within(tb testing.TB, url string, work func(context.Context, *sql.Conn) error) {
	tb.Helper()
	driver, source := "sqlite", "file:"+strings.TrimPrefix(url, "sqlite:")+"?_pragma=busy_timeout(10000)"
	if engineOf(url) == "postgres" {
		// Many statements in one text need the simple protocol.
		driver, source = "pgx", url+"?default_query_exec_mode=simple_protocol"
		if strings.Contains(url, "?") {
			source = url + "&default_query_exec_mode=simple_protocol"
		}
	}
	pool, err := sql.Open(driver, source)
	if err != nil {
		tb.Fatal(err)
	}
	ctx := context.WithoutCancel(tb.Context())
	c, err := pool.Conn(ctx)
	if err == nil {
		err = errors.Join(work(ctx, c), c.Close())
	}
	if err := errors.Join(err, pool.Close()); err != nil {
		tb.Fatal(err)
	}
}

// texts returns the rows, each as one text.
func texts(ctx context.Context, c *sql.Conn, query string) (all []string, err error) {
	rows, err := c.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		values, targets := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		text := strings.TrimSuffix(fmt.Sprintln(values...), "\n")
		all = append(all, text)
	}
	return all, rows.Err()
}
