package conformance_test

import (
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/surface/mcp"
	"github.com/musterhq/muster/test/conformance"
)

const suite = "node_modules/@modelcontextprotocol/conformance/dist/index.js"

// The scenarios that ask nothing of a server but to follow the protocol hold
// for the product as it is.
func TestSuite_Protocol(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	address := keyed(t, w.service.PublicURL(), w.Key(w.Company, access.All)) + mcp.Path
	for scenario, revisions := range map[string][]string{
		"tools-list":               {"2025-06-18", "2025-11-25", "2026-07-28"},
		"http-header-validation":   {"2026-07-28"},
		"dns-rebinding-protection": {"2025-11-25", "2026-07-28"},
		"server-initialize":        {"2025-06-18", "2025-11-25"},
		"ping":                     {"2025-11-25"},
		"caching":                  {"2026-07-28"},
		"server-stateless":         {"2026-07-28"},
	} {
		for _, revision := range revisions {
			t.Run(scenario+" "+revision, func(t *testing.T) {
				code, out := node(t, nil, nil, "--require", "./patient.cjs", suite, "server", "--url", address, "--scenario", scenario,
					"--spec-version", revision,
					"--expected-failures", "product.yml")
				if code != 0 {
					t.Errorf("exit %d:\n%s", code, complaints(out))
				}
			})
		}
	}
}

// With the suite's fixtures mounted behind our middleware, everything that the
// current revision requires passes, without exception; and everything of the
// one before that can be done without sessions.
func TestSuite_FrozenRequirements(t *testing.T) {
	t.Parallel()
	needPrograms(t)
	env := servertest.New(t)
	replica := env.Start(func(_ *config.Service, o *service.Options) { o.CustomizeMCP = conformance.Fixtures })
	company := env.Company("acme", servertest.Everything())
	address := keyed(t, replica.PublicURL(), env.Key(company, access.All)) + mcp.Path
	for revision, baseline := range map[string]string{"2026-07-28": "", "2025-11-25": "sessions.yml"} {
		t.Run(revision, func(t *testing.T) {
			arguments := []string{suite, "server", "--url", address, "--requirements", revision}
			if baseline != "" {
				arguments = append(arguments, "--expected-failures", baseline)
			}
			if code, out := node(t, nil, nil, arguments...); code != 0 {
				t.Errorf("exit %d:\n%s", code, complaints(out))
			}
		})
	}
}
