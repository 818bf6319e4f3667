package engine

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/musterhq/muster/internal/wait"
)

const (
	// wakeChannel is the name that every replica on a database listens to.
	wakeChannel = "muster_wakes"
	// maxPayload is below PostgreSQL's limit of 8000 bytes.
	maxPayload = 7900
	// publishLimit bounds one attempt to wake the other replicas.
	publishLimit = 10 * time.Second
	// The pauses between attempts to connect again.
	firstPause, longestPause = 50 * time.Millisecond, 5 * time.Second
)

// payloadsOf writes ids behind a head, a line each, into as few payloads as
// hold them.
func payloadsOf(head string, ids map[string]struct{}) []string {
	var payloads []string
	var b strings.Builder
	for id := range ids {
		if b.Len() > 0 && b.Len()+1+len(id) > maxPayload {
			payloads = append(payloads, b.String())
			b.Reset()
		}
		if b.Len() == 0 {
			b.WriteString(head)
		}
		b.WriteString("\n" + id)
	}
	if b.Len() > 0 {
		payloads = append(payloads, b.String())
	}
	return payloads
}

// wakeReplicas connects the hints to the other replicas. The connection that
// listens is opened with the first listener.
func (db *DB) wakeReplicas(config *pgx.ConnConfig) {
	w := db.wakes
	w.signal = make(chan struct{}, 1)
	stop := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { w.send(stop, db.publish) })
	w.listening = func() { all.Go(func() { w.hear(ctx, config) }) }
	db.onClose(func() error {
		w.mu.Lock()
		w.listening = nil
		w.mu.Unlock()
		cancel()
		close(stop)
		all.Wait()
		return nil
	})
}

// publish sends payloads to every replica, this one too.
func (db *DB) publish(ctx context.Context, payloads []string) error {
	text, err := json.Marshal(payloads)
	if err != nil {
		return err
	}
	return db.Read().Exec(ctx, `SELECT pg_notify('`+wakeChannel+`', payload)
		FROM json_array_elements_text(CAST(? AS JSON)) AS payload`, string(text))
}

// hear listens until ctx ends, and connects again when the connection breaks.
// After each connecting, every listener looks again: hints may have been missed.
func (w *wakes) hear(ctx context.Context, config *pgx.ConnConfig) {
	pause, connected := firstPause, false
	for ctx.Err() == nil {
		err := w.hearOnce(ctx, config, func() {
			pause, connected = firstPause, true
			w.deliverAll()
		})
		if ctx.Err() != nil {
			return
		}
		if connected || pause == firstPause {
			w.logger.Warn("cannot hear other replicas; connecting again", slog.Any("error", err))
		}
		connected = false
		wait.For(ctx, pause)
		pause = min(2*pause, longestPause)
	}
}

func (w *wakes) hearOnce(ctx context.Context, config *pgx.ConnConfig, ready func()) error {
	c, err := pgx.ConnectConfig(ctx, config.Copy())
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	if err := unlimited(ctx, c); err != nil { // to be idle is what this connection is for
		return err
	}
	if _, err := c.Exec(ctx, "LISTEN "+wakeChannel); err != nil {
		return err
	}
	ready()
	for {
		waiting, cancel := context.WithTimeout(ctx, w.quiet)
		n, err := c.WaitForNotification(waiting)
		timeout := waiting.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			w.receive(n.Payload)
		case !timeout || c.Ping(ctx) != nil:
			return err
		}
	}
}

// receive delivers another replica's payload.
func (w *wakes) receive(payload string) {
	lines := strings.Split(payload, "\n")
	if len(lines) < 2 || lines[0] == w.id {
		return
	}
	var ids []string
	if len(lines) > 2 {
		ids = lines[2:]
	}
	w.deliver(lines[1], ids)
}
