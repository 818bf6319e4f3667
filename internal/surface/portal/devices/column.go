package devices

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/slice"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/validate"
)

// column is a column of the list; its text is what an export has.
type column struct {
	Key, Name string
	Sort      string // field, if the list can be sorted by it
	Usual     bool   // shown unless one chooses
	Text      func(a asset.Asset) string
}

// columns are all there are, in their order; the first is always shown.
func columns() []column {
	return []column{
		{"name", asset.ExportedName, string(asset.ByIdentification), true, func(a asset.Asset) string { return a.Identification }},
		{"status", "Status", string(asset.ByStatus), true, func(a asset.Asset) string { return string(a.Status) }},
		{"policy", "Policy", "", true, ofDevice(func(d asset.Device) string { return d.PolicyName })},
		{"model", "Model", "", true, func(a asset.Asset) string {
			return strings.TrimSpace(fact(a, "manufacturer") + " " + fact(a, "model"))
		}},
		{"os", "Android · patch", "", true, func(a asset.Asset) string {
			return strings.Trim(fact(a, "osVersion")+" · "+fact(a, "securityPatchLevel"), " ·")
		}},
		{"battery", "Battery", "", true, func(a asset.Asset) string {
			if level := battery(a); level >= 0 {
				return fmt.Sprint(level)
			}
			return ""
		}},
		{"seen", "Last seen", string(asset.BySyncedAt), true, ofDevice(func(d asset.Device) string {
			if d.LastSeenAt.IsZero() {
				return ""
			}
			return frame.Machine(d.LastSeenAt)
		})},
		{"tags", "Tags", "", true, func(a asset.Asset) string { return asset.TagsCell(a.Tags) }},
		{"user", "Assigned to", "", false, func(a asset.Asset) string { return a.CustomData[asset.UserKey] }},
		{"email", "E-mail of the user", "", false, func(a asset.Asset) string { return a.CustomData[asset.UserEmailKey] }},
		{"serial", "Serial number", "", false, func(a asset.Asset) string { return fact(a, "serialNumber") }},
		{"ownership", "Ownership", "", false, ofDevice(func(d asset.Device) string { return ownership(&d) })},
		{"management", "Managed by", "", false, ofDevice(func(d asset.Device) string { return management(d.Management) })},
		{"created", "In the inventory since", string(asset.ByCreatedAt), false, func(a asset.Asset) string {
			return frame.Machine(a.CreatedAt)
		}},
	}
}

func ofDevice(text func(asset.Device) string) func(asset.Asset) string {
	return func(a asset.Asset) string {
		if a.Device == nil {
			return ""
		}
		return text(*a.Device)
	}
}

// chosen are the columns that the address asks for, else the usual ones.
func chosen(l frame.List) []column {
	wanted := l.Values["cols"]
	return slices.DeleteFunc(columns(), func(c column) bool {
		if len(wanted) == 0 {
			return !c.Usual
		}
		return c.Key != "name" && !slices.Contains(wanted, c.Key)
	})
}

// exportedColumns are those that the list shows. What stands below the name there, the
// serial number and the user, has columns of its own.
func exportedColumns(l frame.List) []column {
	shown := chosen(l)
	return slices.DeleteFunc(columns(), func(c column) bool {
		below := c.Key == "user" || c.Key == "serial"
		return !below && !slices.ContainsFunc(shown, func(s column) bool { return s.Key == c.Key })
	})
}

// reported reports whether a column of an export says what an import cannot set. The model has the
// manufacturer before it.
func reported(name string) bool {
	return name == asset.ExportedID || slices.ContainsFunc(columns(), func(c column) bool {
		return c.Name == name && !slices.Contains([]string{"name", "tags", "user", "email", "serial"}, c.Key)
	})
}

func (t table) shows(key string) bool {
	return slices.ContainsFunc(t.Columns, func(c column) bool { return c.Key == key })
}

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
		return err
	}
	all, err := everyMatch(v.Query())
	if err != nil {
		return err
	}
	shown := exportedColumns(l)
	ids, err := s.exported(v, l, all)
	if fault.CodeOf(err) == fault.InvalidArguments {
		return v.Redirect(l.URL()) // says what is wrong
	}
	if err != nil {
		return err
	}
	v.Download("text/csv; charset=utf-8", "devices-"+v.Now.UTC().Format("2006-01-02")+".csv")
	out := csv.NewWriter(v.Writer())
	names := slice.Map(shown, func(c column) string { return c.Name })
	_ = out.Write(append([]string{asset.ExportedID}, names...))
	control := http.NewResponseController(v.Writer())
	for some := range slices.Chunk(ids, exportStride) {
		_ = control.SetWriteDeadline(v.Clock().Add(exportPause))
		page, err := s.found(v, some)
		if err == nil {
			err = v.Stands() // a slow download takes hours
		}
		if err != nil {
			panic(http.ErrAbortHandler) // what is cut off must not look whole
		}
		for _, a := range page {
			fields := []string{a.ID}
			for _, c := range shown {
				fields = append(fields, validate.Cell(c.Text(a)))
			}
			_ = out.Write(fields)
		}
		out.Flush()
		if out.Error() != nil {
			panic(http.ErrAbortHandler)
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
func (s *Section) exported(v *frame.Visit, l frame.List, all bool) ([]string, error) {
	if asked := v.Query(); asked.Has("id") && !all {
		chosen, err := s.found(v, selected(asked))
		return slice.Map(chosen, func(a asset.Asset) string { return a.ID }), err
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
	all, err := s.Assets.AssetsByID(v.Context(), v.Company.ID, ids)
	return slices.DeleteFunc(all, func(a asset.Asset) bool { return !a.VisibleTo(v.Principal) }), err
}
