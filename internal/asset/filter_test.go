package asset_test

import (
	"fmt"
	"net/url"
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
	for _, query := range []string{"policy=", "search=", "search=%25%25", "tag=", "seenBefore=yesterday", "seenBefore=48h", "seenAfter=",
		"policyBehind=yes", "policyBehind=",
		"patchBefore=2026-13-01", "patchBefore=2026-10", "batteryBelow=0", "batteryBelow=101", "batteryBelow=1.5", "batteryBelow=050",
		"batteryBelow=%2B5", "seenBefore=2026-11-28T0:00:00Z", "seenBefore=2026-11-28T00:00:00,5Z", "compliant=0",
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

// TestFilters_OfNothing: what no device can match selects none.
func TestFilters_OfNothing(t *testing.T) {
	t.Parallel()
	in := newInventory(t)
	in.enroll("d1", in.policies[0], 1)
	for query, want := range map[string]float64{"policy=enterprises/acme/policies/": 0, "policy=a%00b": 0,
		"seenBefore=0001-01-01T00:00:00Z": 0, "seenAfter=0001-01-01T00:00:00Z": 1,
		"seenAfter=2001-01-01t00:00:00z": 1, "seenBefore=0001-01-01T00:00:01Z": 0} {
		found, refused := in.read(in.p, "count_assets", query)
		if refused != nil || found["count"] != want {
			t.Errorf("%s: %v, %v, want %v", query, found, refused, want)
		}
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		args, err := asset.ReadFilter(values, start)
		if err != nil {
			t.Fatal(err)
		}
		filter, _ := args.Filter(in.p, true)
		if n, err := in.db.CountAssets(t.Context(), filter); err != nil || float64(n) != want {
			t.Errorf("%s: the store counts %d, %v, want %v", query, n, err, want)
		}
	}
	if _, refused := in.read(in.p, "count_assets", "search=%E2%91%A0"); refused != nil { // a circled one, which is the word 1
		t.Error(refused)
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
		"all=true&all=true", "policy=", "policy", "seenBefore=-48h", "seenBefore=48h&seenBefore=1h"} {
		if _, err := asset.ParseFilter(query, now); fault.CodeOf(err) != fault.InvalidArguments {
			t.Errorf("%q: %v", query, err)
		}
	}
}
