package database_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
)

func TestSearch_TermsOfAnAsset(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what           string
		identification string
		specifications map[string]string
		tags           []string
		device         string
		management     asset.Management
		want           string
	}{
		{what: "nothing"},
		{what: "words", identification: "Front  Desk 12", want: "front desk 12"},
		{what: "punctuation", identification: "SM-G991B/DS (old)", want: "sm-g991b/ds g991b/ds ds old)"},
		{what: "an apostrophe parts nothing", identification: "Ada's phone", want: "ada's phone"},
		{what: "tags", tags: []string{"Shop", "Floor 3"}, want: "#shop shop #floor_3 floor 3"},
		{what: "facts", specifications: map[string]string{"serialNumber": "R58-N1", "model": "Pixel 8", "brand": "google", "osVersion": "16"},
			want: "r58-n1 n1 pixel 8 google"},
		{what: "device", device: "enterprises/LC01/devices/3ab", management: asset.Platform, want: "@platform 3ab"},
		{what: "letters of others", identification: "ÄRGER Ñandú 電話", want: "ärger ñandú 電話"},
		{what: "hostile", identification: "a\x00b\n@agent #x \u202ec\xff %_\\", tags: []string{"\x00", " "}, want: "a b agent x c\uFFFD"},
		{what: "long", identification: strings.Repeat("é", 100), want: strings.Repeat("é", 48)},
	} {
		t.Run(c.what, func(t *testing.T) {
			got := database.SearchTerms(c.identification, c.specifications, c.tags, c.device, c.management)
			for i, term := range got {
				got[i] = strings.ReplaceAll(term, " ", "_")
			}
			equal(t, c.what, strings.Join(got, " "), c.want)
		})
	}
	if n := len(database.SearchTerms(strings.Repeat("a-b ", 1000)+strings.Join(strings.Split(strings.Repeat("x", 99), ""), "-"), nil, nil, "", "")); n > 40 {
		t.Errorf("%d terms of one asset", n)
	}
}

// finding names what a search found, in order.
func finding(assets []asset.Asset) string {
	names := make([]string, len(assets))
	for i, a := range assets {
		names[i] = a.Identification
	}
	return strings.Join(names, ", ")
}

// all pages through a search.
func (f *fixture) all(tb interface {
	Helper()
	Fatalf(string, ...any)
}, s asset.Search) (assets []asset.Asset, total int64) {
	tb.Helper()
	s.CompanyID = f.company.ID
	for range 1000 {
		found, err := f.db.SearchAssets(f.Context(), s)
		if err != nil {
			tb.Fatalf("%v", err)
		}
		if n := max(s.Size, 1); s.Size > 0 && len(found.Assets) > n {
			tb.Fatalf("a page of %d, want at most %d", len(found.Assets), n)
		}
		assets, total = append(assets, found.Assets...), found.Total
		if found.Next == "" {
			return assets, total
		}
		s.After = found.Next
	}
	tb.Fatalf("the search has no end")
	return nil, 0
}

func TestSearch(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.newPolicy("Kiosk")
		f.ok(f.db.ImportAssets(f.Context(), []asset.Asset{
			{ID: "imported1", CompanyID: f.company.ID, Identification: "Front desk tablet", Tags: []string{"Shop", "Floor 3"}},
			{ID: "imported2", CompanyID: f.company.ID, Identification: "100% spare_part", Tags: []string{"Floor 33"}},
			{ID: "imported3", CompanyID: f.company.ID, Identification: "Desk phone"},
		}))
		other := f.newCompany("other")
		f.ok(f.db.ImportAssets(f.Context(), []asset.Asset{{ID: "foreign1", CompanyID: other.ID, Identification: "Desk of another", Tags: []string{"Shop"}}}))
		phone := f.enroll("enterprises/LC1/devices/d4c3", p.ID)
		o := f.joined("agentdevice", "")
		o.Management, o.SerialNumber, o.Model = asset.Agent, "R58-XYZ", "Headset 2"
		o.LostMode = new(true)
		headset := f.asset(f.observe(o).AssetID)
		seen := headset.Device.LastSeenAt

		for _, c := range []struct {
			name string
			asset.Search
			want string
		}{
			{name: "everything", want: "100% spare_part, Desk phone, Front desk tablet, Headset 2 -XYZ, Phone 1 d4c3"},
			{name: "a word", Search: asset.Search{Text: "desk"}, want: "Desk phone, Front desk tablet"},
			{name: "the beginning of a word", Search: asset.Search{Text: "TAB"}, want: "Front desk tablet"},
			{name: "the middle of a word", Search: asset.Search{Text: "able"}},
			{name: "after punctuation", Search: asset.Search{Text: "xyz"}, want: "Headset 2 -XYZ"},
			{name: "words in any order", Search: asset.Search{Text: "tablet front"}, want: "Front desk tablet"},
			{name: "words that do not go together", Search: asset.Search{Text: "tablet phone"}},
			{name: "signs mean themselves", Search: asset.Search{Text: "100%"}, want: "100% spare_part"},
			{name: "no wild cards", Search: asset.Search{Text: "spare%"}},
			{name: "nor one letter", Search: asset.Search{Text: "front_"}},
			{name: "nothing but signs", Search: asset.Search{Text: "%"}},
			{name: "spaces are no words", Search: asset.Search{Text: " \t"}, want: "100% spare_part, Desk phone, Front desk tablet, Headset 2 -XYZ, Phone 1 d4c3"},
			{name: "a device's name", Search: asset.Search{Text: "d4c3"}, want: "Phone 1 d4c3"},
			{name: "a serial number", Search: asset.Search{Text: "r58-x"}, want: "Headset 2 -XYZ"},
			{name: "an id", Search: asset.Search{Text: headset.ID}, want: "Headset 2 -XYZ"},
			{name: "a path name", Search: asset.Search{Text: " " + headset.PathName()}, want: "Headset 2 -XYZ"},
			{name: "an id that the filter leaves out", Search: asset.Search{Filter: asset.Filter{Status: asset.Pending}, Text: headset.ID}},
			{name: "an id of another company", Search: asset.Search{Text: "foreign1"}},
			{name: "a tag as text", Search: asset.Search{Text: "#flo"}, want: "100% spare_part, Front desk tablet"},
			{name: "a whole tag", Search: asset.Search{Tag: "floor 3"}, want: "Front desk tablet"},
			{name: "half a tag", Search: asset.Search{Tag: "floor"}},
			{name: "agents", Search: asset.Search{Management: asset.Agent}, want: "Headset 2 -XYZ"},
			{name: "platform", Search: asset.Search{Management: asset.Platform}, want: "Phone 1 d4c3"},
			{name: "quiet", Search: asset.Search{QuietSince: seen}, want: "Phone 1 d4c3"},
			{name: "heard", Search: asset.Search{HeardSince: seen}, want: "Headset 2 -XYZ"},
			{name: "lost", Search: asset.Search{Lost: true}, want: "Headset 2 -XYZ"},
			{name: "lost and platform", Search: asset.Search{Lost: true, Management: asset.Platform}},
			{name: "status", Search: asset.Search{Filter: asset.Filter{Status: asset.Pending}, Text: "desk"}, want: "Desk phone, Front desk tablet"},
			{name: "policy", Search: asset.Search{Filter: asset.Filter{PolicyID: p.ID}, Management: asset.Platform}, want: "Phone 1 d4c3"},
			{name: "no policy allowed", Search: asset.Search{Filter: asset.Filter{Policies: []string{}}, Text: "phone"}},
			{name: "one policy allowed", Search: asset.Search{Filter: asset.Filter{Policies: []string{p.ID}}, Text: "phone"}, want: "Phone 1 d4c3"},
		} {
			c.Order = asset.ByIdentification
			for _, limits := range [][3]int{{3000, 6000, 250}, {0, 6000, 2}, {1, 1, 1}} {
				f.db.SetSearchLimits(limits[0], limits[1], limits[2])
				got, total := f.all(f, c.Search)
				equal(f, fmt.Sprint(c.name, limits), finding(got), c.want)
				if total != asset.Uncounted || limits[0] == 3000 {
					equal(f, c.name+": total", total, int64(len(got)))
				}
			}
		}
		// A device that ends is found by what it was, not by whose it was.
		f.ok(f.db.MarkDeleted(f.Context(), phone.ID, phone.Device.Epoch, f.clock.Now()))
		for text, want := range map[string]string{"phone 1": "Phone 1 d4c3", "d4c3": "Phone 1 d4c3"} {
			got, _ := f.all(f, asset.Search{Text: text, Order: asset.ByIdentification})
			equal(f, text, finding(got), want)
		}
		got, _ := f.all(f, asset.Search{Management: asset.Platform})
		equal(f, "platform", finding(got), "")
	})
}

// What is looked at one by one is looked up by its id. An index on the company
// would serve as well in the eyes of an engine that has no statistics, and read
// a million rows.
func TestSearch_LooksUpIDs(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for n := range 3 {
			f.enroll(fmt.Sprint("d", n), "")
		}
		f.db.SetSearchLimits(2, 10, 2) // the filter is not few
		looked := map[string]int{}
		ran := collect(f.db)
		for _, s := range []asset.Search{{Text: "d1"}, {Text: "d1", Filter: asset.Filter{Status: asset.Active}}, {Text: "d1 phone", QuietSince: f.clock.Now().Add(time.Hour)}} {
			f.all(f, s)
		}
		for query, n := range ran.soFar() {
			if strings.Contains(query, "TRUE FROM assets WHERE id IN") {
				looked[query] = n
			}
		}
		if len(looked) == 0 {
			f.Fatalf("nothing was looked up: %.2000v", ran.soFar())
		}
		plan := f.planner(f, f.db)
		for query, n := range looked {
			if text := strings.Join(plan(query, n), "\n"); !strings.Contains(text, "(id=?)") && !strings.Contains(text, "assets_pkey") {
				f.Errorf("%.300s\n%s", query, text)
			}
		}
	})
}

func TestSearch_PageTokenContinues(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for _, after := range []string{"x", "!", "e30", "WyIiLCIiXQ", "WyJ4IiwieSJd"} {
			_, err := f.db.SearchAssets(f.Context(), asset.Search{Filter: asset.Filter{CompanyID: f.company.ID}, Order: asset.BySyncedAt, After: after})
			f.code(fault.InvalidArguments, err)
		}
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

func TestSearch_IndexesOlderAssets(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for n := range 7 {
			f.enroll(fmt.Sprint("d", n), "")
		}
		f.checkTerms()
		f.ok(f.db.Write(f.Context(), nil, `DELETE FROM asset_terms WHERE company_id = '`+f.company.ID+`'`,
			`UPDATE assets SET search_terms = '' WHERE company_id = '`+f.company.ID+`'`))
		got, _ := f.all(f, asset.Search{Text: "d3"})
		equal(f, "before", finding(got), "")
		again := f.openAs(f, database.Upgrade)
		f.checkTerms()
		found, err := again.SearchAssets(f.Context(), asset.Search{Filter: asset.Filter{CompanyID: f.company.ID}, Text: "d3"})
		f.ok(err)
		equal(f, "after", finding(found.Assets), "Phone 1 N-d3")
	})
}

// matches says what a search is to find, without any index.
func matches(s asset.Search, a asset.Asset) bool {
	d := a.Device
	if s.Status != "" && a.Status != s.Status || (s.Enrolled || s.Unlocated) && d == nil ||
		!s.LocatedSince.IsZero() && (d == nil || d.Location == nil || d.Location.ReportedAt.Before(s.LocatedSince)) ||
		s.Unlocated && d.Location != nil || s.Lost && (d == nil || !d.LostMode) || s.Policies != nil && (d == nil || !slices.Contains(s.Policies, d.PolicyID)) ||
		s.Management != "" && (d == nil || d.Management != s.Management) ||
		!s.QuietSince.IsZero() && (d == nil || !d.LastSeenAt.Before(s.QuietSince)) ||
		!s.HeardSince.IsZero() && (d == nil || d.LastSeenAt.Before(s.HeardSince)) {
		return false
	}
	for word := range strings.FieldsSeq(s.Text) {
		has := func(text string) bool { return strings.HasPrefix(strings.ToLower(text), word) }
		text := strings.Join([]string{a.Identification, a.Specifications["serialNumber"], a.Specifications["model"], a.Specifications["brand"]}, " ")
		if d != nil {
			text += " " + d.Name
		}
		if !slices.ContainsFunc(append(strings.Fields(text), strings.Split(text, "-")...), has) {
			return false
		}
	}
	return true
}

func TestSearch_FindsWhatMatches(t *testing.T) {
	withCompany(t, func(f *fixture) {
		policies := []string{f.newPolicy("a").ID, f.newPolicy("b").ID}
		round := 0
		rapid.Check(f, func(r *rapid.T) {
			round++
			f.company = f.newCompany(fmt.Sprint("c", round))
			for range rapid.IntRange(1, 20).Draw(r, "changes") {
				if err := f.change(r, f.company, policies); err != nil {
					r.Fatal(err)
				}
			}
			f.checkTerms()
			f.db.SetSearchLimits(3000, 6000, 250)
			everything, _ := f.all(r, asset.Search{})
			for range 3 {
				f.db.SetSearchLimits(rapid.IntRange(0, 4).Draw(r, "few"), rapid.IntRange(1, 9).Draw(r, "walk"), rapid.IntRange(1, 4).Draw(r, "stride"))
				f.checkSearch(r, drawSearch(r, f, policies), everything)
			}
		})
	})
}

func drawSearch(r *rapid.T, f *fixture, policies []string) asset.Search {
	s := asset.Search{
		Text:       rapid.SampledFrom([]string{"", "", "s", "s1", "b", "d", f.company.Slug + "-d2", "s2 b"}).Draw(r, "text"),
		Management: rapid.SampledFrom([]asset.Management{"", "", asset.Platform, asset.Agent}).Draw(r, "management"),
		Order:      rapid.SampledFrom([]asset.Order{asset.BySyncedAt, asset.ByIdentification, asset.ByStatus, asset.ByCreatedAt}).Draw(r, "order"),
		Descending: rapid.Bool().Draw(r, "descending"),
		Size:       rapid.IntRange(1, 5).Draw(r, "size"),
	}
	s.Status = rapid.SampledFrom([]asset.Status{"", "", asset.Active, asset.Pending, asset.Synchronizing, asset.Deleted}).Draw(r, "status")
	s.Policies = rapid.SampledFrom([][]string{nil, nil, policies, policies[:1], {}}).Draw(r, "policies")
	when := f.clock.Now().Add(-time.Duration(rapid.IntRange(0, 20).Draw(r, "since")) * time.Second)
	switch rapid.IntRange(0, 3).Draw(r, "heard") {
	case 0:
		s.QuietSince = when
	case 1:
		s.HeardSince = when
	}
	switch rapid.IntRange(0, 5).Draw(r, "located") {
	case 0:
		s.LocatedSince = when
	case 1:
		s.Unlocated = true
	case 2:
		s.Enrolled = true
	case 3:
		s.Lost = true
	}
	return s
}

func (f *fixture) checkSearch(r *rapid.T, s asset.Search, everything []asset.Asset) {
	var want []string
	for _, a := range everything {
		if matches(s, a) {
			want = append(want, a.ID)
		}
	}
	assets, total := f.all(r, s)
	var got []string
	for i, a := range assets {
		got = append(got, a.ID)
		if i > 0 && inOrder(s, assets[i-1], a) >= 0 {
			r.Fatalf("%+v: %s does not come before %s", s, assets[i-1].ID, a.ID)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.Fatalf("%+v finds %v, want %v", s, got, want)
	}
	if total != asset.Uncounted && total != int64(len(want)) {
		r.Fatalf("%+v: total %d, want %d", s, total, len(want))
	}
}

func inOrder(s asset.Search, a, b asset.Asset) int {
	by := map[asset.Order]int{
		asset.BySyncedAt: a.SyncedAt.Compare(b.SyncedAt), asset.ByCreatedAt: a.CreatedAt.Compare(b.CreatedAt),
		asset.ByIdentification: strings.Compare(a.Identification, b.Identification), asset.ByStatus: strings.Compare(string(a.Status), string(b.Status)),
	}[s.Order]
	if by == 0 {
		by = strings.Compare(a.ID, b.ID)
	}
	if s.Descending {
		return -by
	}
	return by
}

// FuzzSearchTerms holds that the text of an asset finds it.
func FuzzSearchTerms(f *testing.F) {
	for _, seed := range []string{"Front desk", "SM-G991B", "a\x00b", "\xff", "İstanbul ß", "#@x", "'", strings.Repeat("x", 99)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, term := range database.SearchTerms(text, nil, []string{text}, text, asset.Agent) {
			if !utf8.ValidString(term) || strings.ContainsAny(term, "\x00\n") || term == "" || utf8.RuneCountInString(term) > 48 {
				t.Fatalf("%q has the term %q", text, term)
			}
		}
	})
}
