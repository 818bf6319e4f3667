package database

import (
	"encoding/json"
	"maps"

	"github.com/musterhq/muster/internal/enrollment"
)

// complianceMembers are the members of a status report that say how far a device follows
// its policy. They are written by the service alone.
type complianceMembers struct {
	ReportedAt json.RawMessage   `json:"reportedAt"`
	Compliant  *bool             `json:"policyCompliant"`
	Since      json.RawMessage   `json:"nonCompliantSince,omitempty"`
	Details    []json.RawMessage `json:"nonComplianceDetails,omitempty"`
}

// shortcoming is what tells one setting that a device has not applied from another.
type shortcoming struct{ Setting, Field, Package string }

// detail is an entry of nonComplianceDetails with all its members.
type detail map[string]json.RawMessage

func (d detail) about() (s shortcoming) {
	for name, to := range map[string]*string{"settingName": &s.Setting, "fieldPath": &s.Field, "packageName": &s.Package} {
		_ = json.Unmarshal(d[name], to) // absent: empty
	}
	return s
}

// withSince returns a status report with the time since when the device has not followed
// its policy, and since when each setting has not been applied: the time of this report, or
// what the report before it says. A report that cannot be read stays as it is.
func withSince(before, now string) string {
	var was, is complianceMembers
	_ = json.Unmarshal([]byte(before), &was) // the first report has none before it
	if json.Unmarshal([]byte(now), &is) != nil || is.ReportedAt == nil {
		return now
	}
	over := map[string]any{}
	if is.Compliant != nil && !*is.Compliant {
		over["nonCompliantSince"] = is.ReportedAt
		if was.Compliant != nil && !*was.Compliant && was.Since != nil {
			over["nonCompliantSince"] = was.Since
		}
	}
	if len(is.Details) > 0 {
		over["nonComplianceDetails"] = datedDetails(was.Details, is)
	}
	if len(over) == 0 && is.Since == nil {
		return now
	}
	return mergedReport(now, over)
}

// datedDetails are the details of a report with the time since when each is reported.
func datedDetails(before []json.RawMessage, is complianceMembers) []detail {
	since := map[shortcoming]json.RawMessage{}
	for _, text := range before {
		var d detail
		if json.Unmarshal(text, &d) == nil && d["since"] != nil {
			since[d.about()] = d["since"]
		}
	}
	dated := make([]detail, 0, len(is.Details))
	for _, text := range is.Details {
		var d detail
		if json.Unmarshal(text, &d) != nil || d == nil {
			continue
		}
		d["since"] = is.ReportedAt
		if earlier, has := since[d.about()]; has {
			d["since"] = earlier
		}
		dated = append(dated, d)
	}
	return dated
}

// mergedReport is a report with other members that say since when. It stays as it is if
// that is too long.
func mergedReport(report string, over map[string]any) string {
	members := map[string]any{}
	var given map[string]json.RawMessage
	if json.Unmarshal([]byte(report), &given) != nil {
		return report
	}
	for name, value := range given {
		members[name] = value
	}
	delete(members, "nonCompliantSince")
	maps.Copy(members, over)
	text, err := json.Marshal(members)
	if err != nil || len(text) > enrollment.MaxReport {
		return report
	}
	return string(text)
}
