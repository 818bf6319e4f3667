package client

import (
	"context"
	"html"
	"net/http"
	"net/http/cookiejar"
	"regexp"
	"strings"

	"github.com/musterhq/muster/internal/passkey/virtual"
	"github.com/musterhq/muster/internal/script"
)

// The portal's pages that a person uses, with those below them.
const accountPath, signInPath = "/account", "/signin"

// Person is a user of the portal with a browser, who may have a passkey. One goroutine uses it at a time.
type Person struct {
	*Browser
	Email, Password string
	Passkey         *virtual.Authenticator // nil: the user has none
}

// NewPerson is a user of the portal at an address, who has not signed in.
func NewPerson(address, email, password string) *Person {
	return &Person{Browser: NewBrowser(address), Email: email, Password: password}
}

// SignIn opens a session with the user's password.
func (v *Person) SignIn(ctx context.Context) {
	v.reaches(v.Post(ctx, signInPath, "email", v.Email, "password", v.Password, "next", accountPath), "sign in")
}

// reaches ends the script unless a step led to the user's account.
func (v *Person) reaches(p Page, step string) {
	if p.Path != accountPath {
		script.Fail("%s cannot %s: %d at %s", v.Email, step, p.Status, p.Path)
	}
}

// AddPasskey adds a passkey to the account.
func (v *Person) AddPasskey(ctx context.Context) {
	v.Passkey = script.Must(virtual.New(v.URL))
	token, signed := v.Get(ctx, accountPath+"/passkeys/new").Answered(v.Passkey.Create)
	if p := v.Post(ctx, accountPath+"/passkeys", "token", token, "name", "Key", "answer", signed); p.Status != http.StatusOK {
		script.Fail("a passkey cannot be added: %d", p.Status)
	}
}

// byPasskey takes a step with the user's passkey: it answers what one address asks for at another.
func (v *Person) byPasskey(ctx context.Context, step, asks, takes string) {
	token, signed := v.Get(ctx, asks).Answered(v.Passkey.Get)
	v.reaches(v.Post(ctx, takes, "next", accountPath, "token", token, "answer", signed), step)
}

// SignInByPasskey opens another session.
func (v *Person) SignInByPasskey(ctx context.Context) {
	v.HTTP.Jar, _ = cookiejar.New(nil)
	v.byPasskey(ctx, "sign in with a passkey", signInPath, signInPath+"/passkey")
}

// Prove proves the user's identity again.
func (v *Person) Prove(ctx context.Context) {
	if v.Passkey != nil {
		v.byPasskey(ctx, "prove the identity", accountPath+"/prove?next="+accountPath, accountPath+"/prove/passkey")
	} else {
		v.reaches(v.Post(ctx, accountPath+"/prove", "next", accountPath, "password", v.Password), "prove the identity")
	}
}

// Decide signs that what an address asks about may be done. Where the page offers no
// such form, it is returned as it is: it says why.
func (v *Person) Decide(ctx context.Context, address string) Page {
	p := v.Get(ctx, address)
	for _, form := range strings.Split(p.Body, "<form")[1:] {
		if strings.Contains(form, `name="decision" value="APPROVE"`) {
			p.Body = form
			return v.sign(ctx, p)
		}
	}
	return p
}

// typedName is the name that a form wants typed.
var typedName = regexp.MustCompile(`The name is (.*?)\. Case and`)

// sign answers a form that a passkey signs; a name that is to be typed is typed before.
func (v *Person) sign(ctx context.Context, form Page) Page {
	action, fields := form.Attribute(`action="`), []string{"decision", "APPROVE"}
	if name := typedName.FindStringSubmatch(form.Body); name != nil {
		fields = append(fields, "confirmation", html.UnescapeString(name[1]))
		form = v.Post(ctx, action, fields...)
	}
	token, signed := form.Answered(v.Passkey.Get)
	return v.Post(ctx, action, append(fields, "token", token, "answer", signed)...)
}
