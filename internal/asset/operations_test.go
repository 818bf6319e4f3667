package asset_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/dbtest"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
)

var start = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// inventory is a company's inventory in a real database.
type inventory struct {
	testing.TB
	db       *database.DB
	company  company.Company
	policies []policy.Policy
	registry operation.Registry
	kernel   *operation.Kernel
	p        access.Principal
}

func newInventory(t testing.TB) *inventory {
	t.Helper()
	now := func() time.Time { return start }
	db, err := database.Open(t.Context(), database.Options{URL: dbtest.SQLite(t, filepath.Join(t.TempDir(), "muster.db")), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	in := &inventory{TB: t, db: db, kernel: operation.NewKernel(operation.Config{Budgets: operation.Budgets{Uncounted: true}, Now: now})}
	in.company, err = company.New("acme", "Acme", access.Settings{}, start)
	in.ok(err)
	in.ok(db.CreateCompany(in.ctx(), in.company))
	for i, display := range []string{"Office", "Field", "Empty"} {
		at := start.Add(time.Duration(-i) * time.Hour)
		p := policy.Policy{ID: resource.NewID(), CompanyID: in.company.ID, CompanySlug: "acme", Name: display, Type: policy.Platform,
			Version: 1, Document: json.RawMessage("{}"), CreatedAt: at, UpdatedAt: at}
		in.ok(db.CreatePolicy(in.ctx(), p, policy.Author{Kind: "SYSTEM"}, ""))
		in.policies = append(in.policies, p)
	}
	asset.Define(&in.registry, asset.Reader{Store: db, Editor: db})
	policy.DefineList(&in.registry, db)
	in.p = access.Principal{Kind: access.APIKey, ID: "k", CompanyID: in.company.ID, CompanySlug: "acme",
		Permissions: access.DevicesRead | access.PoliciesRead}
	return in
}

func (in *inventory) ctx() context.Context { return context.WithoutCancel(in.Context()) }

func (in *inventory) ok(err error) {
	in.Helper()
	if err != nil {
		in.Fatal(err)
	}
}

// enroll enrolls a device under a policy, n hours before now, and returns its id.
func (in *inventory) enroll(device string, p policy.Policy, hours int) string {
	in.Helper()
	at := start.Add(time.Duration(-hours) * time.Hour)
	change, err := in.db.Observe(in.ctx(), enrollment.Observation{CompanyID: in.company.ID, Device: device, Management: asset.Platform,
		Ownership: asset.CompanyOwned, Mode: asset.FullyManaged, SerialNumber: "SN-" + device, Brand: "acme", Model: "Phone",
		Enrolling: true, EnrolledAt: at, ReportedAt: at, ObservedAt: at, PolicyID: p.ID, AppliedPolicy: p.ID, AppliedVersion: 1,
		Specifications: map[string]string{"osVersion": "14"},
		StatusReport:   json.RawMessage(`{"reportedAt":"2026-11-21T08:00:00Z","batteryLevel":77}`),
		Location:       &asset.Location{Latitude: 52.5, Longitude: 13.4, AccuracyMeters: 10, ReportedAt: at}})
	in.ok(err)
	return change.AssetID
}

func (in *inventory) imported(n int) {
	in.Helper()
	var all []asset.Asset
	for i := range n {
		all = append(all, asset.Asset{ID: fmt.Sprintf("imported%02d", i), CompanyID: in.company.ID, CompanySlug: "acme",
			Identification: fmt.Sprintf("Spare %02d", i),
			Status:         asset.Pending, CreatedAt: start.Add(-time.Hour),
			CustomData: map[string]string{"department": "IT", "location": "Zürich"}, Tags: []string{"spare"}})
	}
	in.ok(in.db.ImportAssets(in.ctx(), all))
}

// read runs a read with a query string and decodes its answer.
func (in *inventory) read(p access.Principal, tool, query string, path ...string) (map[string]any, *fault.Error) {
	in.Helper()
	out := in.kernel.Run(in.ctx(), in.registry.Find(tool), p, operation.Meta{}, &operation.Parts{Path: path, Query: query})
	if out.Fault != nil {
		return nil, out.Fault
	}
	text, err := json.Marshal(out.Result)
	in.ok(err)
	var answer map[string]any
	in.ok(json.Unmarshal(text, &answer))
	return answer, nil
}

// members lists one member of every entry of a page.
func members(page map[string]any, member string) string {
	var all []string
	for _, entry := range page["content"].([]any) {
		all = append(all, fmt.Sprint(entry.(map[string]any)[member]))
	}
	return strings.Join(all, " ")
}

// TestGet_Object is the public asset object, member for member.
func TestGet_Object(t *testing.T) {
	t.Parallel()
	in := newInventory(t)
	id := in.enroll("d1", in.policies[0], 1)
	want := `{"pathName":"enterprises/acme/assets/` + id +
		`","identification":"Phone N-d1","status":"ACTIVE","syncedAt":"2026-11-21T08:00:00.000Z",` +
		`"customData":{"tags":[]},"specifications":{"brand":"acme","model":"Phone","osVersion":"14","serialNumber":"SN-d1"},` +
		`"managedDevice":{"managementType":"PLATFORM","ownership":"COMPANY_OWNED","policyId":"enterprises/acme/policies/` +
		in.policies[0].ID + `",` +
		`"policyName":"Office","policyVersionApplied":1,"enrolledAt":"2026-11-21T08:00:00.000Z","lastSeenAt":"2026-11-21T08:00:00.000Z","lostMode":false,"pushReachable":false,` +
		`"statusReport":{"reportedAt":"2026-11-21T08:00:00Z","batteryLevel":77},` +
		`"location":{"latitude":52.5,"longitude":13.4,"accuracyMeters":10,"reportedAt":"2026-11-21T08:00:00.000Z"}}}`
	for _, ref := range []string{id, "enterprises/acme/assets/" + id} {
		out := in.kernel.Run(in.ctx(), in.registry.Find("get_asset"), in.p, operation.Meta{}, &operation.Parts{Path: []string{ref}})
		text, err := json.Marshal(out.Result)
		if err != nil || string(text) != want {
			t.Errorf("got  %s\nwant %s\n%v %v", text, want, out.Fault, err)
		}
	}
}

func TestGet_AssetThatIsNotEnrolled(t *testing.T) {
	t.Parallel()
	in := newInventory(t)
	in.imported(1)
	got, failure := in.read(in.p, "get_asset", "", "imported00")
	if failure != nil {
		t.Fatal(failure)
	}
	text, err := json.Marshal(got)
	want := `{"customData":{"department":"IT","location":"Zürich","tags":["spare"]},"identification":"Spare 00","managedDevice":null,` +
		`"pathName":"enterprises/acme/assets/imported00","specifications":{},"status":"PENDING","syncedAt":null}`
	if err != nil || string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

// TestGet_UnknownFactsAreNull shows a device of which nothing is known yet.
func TestGet_UnknownFactsAreNull(t *testing.T) {
	t.Parallel()
	a := asset.Asset{ID: "a", CompanySlug: "acme", Status: asset.Synchronizing, Device: &asset.Device{Management: asset.Agent},
		SyncedAt: start.In(time.FixedZone("X", 3600))}
	text, err := json.Marshal(a.Public())
	want :=
		`{"pathName":"enterprises/acme/assets/a","identification":"","status":"SYNCHRONIZING","syncedAt":"2026-11-21T09:00:00.000Z","customData":{"tags":[]},"specifications":{},` +
			`"managedDevice":{"managementType":"AGENT","ownership":null,"policyId":null,"policyName":null,"policyVersionApplied":null,"enrolledAt":null,"lastSeenAt":null,` +
			`"lostMode":false,"pushReachable":false,"statusReport":null,"location":null}}`
	if err != nil || string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

func TestUpdate_TagsIsReserved(t *testing.T) {
	t.Parallel()
	a := asset.Asset{CustomData: map[string]string{"tags": "mine"}, Tags: []string{"a"}}
	if got := fmt.Sprint(a.Public().CustomData["tags"]); got != "[a]" {
		t.Errorf("tags are %s", got)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	in := newInventory(t)
	for i, p := range []int{0, 0, 1} {
		in.enroll(fmt.Sprintf("d%d", i), in.policies[p], i+1)
	}
	in.imported(2)
	office, empty := in.policies[0], in.policies[2]
	for query, want := range map[string]string{
		"":                            "Phone N-d0 Phone N-d1 Phone N-d2 Spare 01 Spare 00",
		"sort=syncedAt,asc":           "Spare 00 Spare 01 Phone N-d2 Phone N-d1 Phone N-d0",
		"sort=identification,desc":    "Spare 01 Spare 00 Phone N-d2 Phone N-d1 Phone N-d0",
		"sort=identification,asc":     "Phone N-d0 Phone N-d1 Phone N-d2 Spare 00 Spare 01",
		"status=PENDING":              "Spare 01 Spare 00",
		"status=DELETED":              "",
		"policy=" + office.ID:         "Phone N-d0 Phone N-d1",
		"policy=" + empty.ID:          "",
		"policy=nothing":              "",
		"policy=not%20an%20id":        "",
		"size=2&page=1":               "Phone N-d2 Spare 01",
		"size=2&page=9":               "",
		"status=ACTIVE&size=1":        "Phone N-d0",
		"policy=" + office.PathName(): "Phone N-d0 Phone N-d1",
		"policy=enterprises/other/policies/" + office.ID:                           "",
		"policy=enterprises%2Facme%2Fpolicies%2F" + office.ID + "&status=INACTIVE": "",
	} {
		t.Run(query, func(t *testing.T) {
			page, failure := in.read(in.p, "list_assets", query)
			if failure != nil {
				t.Errorf("%s: %v", query, failure)
				return
			}
			if got := members(page, "identification"); got != want {
				t.Errorf("%s: %q, want %q", query, got, want)
			}
			if counted, failure := in.read(in.p, "count_assets", filters(query)); failure != nil ||
				counted["count"] != page["totalElements"] || len(counted) != 1 {
				t.Errorf("%s: counted %v, %v; the page says %v", query, counted, failure, page["totalElements"])
			}
		})
	}
}

// filters is the part of a query that count takes as well.
func filters(query string) string {
	var kept []string
	for part := range strings.SplitSeq(query, "&") {
		if strings.HasPrefix(part, "status=") || strings.HasPrefix(part, "policy=") {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, "&")
}

func TestList_Refuses(t *testing.T) {
	t.Parallel()
	in := newInventory(t)
	for query, field := range map[string]string{
		"status=GONE": "status", "status=active": "status", "status=": "status",
		"sort=name,asc": "sort", "sort=syncedAt": "sort", "sort=syncedAt,down": "sort", "sort=syncedAt,DESC": "sort", "sort=": "sort",
		"sort=syncedAt,desc,x": "sort",
		"page=-1":              "page", "page=x": "page", "size=0": "size", "size=101": "size", "size=1.5": "size", "shade=red": "shade",
	} {
		t.Run(query, func(t *testing.T) {
			_, failure := in.read(in.p, "list_assets", query)
			if failure == nil || failure.Code != fault.InvalidArguments {
				t.Fatalf("%s: %+v, want invalid arguments", query, failure)
			}
			if len(failure.Fields) != 1 || failure.Fields[0].Field != field {
				t.Errorf("%s: %+v, want %s", query, failure, field)
			}
		})
	}
	if _, failure := in.read(in.p, "count_assets", "page=0"); failure == nil || failure.Code != fault.InvalidArguments {
		t.Errorf("count takes a page: %v", failure)
	}
}

func TestGet_ForeignAssetIsNotFound(t *testing.T) {
	t.Parallel()
	in := newInventory(t)
	id := in.enroll("d1", in.policies[0], 1)
	other := in.p
	other.CompanyID, other.CompanySlug = "other", "other"
	for _, c := range []struct {
		p   access.Principal
		ref string
	}{
		{in.p, "nothing"}, {in.p, ""}, {in.p, "enterprises/other/assets/" + id}, {in.p, "enterprises/acme/policies/" + id},
		{in.p, "../" + id},
		{other, id}, {other, "enterprises/acme/assets/" + id}, {other, "enterprises/other/assets/" + id},
	} {
		t.Run(c.ref, func(t *testing.T) {
			if _, failure := in.read(c.p, "get_asset", "", c.ref); failure == nil || failure.Code != fault.NotFound {
				t.Errorf("%s for %s: %v", c.ref, c.p.CompanySlug, failure)
			}
		})
	}
}

// TestList_LimitsOfUsers: who may see some policies sees their devices alone.
func TestList_LimitsOfUsers(t *testing.T) {
	t.Parallel()
	in := newInventory(t)
	visible, hidden := in.enroll("d1", in.policies[0], 1), in.enroll("d2", in.policies[1], 1)
	in.imported(1)
	p := in.p
	p.Policies = []string{in.policies[0].ID}
	if page, failure := in.read(p, "list_assets", ""); failure != nil || members(page, "identification") != "Phone N-d1" ||
		page["totalElements"] != 1.0 {
		t.Errorf("%v, %v", page, failure)
	}
	for query, want := range map[string]float64{"": 1, "policy=" + in.policies[0].ID: 1, "policy=" + in.policies[1].ID: 0,
		"status=PENDING": 0} {
		t.Run(query, func(t *testing.T) {
			if got, failure := in.read(p, "count_assets", query); failure != nil || got["count"] != want {
				t.Errorf("%s: %v, %v", query, got, failure)
			}
		})
	}
	for ref, want := range map[string]bool{visible: true, hidden: false, "imported00": false} {
		t.Run(ref, func(t *testing.T) {
			if _, failure := in.read(p, "get_asset", "", ref); (failure == nil) != want {
				t.Errorf("%s: %v", ref, failure)
			}
		})
	}
	if page, failure := in.read(p, "list_policies", ""); failure != nil || members(page, "displayName") != "Office" {
		t.Errorf("%v, %v", page, failure)
	}
	p.Policies = []string{}
	for _, tool := range []string{"list_assets", "list_policies"} {
		if page, failure := in.read(p, tool, ""); failure != nil || page["totalElements"] != 0.0 || members(page, "pathName") != "" {
			t.Errorf("%s without any policy: %v, %v", tool, page, failure)
		}
	}
}

func TestPolicies_List(t *testing.T) {
	t.Parallel()
	in := newInventory(t)
	in.enroll("d1", in.policies[0], 1)
	for query, want := range map[string]string{
		"": "Empty Field Office", "sort=displayName,desc": "Office Field Empty", "sort=updatedAt,asc": "Empty Field Office",
		"sort=version,asc&size=1&page=7": "",
		"sort=updatedAt,desc&size=1":     "Office", "size=2&page=1": "Office", "page=5": "",
	} {
		t.Run(query, func(t *testing.T) {
			page, failure := in.read(in.p, "list_policies", query)
			if failure != nil || members(page, "displayName") != want || page["totalElements"] != 3.0 {
				t.Errorf("%s: %v, %v, want %s", query, page, failure, want)
			}
		})
	}
	page, _ := in.read(in.p, "list_policies", "sort=updatedAt,desc")
	text, err := json.Marshal(page["content"].([]any)[0])
	want := `{"deviceCount":1,"displayName":"Office","editable":true,"pathName":"enterprises/acme/policies/` + in.policies[0].ID +
		`","type":"PLATFORM",` +
		`"updatedAt":"2026-11-21T09:00:00.000Z","version":1,"vrOnly":false}`
	if err != nil || string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	for _, query := range []string{"sort=deviceCount,asc", "sort=displayName", "size=0", "status=ACTIVE"} {
		if _, failure := in.read(in.p, "list_policies", query); failure == nil || failure.Code != fault.InvalidArguments {
			t.Errorf("%s: %v", query, failure)
		}
	}
}
