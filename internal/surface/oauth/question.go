package oauth

import (
	"net/url"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/surface/web"
	"github.com/musterhq/muster/internal/validate"
)

// consentQuestion is what the consent page asks.
type consentQuestion struct {
	Client      string // as it calls itself
	ClientHost  string // of its metadata document; empty: it registered itself
	Company     string
	Destination string // where the answer goes
	Loopback    bool
	User        string
	UserID      string // comes back with the answer: another person's is not taken
	Request     string // the request's parameters, to come back with the answer
	Groups      []scopeGroup
	Prove       string // where to prove who one is, to grant more than reading; empty: that is proved
}

// scopeGroup is a set of scopes of the same danger.
type scopeGroup struct {
	Title  string
	Danger bool
	Scopes []scopeChoice
}

// scopeChoice is one scope in words.
type scopeChoice struct {
	permission access.Permission
	gate       access.Gate // the company setting that it needs
	Scope      string
	Text       string
	Ticked     bool
	Asked      bool   // by the client
	Has        bool   // from an earlier consent of this person to this client
	Barred     string // why the person cannot grant it; empty: they can
	Locked     bool   // until the person proves who they are
}

// inWords are the scopes in words, grouped by what they can do.
func inWords() []scopeGroup {
	checks := " The application is asked to show you each change first; Muster cannot check that it does."
	return []scopeGroup{
		{"Read", false, []scopeChoice{inWord(access.DevicesRead, access.NoGate, ""), inWord(access.PoliciesRead, access.NoGate, "")}},
		{"Change", false, []scopeChoice{inWord(access.DevicesCommand, access.DeviceCommands, ""),
			inWord(access.PoliciesWrite, access.PolicyChanges, checks), inWord(access.Provisioning, access.ProvisioningGate, "")}},
		{"Destroy", true, []scopeChoice{inWord(access.DevicesCommandDestructive, access.DestructiveCommands, "")}},
	}
}

func inWord(p access.Permission, gate access.Gate, more string) scopeChoice {
	return scopeChoice{permission: p, gate: gate, Text: p.Help() + more}
}

// barred says why a person cannot grant the scope; empty: they can.
func (s scopeChoice) barred(person access.Principal) string {
	if !person.Permissions.Has(s.permission) {
		return "You do not have this permission. An administrator can give it to you."
	}
	person.Kind = access.Connection // the settings bind the client, not the person
	if access.Grant(person, s.permission, s.gate) != nil {
		return "Turned off for your company under AI agent access."
	}
	return ""
}

// grantable are the scopes that a person can grant.
func grantable(person access.Principal) access.Permission {
	var all access.Permission
	for _, g := range inWords() {
		for _, s := range g.Scopes {
			if s.barred(person) == "" {
				all |= s.permission
			}
		}
	}
	return all
}

// question puts the request into words for the person who answers it. What
// cannot be undone is never ticked in advance: a client, or a model that calls
// one of its tools, can ask for anything.
func question(a authorization, v web.Person, company string, has access.Permission) consentQuestion {
	q := consentQuestion{Client: displayName(a.Client), Company: company, Destination: destination(a.RedirectURI),
		Loopback: toLoopback(a.RedirectURI), User: v.User.Email, UserID: v.User.ID, Request: a.Query.Encode(), Groups: inWords()}
	if isDocumentID(a.Client.ID) {
		q.ClientHost = host(a.Client.ID)
	}
	for _, g := range q.Groups {
		for i := range g.Scopes {
			s := &g.Scopes[i]
			s.Scope, s.Asked, s.Has, s.Barred = s.permission.Scopes()[0], a.Scopes.Has(s.permission), has.Has(s.permission),
				s.barred(v.Principal)
			s.Ticked = s.Asked && s.Barred == "" && !g.Danger
		}
	}
	return q
}

// locked locks what takes a proof of identity.
func (q *consentQuestion) locked() {
	for _, g := range q.Groups {
		for i := range g.Scopes {
			if s := &g.Scopes[i]; !reading.Has(s.permission) && s.Barred == "" {
				s.Locked, s.Ticked = true, false
			}
		}
	}
}

// destination says where an answer goes, in words for the person.
func destination(redirect string) string {
	if scheme := appScheme(redirect); scheme != "" {
		return "the application on this device that opens " + scheme + ": links"
	}
	if toLoopback(redirect) {
		return "a program on this computer (" + host(redirect) + ")"
	}
	return host(redirect)
}

// displayName is a client's own name, which is not verified, made safe to
// read: printable characters only, and never empty.
func displayName(c oauth.Client) string {
	name := validate.Clean(c.Name, maxClientName)
	if validate.Blank(name) {
		return "An application without a name"
	}
	return name
}

func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
