package proving

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"time"
)

// Request asks a process to serve. The process reads it from standard input as one line of JSON.
type Request struct {
	Dir    string `json:"dir"`
	Listen string `json:"listen"`
	Agents int    `json:"agents"` // tokens to issue; 0: Dir has a filled database already
	Keys   int    `json:"keys"`
	// Start is when the clock began to run faster, in Unix milliseconds; Pace says how much.
	Start int64   `json:"start"`
	Pace  float64 `json:"pace"`
}

// Clock is a clock that shows start at start, and from then on runs pace times as fast as now.
func Clock(now func() time.Time, start time.Time, pace float64) func() time.Time {
	return func() time.Time { return start.Add(time.Duration(float64(now().Sub(start)) * pace)) }
}

// Serve runs a service to measure in a process of its own: it reads a Request from in, writes
// the service's Access to out as one line of JSON, and serves until in ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer, now func() time.Time, log *slog.Logger) error {
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	var r Request
	if err := json.Unmarshal(line, &r); err != nil {
		return err
	}
	g, err := Open(ctx, Settings{Dir: r.Dir, Listen: r.Listen, Agents: r.Agents, Keys: r.Keys,
		Now: Clock(now, time.UnixMilli(r.Start), r.Pace), Log: log})
	if err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(g.Access); err != nil {
		return errors.Join(err, g.Close())
	}
	_, err = io.Copy(io.Discard, lines)
	return errors.Join(err, g.Close())
}
