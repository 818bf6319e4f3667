package service

import (
	"context"

	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/surface/portal/settings"
)

// system is what the portal's System page shows of the service to a company's administrators.
func (w *wiring) system(ctx context.Context, companyID string) (s settings.System, err error) {
	build := ops.ReadBuild(w.options.Version)
	s = settings.System{Version: build.Version, Revision: build.Revision, Engine: w.db.Engine(), Schema: database.SchemaNumber(),
		PlatformOn: w.config.PlatformEndpoint != "" || w.config.PlatformCredentials != "", MailOn: w.letters() != nil}
	s.Lag, s.NotifiedAt = w.metrics.LastNotification()
	if s.Size, err = w.db.Size(ctx); err != nil {
		return s, err
	}
	if s.Replicas, err = w.db.Replicas(ctx); err != nil {
		return s, err
	}
	if s.Commands, s.Jobs, err = w.db.Queues(ctx, companyID); err != nil {
		return s, err
	}
	if left, known := w.diskFree(); known {
		s.DiskFree = left
		if s.BackedUp, err = w.db.BackedUp(ctx); err != nil {
			return s, err
		}
	}
	if w.running.check() != nil {
		s.Loops = true
	}
	for _, f := range ops.Examine(ctx, w.config, w.db, w.options.Now) {
		s.Checks = append(s.Checks, settings.Check{Name: f.Check, Fine: f.Status == ops.Fine, Failed: f.Status == ops.Failed,
			Detail: f.Detail, Remedy: f.Remedy})
	}
	return s, nil
}
