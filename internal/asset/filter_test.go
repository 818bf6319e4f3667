package asset_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
)

// TestFilters_RefuseWhatIsMalformed: a filter with a slip does not quietly select
// everything, in a list as in a count.
func TestFilters_RefuseWhatIsMalformed(t *testing.T) {
	t.Parallel()
	in := newInventory(t)
	for _, query := range []string{"search=", "search=%25%25", "tag=", "seenBefore=yesterday", "seenBefore=48h", "seenAfter=",
		"policyBehind=yes", "policyBehind=",
		"patchBefore=2026-13-01", "patchBefore=2026-10", "batteryBelow=0", "batteryBelow=101", "batteryBelow=1.5", "compliant=0",
		"lost=TRUE", "receivesMessages=1",
		"app=", "appBelow=7", "app=com.a&appBelow=-1", "app=com.a&appBelow=x", "archived=maybe", "lost=true&lost=false", "Search=a",
		"view=SHORT", "sort=lastSeenAt"} {
		for _, tool := range []string{"list_assets", "count_assets"} {
			if _, refused := in.read(in.p, tool, query); refused == nil || refused.Code != fault.InvalidArguments {
				t.Errorf("%s?%s: %v", tool, query, refused)
			}
		}
	}
}

// TestFilters_BasicView shows the main facts alone, of enrolled assets and of others.
func TestFilters_BasicView(t *testing.T) {
	t.Parallel()
	in := newInventory(t)
	id := in.enroll("d1", in.policies[0], 1)
	in.imported(1)
	page, refused := in.read(in.p, "list_assets", "view=BASIC&sort=lastSeenAt,asc")
	if refused != nil {
		t.Fatal(refused)
	}
	want := "[map[identification:Phone N-d1 lastSeenAt:2026-11-21T08:00:00.000Z managementType:PLATFORM model:Phone " +
		"ownership:COMPANY_OWNED pathName:enterprises/acme/assets/" + id +
		" policyId:enterprises/acme/policies/" + in.policies[0].ID + " policyName:Office serialNumber:SN-d1 status:ACTIVE tags:[] " +
		"user:<nil>] map[identification:Spare 00 lastSeenAt:<nil> managementType:<nil> model:<nil> ownership:<nil> " +
		"pathName:enterprises/acme/assets/imported00 policyId:<nil> policyName:<nil> serialNumber:<nil> status:PENDING tags:[spare] " +
		"user:<nil>]]"
	if got := fmt.Sprint(page["content"]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestParseFilter reads what a person writes.
func TestParseFilter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.November, 21, 9, 0, 0, 0, time.UTC)
	for query, want := range map[string]string{
		"all=true":                        "",
		"seenBefore=48h":                  "2026-11-19T09:00:00Z",
		"seenBefore=2d":                   "2026-11-19T09:00:00Z",
		"seenBefore=2026-01-01T00:00:00Z": "2026-01-01T00:00:00Z",
	} {
		if got, err := asset.ParseFilter(query, now); err != nil || got.SeenBefore != want {
			t.Errorf("%s: %q, %v", query, got.SeenBefore, err)
		}
	}
	if got, err := asset.ParseFilter("tag=a%3Bb&tag=c&lost=true", now); err != nil || fmt.Sprint(got.Tag, *got.Lost) != "[a;b c] true" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, query := range []string{"", "all=false", "all=true&lost=true", "unknown=1", "seenBefore=soon", "%zz", "a;b",
		"all=true&all=true"} {
		if _, err := asset.ParseFilter(query, now); fault.CodeOf(err) != fault.InvalidArguments {
			t.Errorf("%q: %v", query, err)
		}
	}
}
