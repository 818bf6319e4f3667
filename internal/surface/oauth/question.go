package oauth

import (
	"net/url"
	"strings"
	"unicode"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/surface/web"
)

// consentQuestion is what the consent page asks.
type consentQuestion struct {
	Client       string // as it calls itself
	ClientHost   string // of its metadata document; empty: it registered itself
	RedirectHost string
	Loopback     bool
	User         string
	Request      string // the request's parameters, to come back with the answer
	Groups       []scopeGroup
}

// scopeGroup is a set of scopes of the same danger.
type scopeGroup struct {
	Title  string
	Danger bool
	Scopes []scopeChoice
}

// scopeChoice is one scope in words.
type scopeChoice struct {
	Scope  string
	Text   string
	Asked  bool
	Barred string // why the person cannot grant it; empty: they can
}

// dangers are the scopes in words, grouped by what they can do.
type dangers []struct {
	title  string
	danger bool
	scopes []scopeWords
}

type scopeWords struct {
	permission access.Permission
	gate       access.Gate // the company setting that it needs
	text       string
}

func inWords() dangers {
	return dangers{
		{"Look", false, []scopeWords{
			{access.DevicesRead, access.NoGate, "See devices, their reports and command history"},
			{access.PoliciesRead, access.NoGate, "See policies, their settings and proposals"}}},
		{"Change", false, []scopeWords{
			{access.DevicesCommand, access.DeviceCommands, "Send commands: lock, message, lost mode, restart, move to another policy"},
			{access.PoliciesWrite, access.PolicyChanges, "Propose policy changes, and apply those that you approve"},
			{access.Provisioning, access.ProvisioningGate, "Create QR codes that enrol new devices"}}},
		{"Destroy", true, []scopeWords{
			{access.DevicesCommandDestructive, access.DestructiveCommands, "Wipe devices, change screen locks, release ownership"}}},
	}
}

// barred says why a person cannot grant the scope; empty: they can.
func (s scopeWords) barred(person access.Principal) string {
	if !person.Permissions.Has(s.permission) {
		return "You may not do this yourself; an administrator can grant it."
	}
	person.Kind = access.Connection // the settings bind the client, not the person
	if access.Grant(person, s.permission, s.gate) != nil {
		return "Your company has turned this off under AI agent access."
	}
	return ""
}

// grantable are the scopes that a person can grant.
func grantable(person access.Principal) access.Permission {
	var all access.Permission
	for _, d := range inWords() {
		for _, s := range d.scopes {
			if s.barred(person) == "" {
				all |= s.permission
			}
		}
	}
	return all
}

// question puts the request into words for the person who is to answer it.
func question(a authorization, v web.Visitor) consentQuestion {
	q := consentQuestion{Client: displayName(a.Client), RedirectHost: host(a.RedirectURI), Loopback: loopbackOnly(a.Client.RedirectURIs),
		User: v.User.Email, Request: a.Query.Encode()}
	if isDocumentID(a.Client.ID) {
		q.ClientHost = host(a.Client.ID)
	}
	for _, d := range inWords() {
		group := scopeGroup{Title: d.title, Danger: d.danger}
		for _, s := range d.scopes {
			choice := scopeChoice{Scope: s.permission.Scopes()[0], Text: s.text, Asked: a.Scopes.Has(s.permission)}
			if choice.Barred = s.barred(v.Principal); choice.Barred != "" {
				choice.Asked = false
			}
			group.Scopes = append(group.Scopes, choice)
		}
		q.Groups = append(q.Groups, group)
	}
	return q
}

// displayName is a client's own name, which nobody has verified, made safe to
// read: printable characters only, and never empty.
func displayName(c access.OAuthClient) string {
	name := strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, c.Name))
	if name == "" {
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

// formTarget is the source of an address as a security policy has it: its
// origin, or the scheme alone where the host is an IPv6 address, which policies
// cannot express.
func formTarget(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return ""
	case strings.HasPrefix(u.Host, "["):
		return u.Scheme + ":"
	}
	return u.Scheme + "://" + u.Host
}
