package devices

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/surface/portal/frame"
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
		{"tags", "Tags", "", true, func(a asset.Asset) string { return strings.Join(a.Tags, ";") }},
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
