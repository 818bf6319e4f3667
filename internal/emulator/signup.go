package emulator

import (
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	am "google.golang.org/api/androidmanagement/v1"
)

// signup is a sign-up on its way: an administrator is to confirm it on the
// vendor's page.
type signup struct {
	ID         string `json:"id"`
	Project    string `json:"project"`
	Callback   string `json:"callback"`
	AdminEmail string `json:"adminEmail,omitempty"`
	Token      string `json:"token,omitempty"` // the enterprise token, once it was confirmed
	Redeemed   bool   `json:"redeemed,omitempty"`
}

func (s *signup) name() string { return "signupUrls/" + s.ID }

// maxSignups bounds the sign-ups that are kept.
const maxSignups = 10_000

func createSignupURL(e *Emulator, c *call) (any, error) {
	project := c.query.Get("projectId")
	if project == "" {
		return nil, invalid("Project ID must be specified.")
	}
	callback, err := url.Parse(c.query.Get("callbackUrl"))
	if err != nil || callback.Host == "" || callback.Scheme != "https" && callback.Scheme != "http" {
		return nil, invalid("Callback URL must be a valid http or https URL.")
	}
	email, domains := c.query.Get("adminEmail"), c.query["allowedDomains"]
	if email != "" && !allowedDomain(email, domains) {
		return nil, invalid("Admin email must belong to one of the allowed domains.")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.world.Signups) >= maxSignups {
		return nil, fail(http.StatusTooManyRequests, "Too many sign-ups are open.")
	}
	s := &signup{ID: "C" + randomHex(16), Project: project, Callback: callback.String(), AdminEmail: email}
	e.world.Signups[s.ID] = s
	e.touch()
	return &am.SignupUrl{Name: s.name(), Url: c.base + "/signup/" + s.ID}, nil
}

func allowedDomain(email string, domains []string) bool {
	_, domain, ok := strings.Cut(email, "@")
	return ok && (len(domains) == 0 || slices.ContainsFunc(domains, func(allowed string) bool {
		suffix, wild := strings.CutPrefix(allowed, "*.")
		return domain == allowed || wild && strings.HasSuffix(domain, "."+suffix)
	}))
}

// CompleteSignup confirms a sign-up as the administrator would on the vendor's
// page. name is "signupUrls/…", or its last segment. It gives the enterprise
// token and the callback address with the token appended.
func (e *Emulator) CompleteSignup(name string) (enterpriseToken, callback string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.world.Signups[strings.TrimPrefix(name, "signupUrls/")]
	if s == nil {
		return "", "", notFound()
	}
	if s.Token == "" {
		s.Token = "E" + randomHex(20)
		e.touch()
	}
	target, err := url.Parse(s.Callback)
	if err != nil {
		return "", "", err
	}
	query := target.Query()
	query.Set("enterpriseToken", s.Token)
	target.RawQuery = query.Encode()
	return s.Token, target.String(), nil
}

// signupPage stands in for the vendor's sign-up. It is a form with one button,
// so that a person or a script can press it.
//
//nolint:gochecknoglobals // a template that is parsed once
var signupPage = template.Must(template.New("signup").Parse(`<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Sign up (emulator)</title></head>
<body style="font-family: sans-serif; max-width: 36rem; margin: 4rem auto; padding: 0 1rem">
<h1>Bring Android to work</h1>
<p>This page stands in for the platform's own sign-up. Nothing is sent anywhere: the emulator makes up an enterprise for the
project <b>{{.Project}}</b>{{with .AdminEmail}} and the administrator <b>{{.}}</b>{{end}}.</p>
<form method="post"><button type="submit">Confirm and return</button></form>
</body></html>
`))

func (e *Emulator) serveSignupPage(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	s := e.world.Signups[r.PathValue("id")]
	e.mu.Unlock()
	if s == nil {
		http.Error(w, "There is no such sign-up.", http.StatusNotFound)
		return
	}
	// The vendor's page cannot be framed either.
	w.Header().Set("X-Frame-Options", "DENY")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = signupPage.Execute(w, map[string]string{"Project": s.Project, "AdminEmail": s.AdminEmail})
}

func (e *Emulator) serveSignupForm(w http.ResponseWriter, r *http.Request) {
	_, callback, err := e.CompleteSignup(r.PathValue("id"))
	if err != nil {
		http.Error(w, "There is no such sign-up.", http.StatusNotFound)
		return
	}
	http.Redirect(w, r, callback, http.StatusSeeOther)
}
