package devices

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/surface/edge"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// The service keeps no file between the preview and the import. The page still has it and
// sends it again, with the plan that the person saw; without scripts the person chooses it
// again. What is written is that plan, or nothing.

// fileColumn is a column of a file, and what it is.
type fileColumn struct{ Name, Example, Target string }

// preview is what an import would do.
type preview struct {
	Columns []fileColumn
	asset.Imported
	Lines   int
	Problem string // with the whole file
	Status  int
}

// shownFaults is how many faulty lines a preview names.
const shownFaults = 200

// importPage is where a file is chosen.
func (s *Section) importPage(v *frame.Visit) error {
	return v.Show("Import devices", frame.DevicesPath, importView(v, nil))
}

// importFile shows what a file would change, or changes it, if that is what the person saw.
func (s *Section) importFile(v *frame.Visit) error {
	up, ok := v.Uploaded.(*upload)
	if !ok {
		up = &upload{err: fault.Invalid("choose a CSV file")}
	}
	p := preview{Columns: up.columns, Lines: len(up.lines), Status: http.StatusOK}
	plan := up.values.Get("plan")
	really := up.values.Get("step") == "import" && plan != ""
	switch {
	case up.err != nil:
		p.Problem = frame.Sentence(fault.From(up.err).Detail)
		p.Status = edge.Status(fault.CodeOf(up.err))
		if errors.Is(up.err, asset.ErrLargeFile) {
			p.Status = http.StatusRequestEntityTooLarge
		}
	case len(up.wrong) > 0:
		p.Errors = up.wrong
	default:
		done, err := s.Assets.Import(v.Context(), v.Company.ID, up.lines, asset.ImportOptions{Dry: !really, Plan: plan})
		if err != nil {
			return err
		}
		if really && len(done.Errors) == 0 && !done.Moved {
			return v.Redirect(frame.DevicesPath+"?sort=createdAt,desc", frame.Done(fmt.Sprintf(
				"Imported: %s made, %s changed, %s left as they were.", frame.Count(int64(done.Made), "asset", "assets"),
				frame.Number(done.Changed), frame.Number(done.Left))))
		}
		p.Imported = done
	}
	if len(p.Errors) > 0 {
		p.Status = http.StatusUnprocessableEntity
	}
	if p.Moved {
		p.Status = http.StatusConflict
	}
	if v.Partial() {
		return v.FragmentStatus(p.Status, previewPart(v, &p))
	}
	return v.ShowStatus(p.Status, "Import devices", frame.DevicesPath, importView(v, &p))
}

// would says what an import would do.
func (p *preview) would() string {
	return fmt.Sprintf("%s: %s new, %s changed, %s left as they are.", frame.Count(int64(p.Lines), "line", "lines"),
		frame.Number(p.Made), frame.Number(p.Changed), frame.Number(p.Left))
}

// ready reports whether there is something to import.
func (p *preview) ready() bool {
	return p != nil && p.Problem == "" && len(p.Errors) == 0 && p.Made+p.Changed > 0
}

// targetWords are the choices of what a column is.
func (c fileColumn) targetWords() [][2]string {
	all := [][2]string{{"", "Leave out"}}
	for _, target := range asset.Targets() {
		word := fieldWord(target)
		if target == "tags" {
			word += ", separated by ;"
		}
		all = append(all, [2]string{target, word})
	}
	if !slices.Contains(asset.Targets(), c.Name) {
		all = append(all, [2]string{c.Name, "Other data: " + c.Name})
	}
	return all
}

// fieldWord is the name of a fact of an asset, for people; custom data keeps its own.
func fieldWord(field string) string {
	return cmp.Or(map[string]string{
		"identification": "Name", "serialNumber": "Serial number", "model": "Model", "manufacturer": "Manufacturer", "brand": "Brand",
		"tags": "Tags", asset.UserKey: "Assigned to", asset.UserEmailKey: "E-mail of the user", "archived": "Archived",
	}[field], field)
}

// faultText is what is wrong with a line, with the name of the fact that people read.
func faultText(e asset.LineError) string {
	field, rest, _ := strings.Cut(e.Message, " ")
	if !slices.Contains(asset.Targets(), field) {
		return e.Message
	}
	return fieldWord(field) + " " + rest
}

// changeText is one change of an asset.
func changeText(c asset.Difference) string {
	switch {
	case c.Field == "archived":
		return "is taken back from the archive"
	case c.Before == "":
		return c.After
	}
	return c.Before + " → " + c.After
}
