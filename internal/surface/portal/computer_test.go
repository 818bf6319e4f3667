package portal_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/surface/portal/credentials"
)

const computerVerifier = "a-verifier-that-muster-login-would-draw-at-random"

// loginForm is the form of `muster login`, with changes of names and values.
func loginForm(changes ...string) url.Values {
	sum := sha256.Sum256([]byte(computerVerifier))
	form := url.Values{"challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "state": {"a-state"}, "name": {"laptop"},
		"redirect": {"http://127.0.0.1:4711/"}, "preset": {"help-desk"}}
	for i := 0; i+1 < len(changes); i += 2 {
		form.Set(changes[i], changes[i+1])
	}
	return form
}

// allowed lets a person allow a computer, and returns the code that goes to it.
func (o *office) allowed(t *testing.T, p *servertest.Browser, changes ...string) string {
	t.Helper()
	answer := p.Send(o.base+credentials.ComputerPath, loginForm(changes...)).Want(t, 200)
	to, err := url.Parse(answer.Onward())
	if err != nil || to.Host != "127.0.0.1:4711" || to.Query().Get("state") != "a-state" || strings.Contains(to.String(), "mk_") {
		t.Fatalf("the page leads to %s: %s", to, answer.Body)
	}
	return to.Query().Get("code")
}

// exchange sends a code and a verifier, and returns the status and the key.
func exchange(t *testing.T, base, code, verifier string) (int, string) {
	t.Helper()
	body, _ := json.Marshal(map[string]string{"code": code, "verifier": verifier})
	status, text := atKeyPath(t, "POST", base, "", body)
	var made struct{ Key string }
	_ = json.Unmarshal(text, &made)
	if (status == 200) != (made.Key != "") {
		t.Errorf("the exchange is answered %d with the key %q", status, made.Key)
	}
	return status, made.Key
}

// atKeyPath is one request of muster login or logout; status 0: it failed.
func atKeyPath(t *testing.T, method, base, key string, body []byte) (int, []byte) {
	t.Helper()
	answer, err := client.New(base, key).Do(t.Context(), client.Request{Method: method, Path: credentials.ComputerKeyPath, Body: body})
	if problem, ok := errors.AsType[*client.Problem](err); ok {
		return problem.Status, nil
	}
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	return answer.Status, answer.Body
}

func TestComputer_CodeIsGoodOnceForItsVerifier(t *testing.T) {
	t.Parallel()
	for engine, env := range map[string]*servertest.Env{"sqlite": servertest.New(t), "postgres": servertest.NewPostgres(t)} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			o := &office{Tenant: env.NewTenant("acme"), replica: env.Start()}
			o.base = o.replica.PublicURL()
			second := o.base
			if engine == "postgres" {
				second = env.Start().PublicURL()
			}
			p := o.person(t, account.Admin)

			code := o.allowed(t, p)
			results := make(chan int, 8) // at once, at two replicas
			for i := range cap(results) {
				base := []string{o.base, second}[i%2]
				go func() {
					status, _ := exchange(t, base, code, computerVerifier)
					results <- status
				}()
			}
			made := 0
			for range cap(results) {
				if status := <-results; status == 200 {
					made++
				} else if status != 401 {
					t.Errorf("a used code is answered %d", status)
				}
			}
			if made != 1 {
				t.Errorf("one code made %d keys", made)
			}

			code = o.allowed(t, p)
			if status, _ := exchange(t, o.base, code, "another verifier"); status != 401 {
				t.Errorf("a wrong verifier is answered %d", status)
			}
			if status, _ := exchange(t, o.base, code, computerVerifier); status != 401 {
				t.Errorf("a code that was tried with a wrong verifier is answered %d", status)
			}
			first := o.allowed(t, p) // the next one ends it
			code = o.allowed(t, p)
			if status, _ := exchange(t, o.base, first, computerVerifier); status != 401 {
				t.Errorf("a code before the last is answered %d", status)
			}
			o.Advance(time.Minute)
			if status, _ := exchange(t, o.base, code, computerVerifier); status != 401 {
				t.Errorf("a code after a minute is answered %d", status)
			}
		})
	}
}

func TestComputer_KeyIsLimitedAndRevokesItself(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	p := o.person(t, account.Admin)
	status, key := exchange(t, o.base, o.allowed(t, p), computerVerifier)
	if status != 200 {
		t.Fatalf("the exchange is answered %d", status)
	}
	keys, err := o.DB().Keys(t.Context(), o.Company.ID)
	if err != nil {
		t.Fatal(err)
	}
	k := keys[0]
	if k.CreatedBy != p.User.ID || k.Name != "muster login on laptop" || k.ExpiresAt.Sub(k.CreatedAt) != 90*24*time.Hour ||
		k.Permissions != access.DevicesRead|access.PoliciesRead|access.DevicesCommand {
		t.Errorf("the key is %+v", k)
	}
	caller := o.replica.As(key)
	caller.Get("/assets").Want(t, 200)
	if status, _ := atKeyPath(t, "DELETE", o.base, key, nil); status != 200 {
		t.Errorf("logout is answered %d", status)
	}
	caller.Get("/assets").Want(t, 401)
	for _, used := range []string{key, ""} {
		if status, _ := atKeyPath(t, "DELETE", o.base, used, nil); status != 401 {
			t.Errorf("logout without a key that counts is answered %d", status)
		}
	}
}

// Strangers can send codes: one that cannot be a code is refused before anything is written or warned of, and the others
// are counted for the network.
func TestComputer_StrangersAreLimited(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	code := o.allowed(t, o.person(t, account.Admin))
	send := func(code string) servertest.Answer {
		body, _ := json.Marshal(map[string]string{"code": code, "verifier": computerVerifier})
		return servertest.Send(t, "POST", o.base+credentials.ComputerKeyPath, string(body), "Content-Type", "application/json")
	}
	for range 70 {
		send("mst_"+strings.Repeat("x", 49)).Want(t, 400)
	}
	for range 59 {
		send(access.NewSecret("mst_")).Want(t, 401)
	}
	send(code).Want(t, 200)
	for _, each := range []string{code, access.NewSecret("mst_")} {
		if over := send(each).Want(t, 429); over.Header.Get("Retry-After") == "" || !strings.Contains(string(over.Body), "a minute") {
			t.Errorf("over the limit: Retry-After %q, %s", over.Header.Get("Retry-After"), over.Body)
		}
	}
	if n := strings.Count(string(o.Log.Text()), `level=WARN msg="login of a computer refused"`); n != 59 {
		t.Errorf("%d warnings, want one of each code that was tried", n)
	}
	o.Advance(time.Minute)
	send(access.NewSecret("mst_")).Want(t, 401)
}

// A key is made within what the person may do when the code is exchanged, while the
// session goes on.
func TestComputer_NothingIsMadeForWhoMayNot(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, *office, *servertest.Browser){
		"disabled": func(_ *testing.T, _ *office, p *servertest.Browser) {
			p.Change(func(u *account.User) { u.Disabled = true })
		},
		"no keys": func(_ *testing.T, _ *office, p *servertest.Browser) {
			p.Change(func(u *account.User) { u.Rights &^= account.ManageKeys })
		},
		"no command": func(_ *testing.T, _ *office, p *servertest.Browser) {
			p.Change(func(u *account.User) { u.Rights = account.ManageKeys | account.ViewDevices })
		},
		"signed out": func(t *testing.T, o *office, p *servertest.Browser) {
			p.Send(o.base+"/signout", url.Values{}).Want(t, 303)
		},
		"stopped": func(t *testing.T, o *office, _ *servertest.Browser) {
			_, err := o.DB().UpdateCompany(t.Context(), o.Company.ID, company.Change(func(c *company.Company) {
				c.Settings.Stop = access.Stop{At: o.Now(), Reason: "test", All: true}
			}))
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			p := o.person(t, account.Admin)
			code := o.allowed(t, p)
			change(t, o, p)
			if status, key := exchange(t, o.base, code, computerVerifier); key != "" || status != 401 && status != 403 {
				t.Errorf("the exchange is answered %d", status)
			}
		})
	}
}

// The page sends a code to the person's own computer alone, and cannot be framed or posted
// to from elsewhere.
func TestComputer_PageCannotBeTurnedAgainstThePerson(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	p := o.person(t, account.Admin)
	for _, redirect := range []string{"https://evil.example/", "http://evil.example/", "http://localhost:80/", "http://127.0.0.1/",
		"http://127.0.0.1:0/",
		"http://127.0.0.1:4711@evil.example/", "http://127.0.0.1:4711.evil.example/", "http://127.0.0.2:4711/", "https://127.0.0.1:4711/",
		"//127.0.0.1:4711/",
		"http://127.0.0.1:4711/?x=y", "http://127.0.0.1:4711/#x", "http://[::2]:4711/", "http://[::ffff:127.0.0.1]:4711/",
		"http://0x7f000001:4711/", "javascript:alert(1)", " http://127.0.0.1:4711/"} {
		answer := p.Send(o.base+credentials.ComputerPath, loginForm("redirect", redirect))
		if answer.Status < 400 || answer.Status > 499 || strings.Contains(string(answer.Body), "mst_") || answer.Onward() != "" {
			t.Errorf("a code goes to %s: %d", redirect, answer.Status)
		}
		if answer := p.Send(o.base+credentials.ComputerPath+"?"+loginForm("redirect", redirect).Encode(), nil); answer.Status < 400 ||
			answer.Status > 499 {
			t.Errorf("the page for %s is answered %d", redirect, answer.Status)
		}
	}
	p.Send(o.base+credentials.ComputerPath, loginForm("redirect", "http://[::1]:4711/done")).Want(t, 200)
	for _, wrong := range [][]string{{"challenge", "short"}, {"state", "a state"}, {"state", strings.Repeat("x", 129)}, {"name", "a\nb"},
		{"preset", "everything"}, {"preset", ""}} {
		if answer := p.Send(o.base+credentials.ComputerPath, loginForm(wrong...)); answer.Status < 400 || answer.Status > 499 {
			t.Errorf("%q is answered %d", wrong, answer.Status)
		}
	}
	page := p.Send(o.base+credentials.ComputerPath+"?"+loginForm("name", "<script>").Encode(), nil).Want(t, 200)
	if policy := page.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-ancestors 'none'") ||
		strings.Contains(string(page.Body), "<script>.") {
		t.Errorf("the page can be framed, or carries what it is given: %s", policy)
	}
	p.Send(o.base+credentials.ComputerPath, loginForm(), "Sec-Fetch-Site", "cross-site").Want(t, http.StatusForbidden)
	if answer := p.Send(o.base+credentials.ComputerPath, loginForm("redirect", "")).Want(t, 200); !strings.Contains(string(answer.Body),
		"mst_") {
		t.Error("without a redirect the page shows no code")
	}

	// It takes the right to make keys, and a proof of identity.
	viewer := o.person(t, account.Viewer)
	viewer.Send(o.base+credentials.ComputerPath+"?"+loginForm().Encode(), nil).Want(t, 403)
	viewer.Send(o.base+credentials.ComputerPath, loginForm()).Want(t, 403)
	o.Advance(account.ReauthFresh + time.Second)
	if answer := p.Send(o.base+credentials.ComputerPath, loginForm()).Want(t, 303); !strings.HasPrefix(answer.Header.Get("Location"),
		"/account/prove") {
		t.Errorf("without a proof the form leads to %s", answer.Header.Get("Location"))
	}
}
