package database_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// A report says since when a device has not followed its policy, and since when each
// setting is not applied: the first of the reports without interruption that say so.
func TestObserve_NonComplianceSince(t *testing.T) {
	withCompany(t, func(f *fixture) {
		o := f.joined("d", f.newPolicy("p").ID)
		start := o.ReportedAt
		report := func(minute int, compliant bool, settings ...string) map[string]any {
			details := []map[string]any{}
			for _, s := range settings {
				details = append(details, map[string]any{"settingName": s, "nonComplianceReason": fmt.Sprint("R", minute)})
			}
			at := start.Add(time.Duration(minute) * time.Minute)
			o := f.observation(o.Device)
			o.ReportedAt, o.ObservedAt = at, at
			o.StatusReport, _ = json.Marshal(map[string]any{"reportedAt": at, "policyCompliant": compliant, "nonComplianceDetails": details,
				"batteryLevel": minute})
			id := f.observe(o).AssetID
			var got map[string]any
			if err := json.Unmarshal(f.asset(id).Device.StatusReport, &got); err != nil {
				f.Fatal(err)
			}
			return got
		}
		at := func(minute int) any { return start.Add(time.Duration(minute) * time.Minute).Format(time.RFC3339Nano) }
		f.observe(o)
		for i, step := range []struct {
			compliant bool
			settings  []string
			since     any
			each      map[string]int
		}{
			{true, nil, nil, nil},
			{false, []string{"a"}, at(2), map[string]int{"a": 2}},
			{false, []string{"b", "a"}, at(2), map[string]int{"a": 2, "b": 3}},
			{true, []string{"b"}, nil, map[string]int{"b": 3}},
			{false, []string{"a", "b"}, at(5), map[string]int{"a": 5, "b": 3}},
		} {
			got := report(i+1, step.compliant, step.settings...)
			equal(f, "nonCompliantSince", got["nonCompliantSince"], step.since)
			details, _ := got["nonComplianceDetails"].([]any)
			equal(f, "details", len(details), len(step.each))
			for _, d := range details {
				d := d.(map[string]any)
				equal(f, "since of "+d["settingName"].(string), d["since"], at(step.each[d["settingName"].(string)]))
				equal(f, "reason", d["nonComplianceReason"], any(fmt.Sprint("R", i+1)))
			}
		}
	})
}
