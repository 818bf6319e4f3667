package database

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/asset"
)

// reportFacts are the members of a status report that lists are asked for by. A member of
// another type than it should have was not reported.
type reportFacts struct {
	BatteryLevel    json.RawMessage `json:"batteryLevel"`
	PolicyCompliant json.RawMessage `json:"policyCompliant"`
	Applications    json.RawMessage `json:"applications"`
}

func readReport(report string) (r reportFacts, err error) { return r, decode(report, &r) }

// battery is the level in percent; -1: not reported.
func (r reportFacts) battery() float64 {
	var level *float64
	if json.Unmarshal(r.BatteryLevel, &level) != nil || level == nil || *level < 0 || *level > 100 {
		return -1
	}
	return *level + 0 // -0 is 0, of which the engines keep different values
}

// compliant is 1 for a device that follows its policy, 0 for one that does not, and -1 if
// it was not reported.
func (r reportFacts) compliant() int {
	var yes *bool
	switch {
	case json.Unmarshal(r.PolicyCompliant, &yes) != nil || yes == nil:
		return -1
	case *yes:
		return 1
	}
	return 0
}

// installed are the version codes of the apps by package; -1: not reported.
func (r reportFacts) installed() map[string]int64 {
	var apps []json.RawMessage
	found := map[string]int64{}
	if json.Unmarshal(r.Applications, &apps) != nil {
		return found
	}
	for _, text := range apps {
		var app struct {
			Package string          `json:"packageName"`
			Version json.RawMessage `json:"versionCode"`
		}
		if json.Unmarshal(text, &app) != nil || !indexable(app.Package) || len(found) == asset.MaxApps {
			continue // what no index can hold is no package either
		}
		code := int64(-1)
		if json.Unmarshal(app.Version, &code) != nil || code < 0 {
			code = -1
		}
		if _, twice := found[app.Package]; !twice {
			found[app.Package] = code
		}
	}
	return found
}

// maxPackage is the longest name of a package that is looked for, in bytes.
const maxPackage = 1020

func indexable(name string) bool {
	return name != "" && len(name) <= maxPackage && storable(name) == name
}

// installedApp is a row of installed_apps.
type installedApp struct {
	pkg  string
	code int64
}

// noteInstalled keeps which apps the device has now, as its report lists them.
func (h lockedAsset) noteInstalled(ctx context.Context, t *tx) error {
	r, err := readReport(h.reported)
	t.check(err)
	now := r.installed()
	for _, a := range listed(ctx, t, into(func(a *installedApp) []any { return []any{&a.pkg, &a.code} }),
		`SELECT package, version_code FROM installed_apps WHERE asset_id = ?`, h.id) {
		if code, has := now[a.pkg]; has && code == a.code {
			delete(now, a.pkg)
			continue
		}
		t.do(ctx, `DELETE FROM installed_apps WHERE asset_id = ? AND package = ?`, h.id, a.pkg)
	}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(now)), installedRows) {
		args := make([]any, 0, 4*installedRows)
		for _, name := range filled(some, installedRows) { // one text to prepare
			args = append(args, h.id, name, h.companyID, now[name])
		}
		t.do(ctx, `INSERT INTO installed_apps (asset_id, package, company_id, version_code)
			VALUES `+strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?), ", installedRows), ", ")+` ON CONFLICT DO NOTHING`,
			args...)
	}
	return nil
}

// installedRows is how many rows one statement adds.
const installedRows = 25

// noteApps keeps what a device says of its apps; nil: it says nothing of them,
// and what it said before stays; none: it no longer reports them.
func noteApps(ctx context.Context, t *tx, assetID string, apps []asset.App, at int64) error {
	switch {
	case apps == nil:
		return nil
	case len(apps) == 0:
		return forgetApps(ctx, t, assetID)
	}
	return t.Exec(ctx, `INSERT INTO asset_apps (asset_id, since, apps) VALUES (?, ?, ?)
		ON CONFLICT (asset_id) DO UPDATE SET since = excluded.since, apps = excluded.apps WHERE asset_apps.apps <> excluded.apps`,
		assetID, at, storable(encode(apps)))
}

func forgetApps(ctx context.Context, t *tx, assetID string) error {
	return t.Exec(ctx, `DELETE FROM asset_apps WHERE asset_id = ?`, assetID)
}

// InstalledApps returns the apps that a device reported; none if it reports
// none, or is not the company's.
func (db *DB) InstalledApps(ctx context.Context, companyID, assetID string) (asset.Inventory, error) {
	i, _, err := maybe(one(ctx, db.read(), into(func(i *asset.Inventory) []any { return []any{at(&i.Since), encoded{&i.Apps}} }),
		`SELECT p.since, p.apps FROM asset_apps p JOIN assets a ON a.id = p.asset_id WHERE p.asset_id = ? AND a.company_id = ?`,
		assetID, companyID))
	return i, err
}
