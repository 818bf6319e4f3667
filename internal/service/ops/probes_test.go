package ops_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/service/ops"
)

type pinged struct{ err error }

func (p pinged) Ping(context.Context) error { return p.err }

func TestProbes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		path   string
		change func(p *ops.Probes)
		status int
		says   []string
	}{
		"live":  {"/healthz", nil, 200, []string{`"status":"ok"`}},
		"ready": {"/readyz", nil, 200, []string{`"status":"ready"`, `"loops":"ok"`}},
		"a loop down": {"/readyz", func(p *ops.Probes) { p.Loops = func() error { return errors.New("poller is down") } }, 503,
			[]string{`"status":"not ready"`, `"loops":"poller is down"`}},
		"it drains": {"/readyz", func(p *ops.Probes) { p.Draining = func() bool { return true } }, 503, []string{`"service":"draining"`}},
		"no database": {"/readyz", func(p *ops.Probes) { p.Database = pinged{errors.New("secret")} }, 503,
			[]string{`"database":"does not answer"`}},
		"advice alone": {"/readyz", func(p *ops.Probes) {
			p.Platform = func(context.Context) error { return errors.New("1 enterprise is gone") }
		}, 200, []string{`"status":"ready"`, `"platform":"1 enterprise is gone"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			well := func(context.Context) error { return nil }
			probes := ops.Probes{Draining: func() bool { return false }, Loops: func() error { return nil },
				Database: pinged{}, Disk: well, Platform: well, Log: slog.New(slog.DiscardHandler)}
			if test.change != nil {
				test.change(&probes)
			}
			mux := http.NewServeMux()
			probes.Mount(mux)
			answer := httptest.NewRecorder()
			mux.ServeHTTP(answer, httptest.NewRequest("GET", test.path, nil))
			if answer.Code != test.status {
				t.Errorf("the status is %d, want %d", answer.Code, test.status)
			}
			for _, says := range test.says {
				if !strings.Contains(answer.Body.String(), says) {
					t.Errorf("the answer does not say %s: %s", says, answer.Body)
				}
			}
			if strings.Contains(answer.Body.String(), "secret") {
				t.Errorf("the answer holds the driver's text: %s", answer.Body)
			}
		})
	}
}
