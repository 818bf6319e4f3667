package browser

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"regexp"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/service/demo"
)

// Demo is a running demo and who may sign in to it.
type Demo struct {
	URL, Email, Password, Key string
	Data                      string // its directory
}

// StartDemo runs the demo without a past until the test ends.
func StartDemo(tb testing.TB) Demo {
	tb.Helper()
	return start(tb, false)
}

// StartUsedDemo runs the demo with a past of 30 days, as "muster demo" does.
func StartUsedDemo(tb testing.TB) Demo {
	tb.Helper()
	return start(tb, true)
}

func start(tb testing.TB, history bool) Demo {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	read, write := io.Pipe()
	ended := make(chan error, 1)
	data := tb.TempDir()
	go func() {
		ended <- demo.Run(ctx, demo.Settings{Data: data, Listen: "127.0.0.1:0", History: history}, time.Now,
			slog.New(slog.DiscardHandler), write)
		_ = write.Close()
	}()
	tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Errorf("demo: %v", err)
		}
	})
	d := Demo{Data: data}
	lines := bufio.NewScanner(read)
	address, person, key := regexp.MustCompile(`^ +Portal +(\S+)`), regexp.MustCompile(`^ +Sign in +(\S+) with the password (\S+)`),
		regexp.MustCompile(`(mk_\w+)`)
	for d.Key == "" && lines.Scan() {
		if m := address.FindStringSubmatch(lines.Text()); m != nil {
			d.URL = m[1]
		}
		if m := person.FindStringSubmatch(lines.Text()); m != nil {
			d.Email, d.Password = m[1], m[2]
		}
		if m := key.FindStringSubmatch(lines.Text()); m != nil {
			d.Key = m[1]
		}
	}
	if d.Key == "" {
		tb.Fatal("the demo did not come up")
	}
	go func() { _, _ = io.Copy(io.Discard, read) }() // until the demo ends
	return d
}
