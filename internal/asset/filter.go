package asset

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/validate"
)

// FilterArgs are the filters that list and count share (contract 4.1, the contract). All
// that are given must match.
type FilterArgs struct {
	Status           string   `query:"status" rule:"enum=ACTIVE|INACTIVE|SYNCHRONIZING|PENDING|DELETED" doc:"Only assets of this status. INACTIVE: devices that have been silent for long."`
	Policy           string   `query:"policy" rule:"minchars=1" doc:"Only assets whose device has this policy assigned: the policy's pathName. A policy that does not exist finds nothing."`
	Search           *string  `query:"search" rule:"maxchars=200" doc:"Words. Each must be the beginning of a word in the asset's name, serial number, IMEI, model, tags or assigned user; letters' case does not matter."`
	Tag              []string `query:"tag" rule:"maxitems=10 minchars=1 maxchars=64" doc:"Only assets with this tag, to the letter. May be repeated: all must match."`
	SeenBefore       string   `query:"seenBefore" rule:"time" doc:"Only devices last seen before this time (RFC 3339)." example:"2026-10-01T00:00:00Z"`
	SeenAfter        string   `query:"seenAfter" rule:"time" doc:"Only devices last seen after this time (RFC 3339)." example:"2026-10-01T00:00:00Z"`
	PolicyBehind     *bool    `query:"policyBehind" doc:"true: only devices that applied an older version of their policy than the current one; false: only devices that are up to date."`
	PatchBefore      string   `query:"patchBefore" rule:"day" doc:"Only devices whose security patch level is older than this day (YYYY-MM-DD)." example:"2026-10-01"`
	BatteryBelow     *int     `query:"batteryBelow" rule:"min=1 max=100" doc:"Only devices that reported a battery level below this, in percent."`
	Compliant        *bool    `query:"compliant" doc:"false: only devices that do not follow their policy, as their statusReport.policyCompliant says; true: only those that do."`
	Lost             *bool    `query:"lost" doc:"Whether the device is in lost mode."`
	ReceivesMessages *bool    `query:"receivesMessages" doc:"Whether the device can be sent messages."`
	App              string   `query:"app" rule:"minchars=1 maxchars=255" doc:"Only devices that have this app installed, by package, as their statusReport.applications says." example:"com.example.app"`
	AppBelow         *int64   `query:"appBelow" rule:"min=0 max=9000000000000000000" doc:"With app: only where its version code is lower than this."`
	Archived         *bool    `query:"archived" doc:"true: archived assets alone, which are in no other list."`
}

// Rules implements operation.Ruler.
func (a *FilterArgs) Rules(r *operation.Rules) {
	r.Must("search", "must have a word: letters or digits", a.Search == nil || len(Words(*a.Search)) > 0)
	r.Must("appBelow", "needs app", a.AppBelow == nil || a.App != "")
}

// Words are the runs of letters and digits in a text, as the search compares them.
func Words(text string) []string {
	folded := norm.NFKC.String(cases.Fold().String(norm.NFKC.String(strings.ToValidUTF8(text, "\uFFFD"))))
	return strings.FieldsFunc(folded, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// Filter returns the store's filter for a principal; false if nothing can match, because
// the policy cannot be one of the company's.
func (a FilterArgs) Filter(p access.Principal, companions bool) (Filter, bool) {
	f := Filter{CompanyID: p.CompanyID, Status: Status(a.Status), Policies: p.Policies, Tags: a.Tag, PolicyBehind: a.PolicyBehind,
		PatchBefore: a.PatchBefore, Compliant: a.Compliant, Lost: a.Lost, Messages: a.ReceivesMessages, Companions: companions,
		App: a.App, AppBelow: a.AppBelow, Archived: a.Archived != nil && *a.Archived}
	f.SeenBefore, f.SeenAfter = seen(a.SeenBefore), seen(a.SeenAfter)
	if a.Search != nil {
		f.Text = *a.Search
	}
	if a.BatteryBelow != nil {
		f.BatteryBelow = *a.BatteryBelow
	}
	if a.Policy == "" {
		return f, true
	}
	id, ok := resource.Short(p.CompanySlug, resource.Policies, a.Policy)
	if f.PolicyID = id; !ok {
		f.PolicyID = a.Policy // no policy has this id
	}
	return f, ok && p.MaySee(id)
}

// seen is the time in a text that holds the rules. An empty text is the zero time, which is
// no condition; no other text is.
func seen(text string) time.Time {
	t, _ := validate.Time(text)
	if text != "" && t.IsZero() {
		t = t.Add(time.Millisecond)
	}
	return t
}

// everything is the filter of all devices, in a query that people write.
const everything = "all"

// ParseFilter reads the filters from a query that a person writes: as in the API, but
// times may be durations before now, such as 48h or 7d, and "all=true" alone asks for
// everything. It fails with fault.InvalidArguments for an empty query and for an unknown
// name.
func ParseFilter(query string, now time.Time) (FilterArgs, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return FilterArgs{}, fault.Invalid("the filter is not a query such as status=ACTIVE&tag=store-12")
	}
	if slices.Equal(values[everything], []string{"true"}) && len(values) == 1 {
		return FilterArgs{}, nil
	}
	if len(values) == 0 {
		return FilterArgs{}, fault.Invalid("the filter is empty: say all=true for all assets")
	}
	return ReadFilter(values, now)
}

// ReadFilter reads the filters from values, of which times may be durations before now.
func ReadFilter(values url.Values, now time.Time) (FilterArgs, error) {
	return operation.Query[FilterArgs](Absolute(values, now).Encode())
}

// Absolute returns the values with times in place of durations before now.
func Absolute(values url.Values, now time.Time) url.Values {
	values = maps.Clone(values)
	for name, layout := range map[string]string{"seenBefore": time.RFC3339, "seenAfter": time.RFC3339, "patchBefore": time.DateOnly} {
		if len(values[name]) != 1 {
			continue
		}
		if ago, err := phrase.ParseDuration(values.Get(name)); err == nil && ago >= 0 {
			values[name] = []string{now.Add(-ago).UTC().Format(layout)}
		}
	}
	return values
}
