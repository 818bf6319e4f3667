package fleetsim

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/script"
)

type roundTrip func() *http.Response

func (answer roundTrip) RoundTrip(*http.Request) (*http.Response, error) { return answer(), nil }

// A command is repeated while the service is busy. When patience ends it is a problem, and the run goes on.
func TestSend_ServiceIsBusy(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		busy    time.Duration
		status  int
		content string
		sent    int
	}{
		{"it restarts", 4 * time.Minute, http.StatusServiceUnavailable, "application/problem+json", 1},
		{"it is away for good", time.Hour, http.StatusBadGateway, "text/html", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, err := newFleet(Options{Access: Access{Server: "fake://service", Tokens: []string{"token"}, Keys: []string{"key"}},
					Clock: time.Now, Now: time.Now})
				if err != nil {
					t.Fatal(err)
				}
				began, refused := time.Now(), 0
				f.http.RegisterProtocol("fake", roundTrip(func() *http.Response {
					answer := &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"retryable": true}`))}
					if time.Since(began) < test.busy {
						refused++
						answer.StatusCode, answer.Header = test.status, http.Header{"Content-Type": {test.content}}
					}
					return answer
				}))
				if err := script.Attempt(func() { f.rest.send(t.Context(), f.members[0], "reboot", 0) }); err != nil {
					t.Fatalf("the run ended: %v", err)
				}
				report := f.report(0)
				var text strings.Builder
				if err := report.Write(&text); err != nil {
					t.Fatal(err)
				}
				problem := strings.Contains(text.String(), "PROBLEM: device 0: reboot was not taken")
				if report.Commands != test.sent || problem != (test.sent == 0) || refused > 150 {
					t.Errorf("after %d refusals: %+v", refused, report)
				}
				if n := report.Refusals["503 Service Unavailable"] + report.Refusals["502 Bad Gateway"]; n != refused ||
					!strings.Contains(text.String(), "Refused ") {
					t.Errorf("the report counts %d of %d refusals:\n%s", n, refused, text.String())
				}
			})
		})
	}
}
