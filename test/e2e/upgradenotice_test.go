package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/database/firsttest"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
)

// The overview of a company that is older than the controls says what is new,
// until an administrator dismisses it. Others never read it, and neither do
// companies that are made after the upgrade.
func TestUpgrade_NoticeIsShownUntilDismissed(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			env := servertest.New(t)
			env.Database = emptyDatabase(t, engine)
			old := firsttest.Load(t, env.Database, false)
			keys := env.Config().KeyFile
			old.Keys(t, keys)
			env.Advance(old.Now.Add(time.Minute).Sub(env.Now()))
			replica := env.Start(func(c *config.Service, _ *service.Options) {
				c.KeyFile, c.PlatformEndpoint = keys, "http://127.0.0.1:1"
			})
			upgraded, err := env.DB().CompanyBySlug(t.Context(), "acme")
			if err != nil {
				t.Fatal(err)
			}
			env.CLI(new(any), "key", "create", "--company", "acme", "--name", "Nightly sync", "--permission", "DEVICES_READ")
			env.CLI(new(any), "key", "create", "--company", "acme", "--name", "Short-lived", "--permission", "DEVICES_READ",
				"--expires-in", "24h")
			made := env.Company("new", servertest.Everything())
			ada, bob := env.Browser(upgraded, account.Admin), env.Browser(upgraded, account.Operator)
			carol := env.Browser(made, account.Admin)
			const notice = "Muster was upgraded"
			overview := func(p *servertest.Browser) string {
				t.Helper()
				return string(p.Send(replica.PublicURL()+"/", nil).Want(t, http.StatusOK).Body)
			}
			for _, p := range []*servertest.Browser{ada, bob, carol} {
				p.SignIn(replica.PublicURL())
			}
			_, page, _ := strings.Cut(overview(ada), `aria-labelledby="upgraded"`)
			page, _, _ = strings.Cut(page, "</section>")
			for _, want := range []string{notice, "at most 25 devices in 60 minutes", "Approval of policy changes",
				"Authorization of destructive commands",
				"API keys without expiry", "Nightly sync"} {
				if !strings.Contains(page, want) {
					t.Errorf("the overview does not say %q", want)
				}
			}
			if strings.Contains(page, "Short-lived") {
				t.Error("a key that expires is listed as one that does not")
			}
			if strings.Contains(overview(bob), notice) || strings.Contains(overview(carol), notice) {
				t.Error("an operator, or a new company, reads the notice")
			}
			bob.Send(replica.PublicURL()+"/overview/notice/dismiss", map[string][]string{}).Want(t, http.StatusForbidden)
			ada.Send(replica.PublicURL()+"/overview/notice/dismiss", map[string][]string{}).Want(t, http.StatusSeeOther)
			env.CLI(new(any), "company", "set", "--company", "acme", "--name", "Acme Ltd")
			if strings.Contains(overview(ada), notice) {
				t.Error("the notice comes back after it was dismissed")
			}
		})
	}
}
