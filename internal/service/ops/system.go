package ops

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/database"
)

// Examine returns what the doctor finds about a service that runs, without what asks other
// servers, reads the whole database, or is about one company. Paths are shortened to the
// names of the files: administrators of companies see the findings.
func Examine(ctx context.Context, settings config.Service, db *database.DB, now func() time.Time) []Finding {
	d := &doctor{settings: settings.WithDefaults(), now: now}
	d.certificate()
	d.diskFree()
	if found, err := database.Inspect(ctx, d.settings.Database); err == nil {
		d.keyFile(&found)
	} else {
		d.note("key file", Warning, "cannot compare it with the database", "run muster doctor")
	}
	if _, embedded := d.settings.SQLitePath(); !embedded {
		d.clock(ctx, db)
	}
	d.backedUp(ctx, db)
	sqlite, _ := d.settings.SQLitePath()
	for _, path := range []string{d.settings.KeyFile, d.settings.TLSCert, d.settings.TLSKey, sqlite} {
		if path == "" {
			continue
		}
		for i, f := range d.findings {
			d.findings[i].Detail = strings.ReplaceAll(f.Detail, path, filepath.Base(path))
			d.findings[i].Remedy = strings.ReplaceAll(f.Remedy, path, filepath.Base(path))
		}
	}
	return d.findings
}
