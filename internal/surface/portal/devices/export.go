package devices

import (
	"encoding/csv"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/validate"
)

const (
	exportStride = 500 // assets a read
	exportPause  = 30 * time.Second
	maxSelected  = 100
)

// export streams exactly what the list shows: its filters, order and columns,
// all pages of it, with serial number and user; or the devices that were selected.
func (s *Section) export(v *frame.Visit) error {
	l, err := exportedList(v.Query())
	if err != nil {
		return v.Redirect(frame.DevicesPath, v.Failed(err))
	}
	shown := exportedColumns(l)
	h := v.Writer().Header()
	ids, err := s.exported(v, l)
	if fault.CodeOf(err) == fault.InvalidArguments {
		return v.Redirect(l.URL()) // says what is wrong
	}
	if err != nil {
		return err
	}
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="devices-`+v.Now.UTC().Format("2006-01-02")+`.csv"`)
	out := csv.NewWriter(v.Writer())
	head := []string{asset.ExportedID}
	for _, c := range shown {
		head = append(head, c.Name)
	}
	_ = out.Write(head)
	control := http.NewResponseController(v.Writer())
	for some := range slices.Chunk(ids, exportStride) {
		_ = control.SetWriteDeadline(v.Clock().Add(exportPause))
		page, err := s.Assets.AssetsByID(v.Context(), v.Company.ID, some)
		for _, a := range page {
			fields := []string{a.ID}
			for _, c := range shown {
				fields = append(fields, validate.Cell(c.Text(a)))
			}
			_ = out.Write(fields)
		}
		out.Flush()
		if err != nil || out.Error() != nil {
			panic(http.ErrAbortHandler) // what is cut off must not look whole
		}
	}
	out.Flush()
	return nil
}

// exportedList is the list that an export is asked of: that of the address, or of its match, where
// devices are selected.
func exportedList(asked url.Values) (frame.List, error) {
	match, err := parseMatch(asked.Get("match"))
	for _, selection := range []string{"id", "all", "match"} {
		asked.Del(selection)
	}
	for name, values := range match {
		asked[name] = append(asked[name], values...)
	}
	return frame.ParseList(spec(), older(asked)), err
}

// exported are the ids of the devices of the list, or of those that were selected.
func (s *Section) exported(v *frame.Visit, l frame.List) ([]string, error) {
	if asked := v.Query(); asked.Has("id") && asked.Get("all") == "" {
		ids := selected(asked)
		chosen, err := s.found(v, ids)
		ids = ids[:0]
		for _, a := range chosen {
			ids = append(ids, a.ID)
		}
		return ids, err
	}
	q, findable, err := s.query(v, l)
	if err != nil || !findable {
		return nil, err
	}
	return s.Assets.AssetIDs(v.Context(), q.Filter, q.Order, q.Descending)
}

// selected are the ids that rows were selected with.
func selected(asked url.Values) []string {
	ids := slices.DeleteFunc(slices.Clone(asked["id"]), func(id string) bool { return !resource.IsID(id) })
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
