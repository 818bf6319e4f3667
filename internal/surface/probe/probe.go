// Package probe answers programs that monitor the process: /healthz says that
// it lives, /readyz that it can serve (docs/operating.md).
package probe

import (
	"context"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/surface/edge"
)

// Check is one condition of readiness. An error's text is shown to
// every client, so it must hold nothing secret.
type Check struct {
	Name string
	Test func(ctx context.Context) error
	// Advice: what fails is said, and the process is ready all the same.
	Advice bool
}

// timeLimit bounds one answer of /readyz.
const timeLimit = 2 * time.Second

// Live answers 200 while the process lives.
func Live() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		edge.JSON(w, http.StatusOK, edge.NoStore, map[string]string{"status": "ok"})
	})
}

// Ready answers 200 when every check passes that is no advice, else 503, naming each
// check.
func Ready(checks ...Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), timeLimit)
		defer cancel()
		status, said := http.StatusOK, map[string]string{"status": "ready"}
		for _, check := range checks {
			said[check.Name] = "ok"
			if err := check.Test(ctx); err != nil {
				said[check.Name] = err.Error()
				if !check.Advice {
					status, said["status"] = http.StatusServiceUnavailable, "not ready"
				}
			}
		}
		edge.JSON(w, status, edge.NoStore, said)
	})
}
