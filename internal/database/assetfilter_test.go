package database_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/operation"
)

// finds names what a filter finds, by name.
func (f *fixture) finds(filter asset.Filter) string {
	f.Helper()
	filter.CompanyID = f.company.ID
	found, total, err := f.db.Assets(f.Context(),
		asset.Query{Filter: filter, Order: asset.ByIdentification, Page: operation.PageRequest{Size: 100}})
	f.ok(err)
	equal(f, "total", total, int64(len(found)))
	n, err := f.db.CountAssets(f.Context(), filter)
	f.ok(err)
	equal(f, "count", n, total)
	names := make([]string, len(found))
	for i, a := range found {
		names[i] = a.Identification
	}
	return strings.Join(names, ", ")
}

func TestFilter_Words(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.newPolicy("Kiosk")
		f.ok(f.db.ImportAssets(f.Context(), []asset.Asset{
			{ID: "imported1", CompanyID: f.company.ID, Identification: "Front desk tablet", Tags: []string{"Shop", "Floor 3"},
				CustomData: map[string]string{"user": "Ada Lovelace", "userEmail": "ada@acme.example", "room": "cellar"}},
			{ID: "imported2", CompanyID: f.company.ID, Identification: "100% spare_part", Tags: []string{"Floor 33", "a\nb"}},
			{ID: "imported3", CompanyID: f.company.ID, Identification: "Desk phone Straße ﬁve",
				Specifications: map[string]string{"imei": "356938035643809"}},
		}))
		other := f.newCompany("other")
		f.ok(f.db.ImportAssets(f.Context(),
			[]asset.Asset{{ID: "foreign1", CompanyID: other.ID, Identification: "Desk of another", Tags: []string{"Shop"}}}))
		f.enroll("enterprises/LC1/devices/d4c3", p.ID)
		for _, c := range []struct {
			name string
			asset.Filter
			want string
		}{
			{name: "a word", Filter: asset.Filter{Text: "desk"}, want: "Desk phone Straße ﬁve, Front desk tablet"},
			{name: "the beginning of a word", Filter: asset.Filter{Text: "TAB"}, want: "Front desk tablet"},
			{name: "the middle of a word", Filter: asset.Filter{Text: "able"}},
			{name: "after punctuation", Filter: asset.Filter{Text: "part"}, want: "100% spare_part"},
			{name: "words in any order", Filter: asset.Filter{Text: "tablet front"}, want: "Front desk tablet"},
			{name: "words that do not go together", Filter: asset.Filter{Text: "tablet phone"}},
			{name: "signs part words", Filter: asset.Filter{Text: "spare%part"}, want: "100% spare_part"},
			{name: "nothing but signs", Filter: asset.Filter{Text: "%"}},
			{name: "a serial number", Filter: asset.Filter{Text: "sn-ent"}, want: "Phone 1 d4c3"},
			{name: "a device's name alone", Filter: asset.Filter{Text: "lc01"}},
			{name: "a model", Filter: asset.Filter{Text: "phone 1"}, want: "Phone 1 d4c3"},
			{name: "a brand is no field", Filter: asset.Filter{Text: "acme phone"}},
			{name: "a person", Filter: asset.Filter{Text: "lovelace"}, want: "Front desk tablet"},
			{name: "a person's address", Filter: asset.Filter{Text: "example"}, want: "Front desk tablet"},
			{name: "other custom data", Filter: asset.Filter{Text: "cellar"}},
			{name: "an IMEI", Filter: asset.Filter{Text: "35693803"}, want: "Desk phone Straße ﬁve"},
			{name: "case folded", Filter: asset.Filter{Text: "STRASSE FIVE"}, want: "Desk phone Straße ﬁve"},
			{name: "a word of a tag", Filter: asset.Filter{Text: "3"}, want: "100% spare_part, Desk phone Straße ﬁve, Front desk tablet"},
			{name: "a whole tag", Filter: asset.Filter{Tags: []string{"Floor 3"}}, want: "Front desk tablet"},
			{name: "another case", Filter: asset.Filter{Tags: []string{"floor 3"}}},
			{name: "another case beside a word", Filter: asset.Filter{Text: "desk", Tags: []string{"floor 3"}}},
			{name: "another case beside a tag", Filter: asset.Filter{Tags: []string{"Shop", "floor 3"}}},
			{name: "two tags", Filter: asset.Filter{Tags: []string{"Floor 3", "Shop"}}, want: "Front desk tablet"},
			{name: "two tags of different assets", Filter: asset.Filter{Tags: []string{"Floor 33", "Shop"}}},
			{name: "half a tag", Filter: asset.Filter{Tags: []string{"Floor"}}},
			{name: "half a tag of two lines", Filter: asset.Filter{Tags: []string{"b"}}},
			{name: "a tag of two lines", Filter: asset.Filter{Tags: []string{"a\nb"}}, want: "100% spare_part"},
			{name: "managed", Filter: asset.Filter{Text: "phone", Management: asset.Platform}, want: "Phone 1 d4c3"},
			{name: "status", Filter: asset.Filter{Status: asset.Pending, Text: "phone"}, want: "Desk phone Straße ﬁve"},
			{name: "no policy allowed", Filter: asset.Filter{Policies: []string{}, Text: "phone"}},
			{name: "one policy allowed", Filter: asset.Filter{Policies: []string{p.ID}, Text: "phone"}, want: "Phone 1 d4c3"},
		} {
			for _, few := range []int{3000, 1, 0} {
				f.db.SetFew(few)
				equal(f, fmt.Sprint(c.name, few), f.finds(c.Filter), c.want)
			}
		}
		f.checkTerms()
	})
}

// checkTerms compares the index with the assets.
func (f *fixture) checkTerms() {
	f.Helper()
	kept, err := f.db.Text(f.Context(), `SELECT company_id, asset_id, term FROM asset_terms`)
	f.ok(err)
	rows, err := f.db.Text(f.Context(), `SELECT company_id, id, search_terms FROM assets`)
	f.ok(err)
	var want []string
	for _, row := range rows {
		part := strings.SplitN(row, "|", 3)
		if part[2] == "" {
			f.Fatalf("asset %s is not indexed", part[1])
		}
		for _, term := range strings.Split(strings.Trim(part[2], "\n"), "\n") {
			if term != "" {
				want = append(want, part[0]+"|"+part[1]+"|"+term)
			}
		}
	}
	slices.Sort(kept)
	slices.Sort(want)
	equal(f, "index", kept, want)
}

func TestFilter_IndexesOlderAssets(t *testing.T) {
	withCompany(t, func(f *fixture) {
		o := f.joined("d1", "")
		o.StatusReport = json.RawMessage(`{"batteryLevel":12,"policyCompliant":false}`)
		o.Specifications = map[string]string{"securityPatchLevel": "2026-01-05"}
		f.observe(o)
		f.enroll("d2", "")
		all := asset.Filter{Text: "d1", BatteryBelow: 13, Compliant: new(false), PatchBefore: "2026-02-01"}
		equal(f, "found", f.finds(all), "Phone 1 N-d1")
		f.ok(f.db.Write(f.Context(), nil, `DELETE FROM asset_terms WHERE company_id = '`+f.company.ID+`'`,
			`UPDATE assets SET search_terms = '', battery = -1, compliant = -1, patch = '' WHERE company_id = '`+f.company.ID+`'`))
		equal(f, "before", f.finds(all), "")
		f.db = f.openAs(f, database.Upgrade)
		f.checkTerms()
		equal(f, "after", f.finds(all), "Phone 1 N-d1")
	})
}

// What is looked at one by one is looked up by its id, and no filter with an index reads
// the whole table.
func TestFilter_Plans(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.newPolicy("p").ID
		for n := range 3 {
			f.enroll(fmt.Sprint("d", n), p)
		}
		f.db.SetFew(2)
		ran, now := collect(f.db), f.clock.Now()
		for _, filter := range []asset.Filter{
			{Text: "d1"}, {Text: "d1", Status: asset.Active}, {Tags: []string{"a", "b"}}, {PatchBefore: "2026-01-01"},
			{PatchMonth: "2026-01"},
			{BatteryBelow: 20}, {Compliant: new(false)}, {Lost: new(true)}, {Messages: new(true)}, {Messages: new(true), Companions: true},
			{SeenBefore: now}, {SeenAfter: now}, {App: "com.example"}, {App: "com.example", AppBelow: new(int64(7))},
			{PolicyBehind: new(true)},
			{Management: asset.Agent, Text: "d1 phone"},
		} {
			f.finds(filter)
		}
		plan, looked := f.planner(f, f.db, "enable_seqscan = off", "enable_bitmapscan = off"), 0
		for query, n := range ran.soFar() {
			if !strings.Contains(query, "LIMIT 3") && !strings.Contains(query, "WHERE id IN") {
				continue
			}
			looked++
			lines := strings.Join(plan(query, n), "\n")
			if strings.Contains(lines, "SCAN assets") || strings.Contains(lines, "SCAN installed_apps") ||
				strings.Contains(lines, "SCAN asset_terms") || strings.Contains(lines, "Seq Scan") {
				f.Errorf("%s scans:\n%s\n\n%s", f.name, query, lines)
			}
			if strings.Contains(query, "WHERE id IN") && !strings.Contains(lines, "(id=?)") && !strings.Contains(lines, "assets_pkey") {
				f.Errorf("%s looks nothing up:\n%s\n\n%s", f.name, query, lines)
			}
		}
		if looked < 15 {
			f.Fatalf("%d statements, want more", looked)
		}
	})
}

// publicAsset is an asset as the API shows it, read again from its JSON.
type publicAsset struct {
	PathName, Identification, Status string
	CustomData                       map[string]any
	Specifications                   map[string]string
	ManagedDevice                    *struct {
		PolicyID             *string
		PolicyVersionApplied *int
		LastSeenAt           *time.Time
		LostMode             bool
		PushReachable        bool
		ManagementType       string
		StatusReport         struct {
			BatteryLevel    *float64
			PolicyCompliant *bool
			Applications    []struct {
				PackageName string
				VersionCode *int64
			}
		}
	}
}

// matches says what a filter is to find, from what the API shows alone.
func matches(f *fixture, q asset.Filter, a asset.Asset, versions map[string]int) bool {
	f.Helper()
	text, err := json.Marshal(a.Public())
	f.ok(err)
	var p publicAsset
	f.ok(json.Unmarshal(text, &p))
	d := p.ManagedDevice
	tags := []string{}
	for _, tag := range p.CustomData["tags"].([]any) {
		tags = append(tags, tag.(string))
	}
	for _, tag := range q.Tags {
		if !slices.Contains(tags, tag) {
			return false
		}
	}
	runs := func(text string) []string {
		return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	}
	user, _ := p.CustomData["user"].(string)
	fields := runs(strings.Join(append(tags, p.Identification, p.Specifications["serialNumber"], p.Specifications["imei"],
		p.Specifications["model"], user), " "))
	for _, word := range runs(q.Text) {
		if !slices.ContainsFunc(fields, func(has string) bool { return strings.HasPrefix(has, word) }) {
			return false
		}
	}
	if q.Status != "" && string(q.Status) != p.Status {
		return false
	}
	if d == nil {
		return q.PolicyBehind == nil && q.PatchBefore == "" && q.BatteryBelow == 0 && q.Compliant == nil && q.Lost == nil &&
			q.Messages == nil &&
			q.App == "" && q.SeenBefore.IsZero() && q.SeenAfter.IsZero() && q.Policies == nil
	}
	if q.Policies != nil && (d.PolicyID == nil || !slices.Contains(q.Policies, a.Device.PolicyID)) ||
		q.PolicyBehind != nil && (d.PolicyVersionApplied == nil ||
			(*d.PolicyVersionApplied < versions[a.Device.PolicyID]) != *q.PolicyBehind) ||
		q.PatchBefore != "" && (p.Specifications["securityPatchLevel"] == "" || p.Specifications["securityPatchLevel"] >= q.PatchBefore) ||
		q.BatteryBelow > 0 && (d.StatusReport.BatteryLevel == nil || *d.StatusReport.BatteryLevel >= float64(q.BatteryBelow)) ||
		q.Compliant != nil && (d.StatusReport.PolicyCompliant == nil || *d.StatusReport.PolicyCompliant != *q.Compliant) ||
		q.Lost != nil && d.LostMode != *q.Lost ||
		q.Messages != nil && (d.PushReachable && (q.Companions || d.ManagementType == "AGENT")) != *q.Messages ||
		!q.SeenBefore.IsZero() && (d.LastSeenAt == nil || !d.LastSeenAt.Before(q.SeenBefore)) ||
		!q.SeenAfter.IsZero() && (d.LastSeenAt == nil || !d.LastSeenAt.After(q.SeenAfter)) {
		return false
	}
	if q.App == "" {
		return true
	}
	for _, app := range d.StatusReport.Applications {
		if app.PackageName == q.App {
			return q.AppBelow == nil || app.VersionCode != nil && *app.VersionCode < *q.AppBelow
		}
	}
	return false
}

// inOrder compares as the API orders.
func inOrder(q asset.Query, a, b asset.Asset) int {
	by := 0
	switch q.Order {
	case asset.ByIdentification:
		by = strings.Compare(a.Identification, b.Identification)
	case asset.ByStatus:
		by = strings.Compare(string(a.Status), string(b.Status))
	case asset.ByCreatedAt:
		by = a.CreatedAt.Compare(b.CreatedAt)
	case asset.BySyncedAt:
		by = a.SyncedAt.Compare(b.SyncedAt)
	case asset.ByLastSeenAt:
		if a.Device == nil || b.Device == nil {
			if a.Device != b.Device {
				return map[bool]int{true: 1, false: -1}[a.Device == nil]
			}
			break
		}
		by = a.Device.LastSeenAt.Compare(b.Device.LastSeenAt)
	}
	if by == 0 {
		by = strings.Compare(a.ID, b.ID)
	}
	if q.Descending {
		return -by
	}
	return by
}

func drawFilter(r *rapid.T, f *fixture, policies []string) asset.Filter {
	q := asset.Filter{Companions: rapid.Bool().Draw(r, "companions")}
	either := func(name string) *bool {
		return rapid.SampledFrom([]*bool{nil, nil, nil, new(true), new(false)}).Draw(r, name)
	}
	q.Text = rapid.SampledFrom([]string{"", "", "s", "s1", "phone", "ada", "s2 b", "floor"}).Draw(r, "text")
	q.Tags = rapid.SampledFrom([][]string{nil, nil, nil, {"shop"}, {"shop", "Floor 3"}}).Draw(r, "tags")
	q.Status = rapid.SampledFrom([]asset.Status{"", "", "", asset.Active, asset.Pending, asset.Synchronizing, asset.Deleted,
		asset.Inactive}).Draw(r, "status")
	q.Policies = rapid.SampledFrom([][]string{nil, nil, policies, policies[:1], {}}).Draw(r, "policies")
	q.PolicyBehind, q.Compliant, q.Lost, q.Messages = either("behind"), either("compliant"), either("lost"), either("messages")
	when := f.clock.Now().Add(-time.Duration(rapid.IntRange(0, 20).Draw(r, "since")) * time.Second)
	switch rapid.IntRange(0, 7).Draw(r, "more") {
	case 0:
		q.SeenBefore = when
	case 1:
		q.SeenAfter = when
	case 2:
		q.PatchBefore = "2026-10-01"
	case 3:
		q.BatteryBelow = 50
	case 4:
		q.App = "com.a"
	case 5:
		q.App, q.AppBelow = "com.a", new(int64(2))
	}
	return q
}

// Every filter finds what the sentences of the API say of what it shows, in every order,
// on every page, and counts it.
func TestFilter_FindsWhatMatches(t *testing.T) {
	withCompany(t, func(f *fixture) {
		round, found := 0, 0
		rapid.Check(f, func(r *rapid.T) {
			round++
			f.company = f.newCompany(fmt.Sprint("c", round))
			policies, versions := []string{f.newPolicy("a").ID, f.newPolicy("b").ID}, map[string]int{}
			for i, id := range policies {
				f.ok(f.db.Write(f.Context(), nil, fmt.Sprintf(`UPDATE policies SET version = %d WHERE id = '%s'`, i+2, id)))
				versions[id] = i + 2
			}
			for range rapid.IntRange(5, 30).Draw(r, "changes") {
				if err := f.change(r, f.company, policies); err != nil {
					r.Fatal(err)
				}
			}
			f.checkTerms()
			ids, err := f.db.Text(f.Context(), `SELECT id FROM assets WHERE company_id = ?`, f.company.ID)
			f.ok(err)
			everything, err := f.db.AssetsByID(f.Context(), f.company.ID, ids)
			f.ok(err)
			for range 6 {
				f.db.SetFew(rapid.SampledFrom([]int{0, 2, 4, 10_000}).Draw(r, "few"))
				q := asset.Query{Filter: drawFilter(r, f, policies), Descending: rapid.Bool().Draw(r, "descending"),
					Order: rapid.SampledFrom([]asset.Order{asset.BySyncedAt, asset.ByIdentification, asset.ByStatus, asset.ByCreatedAt,
						asset.ByLastSeenAt}).Draw(r, "order")}
				q.Page.Size = rapid.IntRange(1, 5).Draw(r, "size")
				found += f.checkQuery(r, q, everything, versions)
			}
		})
		if found == 0 {
			f.Error("no filter found anything")
		}
	})
}

func (f *fixture) checkQuery(r *rapid.T, q asset.Query, everything []asset.Asset, versions map[string]int) int {
	q.CompanyID = f.company.ID
	var want []asset.Asset
	for _, a := range everything {
		if matches(f, q.Filter, a, versions) {
			want = append(want, a)
		}
	}
	slices.SortFunc(want, func(a, b asset.Asset) int { return inOrder(q, a, b) })
	wanted := []string{}
	for _, a := range want {
		wanted = append(wanted, a.ID)
	}
	got := []string{}
	for q.Page.Page = 0; ; q.Page.Page++ {
		page, total, err := f.db.Assets(f.Context(), q)
		if err != nil || total != int64(len(want)) {
			r.Fatalf("%+v: total %d of %d, %v", q, total, len(want), err)
		}
		for _, a := range page {
			got = append(got, a.ID)
		}
		if len(page) < q.Page.Size {
			break
		}
	}
	ids, err := f.db.AssetIDs(f.Context(), q.Filter, q.Order, q.Descending)
	if err != nil || !slices.Equal(got, wanted) || !slices.Equal(ids, wanted) && len(ids)+len(wanted) > 0 {
		r.Fatalf("%+v finds %v and %v, want %v; %v", q, got, ids, wanted, err)
	}
	if n, err := f.db.CountAssets(f.Context(), q.Filter); err != nil || n != int64(len(want)) {
		r.Fatalf("%+v counts %d, want %d; %v", q, n, len(want), err)
	}
	return len(want)
}

// FuzzFilter_Words holds that the words of an asset find it, whatever they are.
func FuzzFilter_Words(f *testing.F) {
	for _, seed := range []string{"Front desk", "SM-G991B", "a\x00b", "\xff", "İstanbul ß", "#@x", "'", strings.Repeat("x", 300), "%_\\"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, word := range database.TextWords(text) {
			if again := database.TextWords(word); len(again) != 1 || again[0] != word {
				t.Fatalf("%q has the word %q, which has %q", text, word, again)
			}
		}
	})
}

// Whatever a device says of its apps, its report is kept, and what can be asked for is found.
func TestFilter_HostileApps(t *testing.T) {
	withCompany(t, func(f *fixture) {
		o := f.joined("d1", "")
		f.observe(o)
		for _, apps := range []string{`1`, `{}`, `null`, `[1,null,"x",[],{}]`, `[{"packageName":7}]`,
			`[{"packageName":"a\u0000b","versionCode":1}]`,
			`[{"packageName":"` + strings.Repeat("é", 5000) + `"}]`,
			`[{"packageName":"com.a","versionCode":"7"},{"packageName":"com.a","versionCode":1}]`,
			`[{"packageName":"com.a","versionCode":1.5}]`, `[{"packageName":"com.a","versionCode":-3}]`,
			`[{"packageName":"com.a","versionCode":1e300}]`} {
			o := f.observation("d1")
			o.StatusReport = json.RawMessage(`{"batteryLevel":"low","policyCompliant":"yes","applications":` + apps + `}`)
			f.observe(o)
			equal(f, apps[:min(len(apps), 40)], f.finds(asset.Filter{App: "com.a"}) != "", strings.Contains(apps, "com.a"))
			equal(f, "below", f.finds(asset.Filter{App: "com.a", AppBelow: new(int64(100))}), "")
			equal(f, "compliant", f.finds(asset.Filter{Compliant: new(true)})+f.finds(asset.Filter{BatteryBelow: 100}), "")
		}
		f.observe(enrollment.Observation{CompanyID: f.company.ID, Device: "d1", Gone: true, ObservedAt: f.clock.Now().Add(time.Second)})
		rows, err := f.db.Text(f.Context(), `SELECT package FROM installed_apps WHERE company_id = ?`, f.company.ID)
		f.ok(err)
		equal(f, "rows of an ended device", len(rows), 0)
	})
}

// Devices that enrolled at a time or later are found among any number that reported later.
func TestFilter_EnrolledSince(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p, other := f.newPolicy("Kiosk"), f.newPolicy("Office")
		f.enroll("d1", p.ID)
		f.clock.Advance(time.Minute)
		since := f.clock.Now()
		f.enroll("d2", p.ID)
		f.enroll("d3", other.ID)
		f.clock.Advance(time.Minute)
		f.observe(f.observation("d1"))
		f.ok(f.db.ImportAssets(f.Context(), []asset.Asset{{ID: "imported1", CompanyID: f.company.ID, Identification: "Desk"}}))
		for _, c := range []struct {
			asset.Filter
			want string
		}{
			{asset.Filter{EnrolledSince: since}, "Phone 1 N-d2, Phone 1 N-d3"},
			{asset.Filter{EnrolledSince: since, PolicyID: p.ID}, "Phone 1 N-d2"},
			{asset.Filter{EnrolledSince: since, Policies: []string{other.ID}}, "Phone 1 N-d3"},
			{asset.Filter{EnrolledSince: since, PolicyID: p.ID, Policies: []string{other.ID}}, ""},
			{asset.Filter{EnrolledSince: since.Add(30 * time.Second)}, ""},
		} {
			for _, few := range []int{3000, 1, 0} {
				f.db.SetFew(few)
				equal(f, fmt.Sprintf("%+v %d", c.Filter, few), f.finds(c.Filter), c.want)
			}
		}
	})
}
