package drill

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/surface/web"
)

var keyText = regexp.MustCompile(`mk_[0-9A-Za-z]{8}_[0-9A-Za-z]+`)

// makeKeys makes keys that may do everything.
func (t *attacker) makeKeys(ctx context.Context) {
	row := t.row("make API keys")
	for i := range attackerKeys {
		t.callers = append(t.callers, t.rest(makeKey(ctx, t.owner, "thief "+strconv.Itoa(i)), nil))
		row.note(answer{})
	}
}

// makeKey makes a key that may do everything, and returns its text.
func makeKey(ctx context.Context, v *client.Person, name string) string {
	fields := keyForm(ctx, v, name)
	return v.Post(ctx, frame.AccessPath+"/keys", fields...).Shown(keyText)
}

// keyForm is the form that makes a key that may do everything.
func keyForm(ctx context.Context, v *client.Person, name string) []string {
	p := v.Get(ctx, frame.AccessPath+"/keys/new")
	fields := []string{"name", name, "expires", "90", frame.OnceField, p.Field(frame.OnceField)}
	for _, permission := range access.All.Names() {
		fields = append(fields, "permission", permission)
	}
	return fields
}

var invitation = regexp.MustCompile(`/invitation#[0-9A-Za-z_-]+`)

// makePeople makes administrators, and signs in as each.
func (t *attacker) makePeople(ctx context.Context) {
	row := t.row("make administrators")
	for i := range attackerUsers {
		v := t.invite(ctx, fmt.Sprintf("thief%d@acme.test", i), "role", "admin")
		row.note(answer{})
		if i < attackerUsers-1 {
			v.AddPasskey(ctx)
		}
		t.people = append(t.people, v)
	}
}

// invite has the owner invite a user, with more fields of the form, and opens the account.
func (t *attacker) invite(ctx context.Context, email string, fields ...string) *client.Person {
	p := t.owner.Post(ctx, frame.UsersPath, append(fields, "email", email, "name", "Thief")...)
	link := p.Shown(invitation)
	v := client.NewPerson(t.Service.PublicURL(), email, attackerPassword)
	_, code, _ := strings.Cut(link, "#")
	p = v.Post(ctx, web.InvitationPath, "code", code, "password", attackerPassword, "again", attackerPassword)
	if p.Status != http.StatusOK {
		script.Fail("the invitation was refused: %d at %s", p.Status, p.Path)
	}
	return v
}

// makeClients connects OAuth clients that may do everything.
func (t *attacker) makeClients(ctx context.Context) {
	row := t.row("make connections")
	for i := range attackerClients {
		v := append([]*client.Person{t.owner}, t.people...)[i]
		t.callers = append(t.callers, t.tools(ctx, "Authorization", "Bearer "+v.Connect(ctx, "Thief", access.All.Scopes()...).Access, nil))
		row.note(answer{})
	}
}

// signIn opens a session of the demo's administrator, and adds a passkey to the account.
func (d *drill) signIn(ctx context.Context) *client.Person {
	v := client.NewPerson(d.Service.PublicURL(), d.User, d.Password)
	v.SignIn(ctx)
	v.AddPasskey(ctx)
	return v
}

// notes are what the portal says about a form: the page after it shows them.
var notes = regexp.MustCompile(`(?s)<div class="note"[^>]*data-tone="(bad|warn|ok|idle)"[^>]*>.*?<p>(.*?)</p>`)

// unseen is what a browser that runs scripts does not show.
var unseen = regexp.MustCompile(`(?s)<noscript>.*?</noscript>`)

// outcome is the outcome of a form of the portal, as an answer.
func outcome(p client.Page) answer {
	got := answer{text: p.Body}
	for _, found := range notes.FindAllStringSubmatch(unseen.ReplaceAllString(p.Body, ""), -1) {
		if text := html.UnescapeString(found[2]); found[1] == "bad" || found[1] == "warn" {
			got.detail += strings.Join(strings.Fields(text), " ") + " "
		}
	}
	switch {
	case p.Status == http.StatusTooManyRequests:
		got.code = string(fault.RateLimited)
	case strings.HasPrefix(p.Path, web.ProvePath):
		got.code = "fresh proof"
	case strings.Contains(got.detail, "takes effect in 24 hours"):
		got.code = "delay of 24 hours"
	case strings.Contains(got.detail, "must be older than"), strings.Contains(got.detail, "got rights less than"):
		got.code = "age of the approver"
	case strings.Contains(got.detail, "second administrator"):
		got.code = "second administrator"
	case strings.Contains(got.detail, "second person must decide"):
		got.code = "second person"
	case p.Status == http.StatusForbidden && strings.Contains(p.Body, stopReason):
		got.code = "stop"
	case strings.HasPrefix(p.Path, web.SignInPath):
		got.code = "end of the session"
	case strings.Contains(got.detail, "company's limit"), strings.Contains(got.detail, "calls a minute"):
		got.code = string(fault.RateLimited)
	case strings.Contains(got.detail, "not enrolled"), strings.Contains(got.detail, "no longer managed"),
		strings.Contains(got.detail, "does not work on"),
		strings.Contains(got.detail, "needs a"):
		got.code = string(fault.Unsupported)
	case p.Status >= http.StatusBadRequest || got.detail != "":
		got.code = "refused in the portal"
	}
	return got
}
