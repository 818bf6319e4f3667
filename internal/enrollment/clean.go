package enrollment

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/validate"
)

// What a device may say of itself at most. Texts in characters.
const (
	maxName           = 512
	maxFact           = 128
	maxSpecifications = 200
	maxSpecValue      = 1024
	maxSpecBytes      = 32 << 10 // of all names and values together
	maxReportText     = 1024
	maxReportMembers  = 2000 // of one object or array
	maxReportDepth    = 10
	maxFuture         = time.Minute // a clock may be ahead by
)

// Limits of what is stored of a device's reports.
const (
	MaxReport     = 256 << 10 // bytes of a status report
	MaxMemberName = maxFact   // characters
)

// OwnMember reports whether a member of a status report is written by the
// service alone, whatever an agent reports under its name.
func OwnMember(name string) bool {
	return name == "reportedAt" || name == "policyCompliant" || name == "nonComplianceDetails" || name == "nonCompliantSince"
}

// Clean returns the observation as it can be stored. Device-supplied text is
// not trusted: texts are cut and rid of control characters, what is not what it
// claims to be (a location off the globe, a report that is no JSON object, a
// policy that cannot be one) is left out, and no time lies in the future. It
// fails with fault.InvalidArguments if the observation names no device.
func (o Observation) Clean(now time.Time) (Observation, error) {
	if field := o.nameless(); field != "" {
		return o, fault.Invalid("the observation names no device", fault.Field{Field: field, Message: "cannot be"})
	}
	o.Previous = slices.DeleteFunc(slices.Clone(o.Previous), func(n string) bool { return !isName(n) || n == o.Device })
	o.StableID, o.SerialNumber = validate.Clean(o.StableID, maxFact), validate.Clean(o.SerialNumber, maxFact)
	o.Brand, o.Model = validate.Clean(o.Brand, maxFact), validate.Clean(o.Model, maxFact)
	o.APILevel = max(0, min(o.APILevel, 10_000))
	if !resource.IsID(o.PolicyID) {
		o.PolicyID = ""
	}
	if !resource.IsID(o.AppliedPolicy) {
		o.AppliedPolicy, o.AppliedVersion, o.AppliedPush = "", 0, 0
	}
	o.AppliedVersion, o.AppliedPush = max(0, o.AppliedVersion), max(0, o.AppliedPush)
	for _, t := range []*time.Time{&o.EnrolledAt, &o.ReportedAt, &o.ObservedAt} {
		*t = past(*t, now)
	}
	o.Specifications = cleanSpecifications(o.Specifications)
	o.StatusReport, o.Compliance = cleanReport(o.StatusReport), cleanReport(o.Compliance)
	o.Location = CleanLocation(o.Location, o.ReportedAt, now)
	o.Apps = cleanApps(o.Apps)
	return o, nil
}

// cleanApps are the apps by package, each once, and no more than are kept.
func cleanApps(given []asset.App) []asset.App {
	if given == nil {
		return nil
	}
	kept := make([]asset.App, 0, min(len(given), asset.MaxApps))
	for _, a := range given {
		a.Package, a.Name = validate.Clean(a.Package, maxFact), validate.Clean(a.Name, maxFact)
		a.Version, a.Source = validate.Clean(a.Version, maxFact), validate.Clean(a.Source, maxFact)
		if a.Package != "" {
			kept = append(kept, a)
		}
	}
	slices.SortStableFunc(kept, func(a, b asset.App) int { return cmp.Compare(a.Package, b.Package) })
	kept = slices.CompactFunc(kept, func(a, b asset.App) bool { return a.Package == b.Package })
	return kept[:min(len(kept), asset.MaxApps)]
}

// nameless returns the field that keeps the observation from being applied.
func (o Observation) nameless() string {
	switch {
	case o.CompanyID == "":
		return "companyId"
	case !isName(o.Device):
		return "device"
	case o.Management != asset.Platform && o.Management != asset.Agent:
		return "management"
	case o.Ownership != "" && o.Ownership != asset.CompanyOwned && o.Ownership != asset.PersonallyOwned:
		return "ownership"
	case o.Mode != "" && o.Mode != asset.FullyManaged && o.Mode != asset.WorkProfile:
		return "mode"
	case len(o.MessageID) > maxName || !utf8.ValidString(o.MessageID):
		return "messageId"
	}
	return ""
}

// isName reports whether a channel may call a device so.
func isName(text string) bool {
	return text != "" && len(text) <= maxName && utf8.ValidString(text) &&
		!strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// past returns t, or now if t lies in the future: a clock that is far ahead
// must neither look alive forever nor outrank every later word.
func past(t, now time.Time) time.Time {
	if t.After(now.Add(maxFuture)) {
		return now
	}
	return t
}

func cleanSpecifications(given map[string]string) map[string]string {
	if len(given) == 0 {
		return nil
	}
	kept, size := make(map[string]string, min(len(given), maxSpecifications)), 0
	for _, key := range slices.Sorted(maps.Keys(given)) {
		value := validate.Clean(given[key], maxSpecValue)
		key = validate.Clean(key, maxFact)
		if key == "" || value == "" || len(kept) == maxSpecifications || size+len(key)+len(value) > maxSpecBytes {
			continue
		}
		size += len(key) + len(value)
		kept[key] = value
	}
	return kept
}

// CleanLocation returns the location as it can be stored, of the time reported where
// it names none; nil if it is off the globe.
func CleanLocation(l *asset.Location, reported, now time.Time) *asset.Location {
	if l == nil {
		return nil
	}
	within := func(v, limit float64) bool { return !math.IsNaN(v) && math.Abs(v) <= limit }
	if !within(l.Latitude, 90) || !within(l.Longitude, 180) || !within(l.AccuracyMeters, 1e8) || l.AccuracyMeters < 0 {
		return nil
	}
	kept := *l
	if kept.ReportedAt.IsZero() {
		kept.ReportedAt = reported
	}
	kept.ReportedAt = past(kept.ReportedAt, now).UTC()
	return &kept
}

// cleanReport returns a status report with its texts cleaned and without members that do
// not have the shape of asset.ReportMembers, or nil for what is no JSON object, too large
// or too deep.
func cleanReport(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || len(raw) > MaxReport {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var report map[string]any
	if err := decoder.Decode(&report); err != nil || report == nil {
		return nil
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil
	}
	clean, ok := cleanValue(report, maxReportDepth)
	if !ok {
		return nil
	}
	clean, _ = shaped(clean, reflect.TypeFor[asset.ReportMembers]()) // an object stays one
	text, err := json.Marshal(clean)
	if err != nil || len(text) > MaxReport {
		return nil
	}
	return text
}

// cleanValue cleans a decoded JSON value; false if it is too deep or too wide.
func cleanValue(value any, depth int) (any, bool) {
	if depth == 0 {
		return nil, false
	}
	switch v := value.(type) {
	case string:
		return validate.Clean(v, maxReportText), true
	case []any:
		for i := range v {
			var ok bool
			if v[i], ok = cleanValue(v[i], depth-1); !ok {
				return nil, false
			}
		}
		return v, len(v) <= maxReportMembers
	case map[string]any:
		kept := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			member, ok := cleanValue(v[key], depth-1)
			if !ok {
				return nil, false
			}
			if key = validate.Clean(key, maxFact); key != "" {
				kept[key] = member
			}
		}
		return kept, len(v) <= maxReportMembers
	}
	return value, true
}
