package database_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/resource"
)

// writesTo makes this test program a writer on a database, until it is killed.
const writesTo = "MUSTER_TEST_WRITES_TO"

func TestMain(m *testing.M) {
	if url, child := os.LookupEnv(writesTo); child {
		fmt.Fprintln(os.Stderr, writeUntilKilled(url))
		os.Exit(1)
	}
	if url, child := os.LookupEnv(wipesOn); child {
		fmt.Fprintln(os.Stderr, wipeUntilKilled(url))
		os.Exit(1)
	}
	if url, child := os.LookupEnv(disconnectsOn); child {
		if err := disconnectUntilKilled(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if url, child := os.LookupEnv(deletesOn); child {
		if err := deleteUntilKilled(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if gone := crossList.gone(); crossList.whole() && len(gone) > 0 {
		fmt.Fprintf(os.Stderr, "%s lists what no test has run:\n%s\n", crossingFile, strings.Join(gone, "\n"))
		code = 1
	}
	os.Exit(code)
}

// writeUntilKilled enrolls devices and begins commands from many goroutines, and
// prints what was acknowledged as kept.
func writeUntilKilled(url string) error {
	db, err := database.Open(context.Background(), database.Options{URL: url, Now: time.Now})
	if err != nil {
		return err
	}
	c, err := db.CompanyBySlug(context.Background(), "acme")
	if err != nil {
		return err
	}
	go func() { _ = db.NumberEvents(context.Background()) }() // until the process is killed
	var all sync.WaitGroup
	errs := make([]error, 8)
	for n := range errs {
		all.Go(func() {
			for errs[n] == nil {
				errs[n] = writeSome(db, c.ID, resource.NewID())
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func writeSome(db *database.DB, companyID, device string) error {
	ctx, now := context.Background(), time.Now()
	change, err := db.Observe(ctx, enrollment.Observation{
		CompanyID: companyID, Device: device, Management: asset.Platform, Enrolling: true, EnrolledAt: now, ReportedAt: now,
		ObservedAt: now, SerialNumber: device, Brand: "Acme", Model: "Phone",
	})
	if err != nil {
		return err
	}
	c, _, err := db.Begin(ctx, command.Command{
		ID: resource.NewID(), CompanyID: companyID, AssetID: change.AssetID, Epoch: change.Epoch, Type: command.Lock,
		State: command.Prepared, CreatedAt: now, Actor: access.Actor{Kind: access.APIKey, ID: "k", Prefix: "p"},
	}, nil)
	if err != nil {
		return err
	}
	if _, _, err := db.Advance(ctx, c.ID, command.Transition{From: []command.State{command.Prepared}, To: command.Sent, Ref: c.ID}); err !=
		nil {
		return err
	}
	_, err = fmt.Println(change.AssetID, c.ID)
	return err
}

// A process that is killed with SIGKILL in the midst of writing, again and
// again, leaves a whole database, with everything that was acknowledged as kept.
func TestWrite_KilledProcessLosesNothing(t *testing.T) {
	t.Parallel()
	e := &engine{"sqlite", "sqlite:" + filepath.Join(t.TempDir(), "killed.db"), newClock()}
	newFixture(t, e)
	var kept []string
	for round := range 4 {
		lines := killWriter(t, e.url, 40+round*37)
		kept = append(kept, lines...)
	}
	f := &fixture{T: t, engine: e, db: e.open(t)}
	problems, err := f.db.Text(t.Context(), `PRAGMA integrity_check`)
	f.ok(err)
	equal(f, "integrity", problems, []string{"ok"})
	f.company, err = f.db.CompanyBySlug(t.Context(), "acme")
	f.ok(err)
	for _, line := range kept {
		assetID, commandID, _ := strings.Cut(line, " ")
		c := f.command(commandID)
		equal(f, "command", words(c.AssetID, c.State), words(assetID, command.Sent))
		equal(f, "enrolled", f.asset(assetID).Status.Enrolled(), true)
	}
	f.checkCounts()
	f.checkTerms()
}

// killWriter starts a writer, kills it after some lines and returns all that it
// printed until then.
func killWriter(t *testing.T, url string, after int) []string {
	t.Helper()
	return killWriterWhen(t, url, func(lines int) bool { return lines >= after })
}

// killWriterWhen is killWriter with a condition of how many lines there are; it is asked after each.
func killWriterWhen(t *testing.T, url string, enough func(lines int) bool) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(t.Context(), self)
	process.Env = append(os.Environ(), writesTo+"="+url)
	process.Stderr = os.Stderr
	out, err := process.StdoutPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	killed := false
	for reader := bufio.NewReader(out); ; {
		line, err := reader.ReadString('\n')
		if err != nil {
			if !errors.Is(err, io.EOF) || !killed {
				t.Fatalf("the writer ended after %d writes: %v", len(lines), err)
			}
			break // a line cut short does not count
		}
		if lines = append(lines, strings.TrimSpace(line)); !killed && enough(len(lines)) {
			killed = true
			if err := process.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := process.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the writer ended with %v, want a kill", err)
	}
	return lines
}
