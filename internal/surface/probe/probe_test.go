package probe_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/surface/probe"
)

func TestProbes(t *testing.T) {
	t.Parallel()
	fine := probe.Check{Name: "database", Test: func(context.Context) error { return nil }}
	broken := probe.Check{Name: "loops", Test: func(context.Context) error { return errors.New("poller is down") }}
	for name, tc := range map[string]struct {
		answer *httptest.ResponseRecorder
		status int
		says   string
	}{
		"live":      {get(probe.Live().ServeHTTP), 200, `"status":"ok"`},
		"ready":     {get(probe.Ready(fine).ServeHTTP), 200, `"status":"ready"`},
		"not ready": {get(probe.Ready(fine, broken).ServeHTTP), 503, `"loops":"poller is down"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.answer.Code != tc.status || !strings.Contains(tc.answer.Body.String(), tc.says) {
				t.Errorf("got %d %s", tc.answer.Code, tc.answer.Body)
			}
		})
	}
}

func get(serve func(w http.ResponseWriter, r *http.Request)) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	serve(w, httptest.NewRequest("GET", "/", nil))
	return w
}
