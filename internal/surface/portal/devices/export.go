package devices

import (
	"encoding/csv"
	"net/http"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/text"
)

const (
	exportStride = 500 // assets a read
	exportPause  = 30 * time.Second
	maxSelected  = 100
)

// export streams exactly what the list shows: its filters, order and columns,
// all pages of it; or the devices that were selected.
func (s *Section) export(v *frame.Visit) error {
	l := frame.ParseList(spec(), v.Query())
	shown := chosen(l)
	h := v.Writer().Header()
	next, err := s.exported(v, l)
	if err != nil {
		return err
	}
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="devices-`+v.Now.UTC().Format("2006-01-02")+`.csv"`)
	out := csv.NewWriter(v.Writer())
	head := []string{"id"}
	for _, c := range shown {
		head = append(head, c.Name)
	}
	_ = out.Write(head)
	control := http.NewResponseController(v.Writer())
	for {
		_ = control.SetWriteDeadline(v.Clock().Add(exportPause))
		page, more, err := next()
		for _, a := range page {
			_ = out.Write(record(a, shown))
		}
		out.Flush()
		if err != nil || out.Error() != nil {
			panic(http.ErrAbortHandler) // what is cut off must not look whole
		}
		if !more {
			return nil
		}
	}
}

// exported returns a function that reads on. The first page is read already:
// what cannot be read is told before anything is sent.
func (s *Section) exported(v *frame.Visit, l frame.List) (func() ([]asset.Asset, bool, error), error) {
	if ids := selected(v); len(ids) > 0 {
		chosen, err := s.found(v, ids)
		return func() ([]asset.Asset, bool, error) { return chosen, false, nil }, err
	}
	q := query(v, l)
	q.Size, q.After = exportStride, ""
	found, err := s.Assets.SearchAssets(v.Context(), q)
	first := true
	return func() ([]asset.Asset, bool, error) {
		if !first {
			q.After = found.Next
			found, err = s.Assets.SearchAssets(v.Context(), q)
		}
		first = false
		return found.Assets, found.Next != "", err
	}, err
}

// selected are the ids that rows were selected with.
func selected(v *frame.Visit) []string {
	ids := slices.DeleteFunc(slices.Clone(v.Query()["id"]), func(id string) bool { return !resource.IsID(id) })
	return ids[:min(len(ids), maxSelected)]
}

// found are those of the assets that the person may see.
func (s *Section) found(v *frame.Visit, ids []string) ([]asset.Asset, error) {
	var all []asset.Asset
	for _, id := range ids {
		a, err := asset.Find(v.Context(), s.Assets, v.Principal, id)
		if fault.CodeOf(err) == fault.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

func record(a asset.Asset, shown []column) []string {
	fields := []string{a.ID}
	for _, c := range shown {
		fields = append(fields, text.Cell(c.Text(a)))
	}
	return fields
}
