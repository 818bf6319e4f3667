package fcm_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/fcm"
)

// body is an error as FCM writes it.
func body(code, field string) string {
	const base = "type.googleapis.com/"
	details := fmt.Sprintf(`{"@type":"%sgoogle.firebase.fcm.v1.FcmError","errorCode":%q}`, base, code)
	if field != "" {
		details += fmt.Sprintf(`,{"@type":"%sgoogle.rpc.BadRequest","fieldViolations":[{"field":%q}]}`, base, field)
	}
	return `{"error":{"details":[` + details + `]}}`
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status int
		body   string
		want   string
	}{
		{404, body("UNREGISTERED", ""), "unreachable"},
		{403, body("SENDER_ID_MISMATCH", ""), "unreachable"},
		{400, body("INVALID_ARGUMENT", ""), "unreachable"},
		{400, body("INVALID_ARGUMENT", "message.token"), "unreachable"},
		{400, body("INVALID_ARGUMENT", "message.data"), "refused"},
		{400, "", "refused"},
		{413, "", "refused"},
		{429, "", "throttled"},
		{429, body("QUOTA_EXCEEDED", ""), "throttled"},
		{401, body("THIRD_PARTY_AUTH_ERROR", ""), "denied"},
		{401, "", "denied"}, {403, "", "denied"}, {302, "", "denied"},
		{404, "<html>", "missing"},
		{500, body("INTERNAL", ""), "unknown"}, {503, body("UNAVAILABLE", ""), "unknown"}, {502, "<html>", "unknown"},
		{408, "", "unknown"}, {200, "", "unknown"},
	} {
		t.Run(test.body, func(t *testing.T) {
			if got := fcm.Judge(test.status, test.body); got != test.want {
				t.Errorf("%d %s: %s, want %s", test.status, test.body, got, test.want)
			}
		})
	}
}

// Whatever answers, a push comes to one of the known ends, and nothing that a
// server says of itself as broken is taken for "not sent".
func FuzzJudge(f *testing.F) {
	f.Add(404, body("UNREGISTERED", ""))
	f.Add(500, "{")
	ends := []string{"unreachable", "missing", "refused", "throttled", "denied", "unknown"}
	f.Fuzz(func(t *testing.T, status int, text string) {
		got := fcm.Judge(status, text)
		if !slices.Contains(ends, got) {
			t.Errorf("%d %q: %q", status, text, got)
		}
		if status >= 500 && (got == "denied" || got == "refused" || got == "missing") {
			t.Errorf("%d %q: %q", status, text, got)
		}
	})
}
