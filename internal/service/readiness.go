package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/service/ops"
)

// scarce is how little a disk has left, in bytes, when writes are about to fail.
const scarce = 1 << 20

// disk says why the database's disk takes no writes; nil: it does.
func (w *wiring) disk(context.Context) error {
	if why := w.db.StorageTrouble(); why != "" {
		return errors.New(why + ": writes fail")
	}
	if left, known := w.diskFree(); known && left < scarce {
		return errors.New("full: writes are about to fail")
	}
	return nil
}

// diskFree is what the disk of an embedded database has left, in bytes.
func (w *wiring) diskFree() (int64, bool) {
	path, embedded := w.config.SQLitePath()
	if !embedded {
		return 0, false
	}
	return database.DiskFree(path)
}

// enterprises says how many companies' enterprises the platform does not have.
func (w *wiring) enterprises(ctx context.Context) error {
	troubles, err := w.db.EnterpriseTroubles(ctx)
	if err != nil { // a driver's error may hold an address or a user's name
		w.options.Logger.WarnContext(ctx, "enterprises cannot be read", "error", err)
		return errors.New("it is not known whether an enterprise is lost")
	}
	if lost := lostOf(troubles); lost > 0 {
		return fmt.Errorf("does not have the enterprise of %s: run muster doctor", phrase.Count(lost, "company", "companies"))
	}
	return nil
}

// probes mounts what watches over the process.
func (w *wiring) probes() {
	probes := ops.Probes{Draining: w.draining.Load, Loops: w.running.check, Database: w.db, Disk: w.disk, Platform: w.enterprises,
		Log: w.options.Logger}
	probes.Mount(w.mux)
	w.metrics.Ready(func() bool {
		ready, _ := probes.Ready(context.Background())
		return ready
	})
	build := ops.ReadBuild(w.options.Version)
	w.metrics.Build(build.Version, build.Revision)
	w.metrics.Storage(w.db.WriteFailures, w.diskFree)
	if w.config.MetricsListen == "" {
		w.metrics.Mount(w.mux)
	}
}
