package devices

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// apps are a device's apps beside what its policy says of them.
type apps struct {
	Rows     []appRow
	Reported int       // how many the device has
	Since    time.Time // when they changed last; zero: it does not report them
	Text     string    // what is looked for
}

// appRow is one app: reported, named by the policy, or both.
type appRow struct {
	asset.App
	Wanted  string // the policy's word; empty: it names no such app
	Missing bool   // the policy installs it, and the device does not report it
}

// title is what people call the app.
func (a appRow) title() string { return cmp.Or(a.Name, a.Package) }

// state is how an app stands, and how that is meant.
func (a appRow) state() (frame.Tone, string) {
	switch {
	case a.Missing:
		return frame.Warn, "Not installed"
	case a.Package != "" && a.Removed:
		return frame.Idle, "Removed"
	case a.Wanted == "BLOCKED":
		return frame.Bad, "Installed, but blocked"
	default:
		return frame.OK, "Installed"
	}
}

func (s *Section) apps(v *frame.Visit, d device) (apps, error) {
	i, err := s.Assets.InstalledApps(v.Context(), d.CompanyID, d.ID)
	if err != nil {
		return apps{}, err
	}
	p, err := s.policyOf(v, d)
	if err != nil {
		return apps{}, err
	}
	named, err := policy.Apps(document(p))
	all := apps{Since: i.Since, Text: strings.TrimSpace(v.Query().Get("q"))}
	for _, row := range merged(i, named) {
		if row.Package != "" && !row.Removed && !row.Missing {
			all.Reported++
		}
		if strings.Contains(strings.ToLower(row.Name+" "+row.Package), strings.ToLower(all.Text)) {
			all.Rows = append(all.Rows, row)
		}
	}
	return all, err
}

// merged are the apps by title. An app that the policy installs and a device
// that reports its apps does not have is missing; of a device that reports none,
// that is not known.
func merged(i asset.Inventory, named []policy.App) []appRow {
	wanted := map[string]string{}
	for _, a := range named {
		wanted[a.PackageName] = a.InstallType
	}
	var rows []appRow
	for _, a := range i.Apps {
		rows = append(rows, appRow{App: a, Wanted: wanted[a.Package]})
		delete(wanted, a.Package)
	}
	for name, word := range wanted {
		if i.Since.IsZero() || installs(word) {
			rows = append(rows, appRow{App: asset.App{Package: name}, Wanted: cmp.Or(word, "AVAILABLE"), Missing: !i.Since.IsZero()})
		}
	}
	slices.SortFunc(rows, func(a, b appRow) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.title()), strings.ToLower(b.title())), strings.Compare(a.Package, b.Package))
	})
	return rows
}

// installs reports whether an install type puts the app on the device unasked.
func installs(installType string) bool {
	return slices.Contains([]string{"FORCE_INSTALLED", "PREINSTALLED", "REQUIRED_FOR_SETUP", "KIOSK"}, installType)
}

// source says where an app came from.
func source(constant string) string {
	return cmp.Or(map[string]string{
		"INSTALLED_FROM_PLAY_STORE": "Play Store", "SYSTEM_APP_FACTORY_VERSION": "System", "SYSTEM_APP_UPDATED_VERSION": "System, updated",
	}[constant], words(constant))
}

// noApps says why there are no apps to show.
func noApps(d device) string {
	return frame.Either(d.Device != nil && d.Device.Management == asset.Agent,
		"Our agent does not report apps, and the device's policy names none.",
		"The device reports no apps. A policy with installed apps reporting lets it; it names none itself.")
}

// logs is the tab with the logs that the device uploaded, and the text of the one that
// the query names, or of the newest.
func (s *Section) logs(v *frame.Visit, d device) (templ.Component, error) {
	all, err := s.Logs.Logs(v.Context(), v.Company.ID, d.ID)
	if err != nil || len(all) == 0 {
		return logsPart(v, d, all, agentdevice.Log{}), err
	}
	shown, err := s.Logs.Log(v.Context(), v.Company.ID, d.ID, cmp.Or(v.Query().Get("log"), all[0].ID))
	return logsPart(v, d, all, shown), err
}

// logFile answers with one log as a file of plain text.
func (s *Section) logFile(v *frame.Visit, a asset.Asset) error {
	l, err := s.Logs.Log(v.Context(), a.CompanyID, a.ID, v.PathValue("log"))
	if err != nil {
		return err
	}
	v.Download("text/plain; charset=utf-8", "agent-log-"+l.At.UTC().Format("2006-01-02T150405Z")+".txt")
	_, err = io.WriteString(v.Writer(), l.Text)
	return err
}
