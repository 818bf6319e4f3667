package cli_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/durable"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/surface/cli"
)

// deleting is a database with a company, in which a deletion exports a row and then fails.
type deleting struct {
	company.Store
	asset.Deleter
	fails error
	full  bool // before the export is whole
}

func (deleting) CompanyBySlug(context.Context, string) (company.Company, error) {
	return company.Company{ID: "c", Slug: "acme"}, nil
}

func (d deleting) DeleteAssets(_ context.Context, _ string, _ []string, e durable.RowExporter) error {
	return errors.Join(e.Begin(), e.Keep("assets", map[string]any{"id": "a"}), e.Commit(), d.fails)
}

// DeleteCompany exports a row. Its export fails if the disk is full after the row, or the deletion after it.
func (d deleting) DeleteCompany(_ context.Context, _ string, e durable.RowExporter) error {
	if err := errors.Join(e.Begin(), e.Keep("users", map[string]any{"id": "u"})); err != nil || d.full {
		return errors.Join(err, d.fails)
	}
	return errors.Join(e.Commit(), d.fails)
}

// The export of a company that was not written whole is removed: the deletion has not begun, and the same command can be run again.
func TestCompanyDelete_KeepsAWholeExport(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	for _, c := range []struct {
		what string
		db   deleting
		kept bool
	}{
		{"deleted", deleting{}, true},
		{"disk full", deleting{fails: full, full: true}, false},
		{"failed later", deleting{fails: full}, true},
	} {
		command := cli.CompanyDelete{Export: filepath.Join(t.TempDir(), "deleted.ndjson"), Confirm: "acme"}
		command.Store.Database = "sqlite:none"
		err := command.Run(&cli.Env{Context: t.Context(), Now: time.Now, Out: t.Output(),
			Open: func(context.Context, config.Store, cli.Intent) (*cli.Admin, error) {
				return &cli.Admin{Companies: c.db, DeleteCompany: c.db.DeleteCompany, Close: func() error { return nil }}, nil
			}})
		if !errors.Is(err, c.db.fails) {
			t.Errorf("%s: error = %v, want %v", c.what, err, c.db.fails)
		}
		if _, missing := os.Stat(command.Export); (missing == nil) != c.kept {
			t.Errorf("%s: the file is kept: %v, want %v", c.what, missing == nil, c.kept)
		}
	}
}

// The file of a deletion that was made, or may have been, stays; without it the same command can be run again.
func TestAssetDelete_KeepsItsExport(t *testing.T) {
	t.Parallel()
	timeout := errors.New("timeout")
	for _, c := range []struct {
		what  string
		fails error
		kept  bool
	}{{"deleted", nil, true}, {"failed", timeout, false}, {"in doubt", fmt.Errorf("%w: %w", operation.ErrDoubt, timeout), true}} {
		db := deleting{fails: c.fails}
		command := cli.AssetDelete{Export: filepath.Join(t.TempDir(), "deleted.ndjson")}
		command.Store.Database = "sqlite:none"
		err := command.Run(&cli.Env{Context: t.Context(), Now: time.Now, Out: t.Output(),
			Open: func(context.Context, config.Store, cli.Intent) (*cli.Admin, error) {
				return &cli.Admin{Companies: db, Deleter: db, Close: func() error { return nil }}, nil
			}})
		if !errors.Is(err, c.fails) {
			t.Errorf("%s: error = %v, want %v", c.what, err, c.fails)
		}
		if _, missing := os.Stat(command.Export); (missing == nil) != c.kept {
			t.Errorf("%s: the file is kept: %v, want %v", c.what, missing == nil, c.kept)
		}
	}
}
