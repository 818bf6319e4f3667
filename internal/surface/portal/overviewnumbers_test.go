package portal_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
)

// overviewLink is a figure or a bar of the overview: its address, its words and its number.
var overviewLink = regexp.MustCompile(
	`(?s)<a class="(?:panel|group)[^>]* href="([^"]*)">\s*<span[^>]*>(?:<span[^>]*>)?([^<]*)</span>\s*<span class="num[^>]*>([\d,]+)</span>`)

// listTotal is what a list of devices says of itself.
var listTotal = regexp.MustCompile(`Export ([\d,]+) device`)

// Each number of the overview is the total of the list behind it, of a mixed fleet, for who
// sees every policy and for who sees one.
func TestOverview_NumbersEqualTheLists(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		o := &office{Tenant: env.NewTenant("acme"), replica: env.Start()}
		o.base = o.replica.PublicURL()
		o.other = env.Policy(o.Company, "The other policy", policy.Platform)
		o.mixedFleet(t)
		for who, policies := range map[string][]string{"everything": nil, "one policy": {o.other.ID}} {
			role := account.Admin
			if policies != nil {
				role = account.Viewer
			}
			p := o.person(t, role, policies...)
			found := overviewLink.FindAllStringSubmatch(o.get(t, p, "/", 200), -1)
			seen := map[string]bool{}
			for _, link := range found {
				address, label, number := html.UnescapeString(link[1]), strings.TrimSpace(link[2]), link[3]
				seen[strings.FieldsFunc(address, func(r rune) bool { return r == '=' })[0]] = true
				list := o.get(t, p, address, 200)
				total := fmt.Sprint(strings.Count(list, "<tr data-row"))
				if strings.HasPrefix(address, "/devices") {
					total = cmp.Or(append(listTotal.FindStringSubmatch(list), "", "")[1], "0")
				}
				if total != number {
					t.Errorf("%s: %s is %s on the overview, and %s lists %s", who, label, number, address, total)
				}
			}
			for _, want := range []string{"/devices?status", "/devices?seenBefore", "/devices?policyBehind", "/devices?patchBefore",
				"/devices?compliant", "/devices?lost", "/devices?policy", "/devices?patch", "/commands"} {
				if !seen[want] && (policies == nil || !strings.Contains(want, "lost")) {
					t.Errorf("%s: no number of %s…; there are %v", who, want, seen)
				}
			}
		}
	})
}

// The chart reads all commands of 30 days, so the fetch of the other tiles does not have it: it is a part of its own.
func TestOverview_ChartIsAPartOfItsOwn(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.device(t, "d1", "S1", "Phone", o.Policy)
	admin := o.person(t, account.Admin)
	for _, c := range []struct {
		path         string
		headers      []string
		tiles, chart bool
	}{
		{"/", nil, true, true},
		{"/", []string{"HX-Request-Type", "partial"}, true, false},
		{"/?part=chart", []string{"HX-Request-Type", "partial"}, false, true},
		{"/?part=chart", nil, true, true}, // the link that tries again
	} {
		page := o.get(t, admin, c.path, 200, c.headers...)
		tiles, chart := strings.Contains(page, "Devices by policy"), strings.Contains(page, "Commands in the last 30 days")
		if tiles != c.tiles || chart != c.chart {
			t.Errorf("%s %v has tiles: %v, a chart: %v; want %v, %v", c.path, c.headers, tiles, chart, c.tiles, c.chart)
		}
	}
}

// mixedFleet is of every sort that the overview counts, in numbers that differ.
func (o *office) mixedFleet(t *testing.T) {
	t.Helper()
	for n := range 40 {
		at, p := o.Now(), o.Policy
		if n%3 == 0 {
			p = o.other
		}
		if n%4 == 1 {
			at = at.Add(-time.Duration(20+n) * time.Hour)
		}
		report := enrollment.Observation{CompanyID: o.Company.ID, Device: fmt.Sprint("enterprises/LC/devices/m", n),
			Management: asset.Platform,
			Ownership:  asset.CompanyOwned, Mode: asset.FullyManaged, SerialNumber: fmt.Sprint("M", n), Enrolling: true,
			EnrolledAt: at, ReportedAt: at,
			ObservedAt: at, PolicyID: p.ID, AppliedPolicy: p.ID, AppliedVersion: n % 2, Specifications: map[string]string{},
			StatusReport: json.RawMessage(fmt.Sprintf(`{"batteryLevel":50,"policyCompliant":%v}`, n%5 != 0))}
		if n%7 > 0 {
			report.Specifications["securityPatchLevel"] = o.Now().AddDate(0, -(n % 11), 0).Format(time.DateOnly)
		}
		if n%8 == 2 {
			report.LostMode = new(true)
		}
		change, err := o.DB().Observe(t.Context(), report)
		if err != nil {
			t.Fatal(err)
		}
		a, err := o.DB().Asset(t.Context(), o.Company.ID, change.AssetID)
		if err != nil {
			t.Fatal(err)
		}
		if n%6 == 0 {
			err = o.DB().MarkDeleted(t.Context(), a.ID, a.Device.Epoch, o.Now())
		} else if n%3 != 2 {
			_, _, err = o.DB().Begin(t.Context(), command.Command{ID: resource.NewID(), CompanyID: o.Company.ID, AssetID: a.ID,
				Epoch: a.Device.Epoch, Type: command.Lock,
				State: command.Prepared, CreatedAt: o.Now().Add(-time.Duration(n) * 10 * time.Minute),
				Actor: access.Actor{Kind: access.User, ID: "u", Name: "Ada"}}, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	file := "identification,serialNumber\nNever enrolled,N1\nNeither,N2\n"
	admin := o.person(t, account.Admin)
	o.imports(t, admin, file, "import", "plan", o.imports(t, admin, file, "preview").Field(t, "plan"))
}
