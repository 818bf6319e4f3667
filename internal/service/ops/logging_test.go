package ops_test

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/service/ops"
)

// What other programs read in the log is there at every level, and nothing else below the level.
func TestReliable_MessagesAtEveryLevel(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]string{
		"debug": "step, request, activity head, sign-in refused, other warning, fault",
		"info":  "request, activity head, sign-in refused, other warning, fault",
		"warn":  "activity head, sign-in refused, other warning, fault",
		"error": "activity head, sign-in refused, fault",
	} {
		var text strings.Builder
		log, err := ops.NewLogger(&text, level, "text")
		if err != nil {
			t.Fatal(err)
		}
		log = ops.Reliable(log).With("a", 1).WithGroup("b")
		log.Debug("step")
		log.Info("request")
		log.Info("activity head")
		log.Warn("sign-in refused")
		log.Warn("other warning")
		log.Error("fault")
		var got []string
		for line := range strings.Lines(text.String()) {
			_, message, _ := strings.Cut(line, "msg=")
			message, _, _ = strings.Cut(message, " a=1")
			got = append(got, strings.Trim(message, `"`))
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%s: %s, want %s", level, got, want)
		}
	}
}
