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

// Process is what a process that is such a service reads on its standard input, as one line of JSON.
type Process struct {
	Dir    string `json:"dir"`
	Listen string `json:"listen"`
	Agents int    `json:"agents"` // 0: go on with what is in Dir
	Keys   int    `json:"keys"`
	// Start is when the clock began to run faster, in Unix milliseconds; Pace says how much.
	Start int64   `json:"start"`
	Pace  float64 `json:"pace"`
}

// Clock is a clock that shows start at start, and from then on runs pace times as fast as now.
func Clock(now func() time.Time, start time.Time, pace float64) func() time.Time {
	return func() time.Time { return start.Add(time.Duration(float64(now().Sub(start)) * pace)) }
}

// Serve is the work of a process that is such a service: it reads its Process from in, writes its Goods
// to out as one line, and serves until in ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer, now func() time.Time, log *slog.Logger) error {
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	var p Process
	if err := json.Unmarshal(line, &p); err != nil {
		return err
	}
	g, err := Open(ctx, Settings{Dir: p.Dir, Listen: p.Listen, Agents: p.Agents, Keys: p.Keys,
		Now: Clock(now, time.UnixMilli(p.Start), p.Pace), Log: log})
	if err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(g.Goods); err != nil {
		return errors.Join(err, g.Close())
	}
	_, err = io.Copy(io.Discard, lines)
	return errors.Join(err, g.Close())
}
