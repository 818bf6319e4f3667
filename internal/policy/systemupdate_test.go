package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/policy"
)

// What Android would refuse is refused before it is saved; what it takes has one text.
func TestParseSystemUpdate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"type":"AUTOMATIC"}`: `{"type":"AUTOMATIC"}`,
		` {"endMinutes":0, "startMinutes":1439,"type":"WINDOWED"} `: `{"type":"WINDOWED","startMinutes":1439,"endMinutes":0}`,
		`{"type":"POSTPONE","freezePeriods":[{"startDate":{"month":11,"day":20},"endDate":{"month":2,"day":17}},{"startDate":{"month":4,"day":19},"endDate":{"month":4,"day":19}}]}`: `{"type":"POSTPONE","freezePeriods":[{"startDate":{"month":4,"day":19},"endDate":{"month":4,"day":19}},{"startDate":{"month":11,"day":20},"endDate":{"month":2,"day":17}}]}`,
		`{"type":"AUTOMATIC","freezePeriods":[{"startDate":{"month":2,"day":29},"endDate":{"month":3,"day":1}}]}`:                                                                    `{"type":"AUTOMATIC","freezePeriods":[{"startDate":{"month":2,"day":28},"endDate":{"month":3,"day":1}}]}`,
		`{}`: "type must be", `[]`: "object", `{"type":"automatic"}`: "type must be",
		`{"type":"SYSTEM_UPDATE_TYPE_UNSPECIFIED"}`:                                "type must be",
		`{"type":"AUTOMATIC","type":"POSTPONE"}`:                                   "duplicate",
		`{"type":"AUTOMATIC","other":1}`:                                           "unknown field",
		`{"type":"AUTOMATIC","startMinutes":0,"endMinutes":1}`:                     "only WINDOWED",
		`{"type":"WINDOWED","startMinutes":0}`:                                     "needs startMinutes",
		`{"type":"WINDOWED","startMinutes":-1,"endMinutes":1}`:                     "needs startMinutes",
		`{"type":"WINDOWED","startMinutes":0,"endMinutes":1440}`:                   "needs startMinutes",
		`{"type":"WINDOWED","startMinutes":0.5,"endMinutes":1}`:                    "cannot unmarshal",
		freeze("1-1", "3-31"):                                                      "",
		freeze("1-1", "4-1"):                                                       "91 days",
		freeze("12-1", "2-28"):                                                     "",
		freeze("12-1", "3-1"):                                                      "91 days",
		freeze("2-30", "3-1"):                                                      "dates",
		freeze("13-1", "3-1"):                                                      "dates",
		freeze("0-0", "3-1"):                                                       "dates",
		freeze("1-1", "1-31", "4-2", "4-3"):                                        "",
		freeze("1-1", "1-31", "4-1", "4-3"):                                        "at least 60",
		freeze("1-1", "1-2", "11-2", "11-2"):                                       "at least 60",
		freeze("1-1", "1-2", "11-1", "11-1"):                                       "",
		freeze("1-1", "1-31", "1-15", "2-15"):                                      "at least 60",
		freeze("1-1", "1-2", "1-1", "1-2"):                                         "at least 60",
		`{"type":"AUTOMATIC","freezePeriods":"` + strings.Repeat("x", 5000) + `"}`: "at most 4096",
	} {
		u, err := policy.ParseSystemUpdate([]byte(text))
		refused := want != "" && !strings.HasPrefix(want, "{")
		if want == "dates" {
			want = "a month and a day"
		}
		switch {
		case refused && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%.200s: %v, want %q", text, err, want)
		case !refused && (err != nil || want != "" && u.Value() != want):
			t.Errorf("%s: %q, %v", text, u.Value(), err)
		}
		again, err2 := policy.ParseSystemUpdate([]byte(u.Value()))
		if err == nil && (err2 != nil || again.Value() != u.Value()) {
			t.Errorf("%s reads back as %q, %v", u.Value(), again.Value(), err2)
		}
	}
}

// freeze is a systemUpdate with periods, from pairs of days.
func freeze(days ...string) string {
	type day struct {
		Month json.Number `json:"month"`
		Day   json.Number `json:"day"`
	}
	var periods []map[string]day
	for i := 0; i < len(days); i += 2 {
		period := map[string]day{}
		for j, name := range []string{"startDate", "endDate"} {
			month, of, _ := strings.Cut(days[i+j], "-")
			period[name] = day{json.Number(month), json.Number(of)}
		}
		periods = append(periods, period)
	}
	text, _ := json.Marshal(map[string]any{"type": "AUTOMATIC", "freezePeriods": periods})
	return string(text)
}

// An AGENT document has it beside its settings; one without members removes it, and a
// PLATFORM policy refuses it.
func TestSave_SystemUpdate(t *testing.T) {
	t.Parallel()
	document := json.RawMessage(`{"settings":{"CAMERA":"BLOCK"},"systemUpdate":{"type":"POSTPONE"}}`)
	if err := policy.CheckDocument(nil, policy.Agent, document); err != nil {
		t.Error(err)
	}
	if u, err := policy.SystemUpdateOf(document); err != nil || u == nil || u.Type != policy.Postpone {
		t.Errorf("%v, %v", u, err)
	}
	for _, wrong := range []string{`{"systemUpdate":{"type":"X"}}`, `{"systemUpdate":1}`, `{"systemUpdates":{}}`} {
		if err := policy.CheckDocument(nil, policy.Agent, json.RawMessage(wrong)); err == nil {
			t.Errorf("%s was accepted", wrong)
		}
	}
}
