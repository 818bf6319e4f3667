package e2e_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/servertest/oidctest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/test/needs"
)

// Attempts to sign in that fail or are throttled are in the log, in a form that
// fail2ban reads, without what was typed. Requests have the client's address.
func TestSignIn_RefusalsAreLogged(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			env := servertest.New(t)
			var log servertest.Log
			replica := env.Start(func(_ *config.Service, o *service.Options) {
				logger, err := ops.NewLogger(&log, "info", format)
				if err != nil {
					t.Fatal(err)
				}
				o.Logger = logger
			})
			acme := env.Company("acme", access.Settings{})
			person := env.Browser(acme, account.Viewer)
			for range 12 { // the last are throttled
				person.Send(replica.PublicURL()+"/signin", url.Values{"email": {"hunter2@acme.example"}, "password": {"hunter2hunter2"}})
			}
			replica.As(env.Key(acme, access.DevicesRead)).Get("/assets").Want(t, 200)
			text := log.Text()
			if strings.Contains(string(text), "hunter2") {
				t.Error("what was typed is in the log")
			}
			for _, says := range []string{"wrong credentials", "too many attempts"} {
				if !bytes.Contains(text, []byte(says)) {
					t.Errorf("the log does not say %q:\n%s", says, text)
				}
			}
			if request := lineWith(text, "list_assets"); !strings.Contains(request, "127.0.0.1") {
				t.Errorf("the request's line has no address: %s", request)
			}
			if format == "json" && !regexp.MustCompile(`"tookSeconds":[0-9.e-]+[,}]`).MatchString(lineWith(text, "list_assets")) {
				t.Errorf("the request's line has no duration as a number with a unit: %s", lineWith(text, "list_assets"))
			}
			t.Run("fail2ban", func(t *testing.T) { banned(t, text) })
		})
	}
}

// A password that is guessed on the page that links an account is logged and throttled, too, and so is
// an invitation's code.
func TestSignIn_RefusalsElsewhereAreLogged(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	var log servertest.Log
	replica := env.Start(servertest.OnLocalhost(t), func(_ *config.Service, o *service.Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	acme := env.Company("acme", access.Settings{})
	admin := env.Browser(acme, account.Admin).User
	provider := oidctest.New(t, env.Now)
	replica.PortalClient(t, admin).Post("/settings/signin", providerFields(provider, "acme.test")...).Want(t, 200)
	provider.Be(oidctest.Browser{Subject: "1", Email: admin.Email}, nil)
	portal := replica.SignedOut(t)
	link := signsIn(t, portal, provider, admin.Email).Want(t, 200).Field(t, "link")
	portal.Post("/invitation", "code", "mst_made-up", "password", servertest.Password, "again", servertest.Password).Want(t, 404)
	last := 0
	for range 12 {
		last = portal.Post("/signin/link", "link", link, "password", "wrong password").Status
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("the last of 12 guesses is answered %d, want 429", last)
	}
	for _, reason := range []string{"wrong credentials", "too many attempts", "wrong invitation"} {
		if !bytes.Contains(log.Text(), []byte(`msg="sign-in refused" client=127.0.0.1 reason="`+reason)) {
			t.Errorf("the log does not say %q:\n%s", reason, log.Text())
		}
	}
}

func lineWith(text []byte, part string) string {
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, part) {
			return line
		}
	}
	return ""
}

// banned asks fail2ban itself.
func banned(t *testing.T, text []byte) {
	t.Helper()
	tool := needs.Fail2ban().Of(t)
	file := filepath.Join(t.TempDir(), "muster.log")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), tool, "--out", "ip", file, alerts+"/fail2ban-muster.conf").CombinedOutput()
	if err != nil || strings.Count(string(out), "\n") != strings.Count(string(text), "sign-in refused") {
		t.Errorf("fail2ban finds %q, %v", out, err)
	}
}
