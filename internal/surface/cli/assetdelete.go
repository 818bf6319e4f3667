package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/durable"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/phrase"
)

// AssetDelete ends assets for good.
type AssetDelete struct {
	assetsOf
	Export string `name:"export" required:"" placeholder:"FILE" help:"Where everything that is deleted is written first, a JSON object on each line. A file that exists is refused."`
}

// Run deletes the assets, after all that is deleted is in the export file.
func (c *AssetDelete) Run(env *Env) error {
	return c.run(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		ids, view, err := c.found(ctx, admin, owner)
		if err != nil {
			return answer{}, err
		}
		file, err := newExport(c.Export)
		if err != nil {
			return answer{}, err
		}
		err = admin.Deleter.DeleteAssets(ctx, owner.ID, ids, file)
		err = file.close(err, !errors.Is(err, operation.ErrDoubt))
		return answerf(view, "Deleted %s; %s went to %s.\n", phrase.Count(len(ids), "asset", "assets"),
			phrase.Count(file.rows, "row", "rows"), c.Export), err
	})
}

// export is a new file with the rows that are deleted. It implements durable.RowExporter.
type export struct {
	file  *os.File
	out   *bufio.Writer
	rows  int
	whole bool // Commit succeeded: the rows may have been deleted
}

// newExport creates the file. It fails with fault.Refused if the file exists.
func newExport(path string) (*export, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fault.New(fault.Refused, "%s exists: name a new file for the export", path)
	}
	if err != nil {
		return nil, fault.Invalid(err.Error())
	}
	if err := durable.Inherit(file); err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(path))
	}
	return &export{file: file}, nil
}

// Begin implements durable.RowExporter. A transaction that is tried again calls it again, so it empties the file.
func (e *export) Begin() error {
	e.whole, e.rows = false, 0
	if _, err := e.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	e.out = bufio.NewWriter(e.file)
	return e.file.Truncate(0)
}

// Keep implements durable.RowExporter.
func (e *export) Keep(table string, row map[string]any) error {
	e.rows++
	line, err := asset.ExportLine(table, row)
	if err == nil {
		_, err = e.out.Write(line)
	}
	return err
}

// Commit implements durable.RowExporter.
func (e *export) Commit() error {
	err := errors.Join(e.out.Flush(), e.file.Sync(), durable.Sync(filepath.Dir(e.file.Name())))
	e.whole = err == nil
	return err
}

// close closes the file, and returns failed with its own errors. It removes the file if the deletion
// failed before Commit succeeded, or if none is true: nothing was deleted.
func (e *export) close(failed error, none bool) error {
	err := errors.Join(failed, e.file.Close())
	if failed != nil && (none || !e.whole) {
		err = errors.Join(err, os.Remove(e.file.Name()))
	}
	return err
}

// CompanyDelete ends a company for good.
type CompanyDelete struct {
	Named
	Export  string `name:"export" required:"" placeholder:"FILE" help:"Where everything that is deleted is written first, a JSON object on each line. A file that exists is refused."`
	Confirm string `name:"confirm" required:"" placeholder:"SLUG" help:"The company's slug once more."`
}

// Validate wants the slug typed twice.
func (c *CompanyDelete) Validate() error {
	return c.confirmed(c.Confirm)
}

type deletedCompanyView struct {
	Company string `json:"company"`
	Rows    int    `json:"rows"`
	Export  string `json:"export"`
}

// Run deletes. What was begun is finished by running it again, or by the service.
func (c *CompanyDelete) Run(env *Env) error {
	return c.run(env, func(ctx context.Context, admin *Admin, owner company.Company) (answer, error) {
		kept, err := newExport(c.Export)
		if err != nil {
			return answer{}, err
		}
		err = kept.close(admin.DeleteCompany(ctx, owner.ID, kept), false) // a deletion that has begun goes on
		return answerf(deletedCompanyView{owner.PathName(), kept.rows, c.Export}, "Deleted %s; %s went to %s.\n", owner.PathName(),
			phrase.Count(kept.rows, "row", "rows"), c.Export), err
	})
}
