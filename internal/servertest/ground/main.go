// Command ground runs a proving ground (internal/service/proving) as a process
// of its own, for tests that kill it, and that would be slow if the service too
// ran under the race detector. It reads its settings as one line of JSON, prints
// what there is as another, and ends well when its standard input ends.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/musterhq/muster/internal/service/proving"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if err := proving.Serve(context.Background(), os.Stdin, os.Stdout, time.Now, log); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
