// Command ground runs a proving ground (internal/service/proving) as a process
// of its own, for tests that kill it, and that would be slow if the service too
// ran under the race detector. It reads its settings as one line of JSON, prints
// what there is as another, and ends well when its standard input ends.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/musterhq/muster/internal/service/proving"
)

// settings are proving.Settings as they come in.
type settings struct {
	Dir    string  `json:"dir"`
	Listen string  `json:"listen"`
	Agents int     `json:"agents"` // 0: go on with what is in Dir
	Keys   int     `json:"keys"`
	Start  int64   `json:"start"` // when the clock began to run faster, Unix milliseconds
	Pace   float64 `json:"pace"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var s settings
	if err := json.Unmarshal(line, &s); err != nil {
		return err
	}
	start := time.UnixMilli(s.Start)
	clock := func() time.Time { return start.Add(time.Duration(float64(time.Since(start)) * s.Pace)) }
	g, err := proving.Open(context.Background(), proving.Settings{Dir: s.Dir, Listen: s.Listen, Agents: s.Agents, Keys: s.Keys,
		Now: clock, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(g.Goods); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	return g.Close()
}
