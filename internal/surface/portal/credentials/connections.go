package credentials

import (
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// connectionRow is a connection in the table.
type connectionRow struct {
	oauth.Connection
	User   account.User
	Tone   frame.Tone
	State  string
	Live   bool
	Scopes []scope
}

// scope is one that a connection has, or could be given.
type scope struct {
	Permission access.Permission
	Name       string
	On         bool
	Reason     string // why it cannot be given; empty: it can
}

func (s *Section) listConnections(v *frame.Visit, page *view, people map[string]account.User) error {
	all, err := s.Connections.Store.Connections(v.Context(), v.Company.ID)
	if err != nil {
		return err
	}
	for _, o := range all {
		if o.UserID != v.User.ID && !page.MayKeys {
			continue
		}
		if !o.RevokedAt.IsZero() && !page.All {
			page.Gone++
			continue
		}
		row := connectionRow{Connection: o, User: people[o.UserID], Live: o.RevokedAt.IsZero(),
			Tone: frame.OK, State: "Connected"}
		switch {
		case !row.Live:
			row.Tone, row.State = frame.Idle, "Revoked"
		case row.User.Disabled:
			row.Tone, row.State = frame.Bad, "Stopped: its user is disabled"
		case o.Frozen:
			row.Tone, row.State = frame.Warn, "Frozen"
		case o.Grants == 0: // its tokens have all run out: its user has to connect it again
			row.Tone, row.State = frame.Idle, "Signed out"
		case !v.Company.Settings.OAuthConnections:
			row.Tone, row.State = frame.Warn, "Stopped by the company setting"
		}
		row.Scopes = scopesOf(o, row.User, v.User)
		page.Connections = append(page.Connections, row)
	}
	return nil
}

func scopesOf(o oauth.Connection, owner, by account.User) (all []scope) {
	for p := access.Permission(1); p <= access.All; p <<= 1 {
		s := scope{Permission: p, Name: p.Scopes()[0], On: o.Scopes.Has(p)}
		switch {
		case s.On:
		case !owner.Rights.Permissions().Has(p):
			s.Reason = owner.Name + " may not do this, so the connection may not either."
		case !by.Rights.Permissions().Has(p):
			s.Reason = "You may not do this yourself."
		case owner.SeesMoreThan(by):
			s.Reason = owner.Name + " may see policies that you may not."
		}
		all = append(all, s)
	}
	return all
}

// chosenScopes are the scopes that the form adds to a connection and takes away. What is
// taken away stays away, implied or not. What the form was shown with and still has is left
// as it is by now.
func chosenScopes(v *frame.Visit) (add, remove access.Permission, err error) {
	ticked, err := parseScopes(v.Form["scope"])
	if err != nil {
		return 0, 0, err
	}
	shown, sent := v.Was("scope")
	if !sent {
		return ticked, access.All &^ ticked, nil
	}
	had, err := parseScopes(strings.Fields(shown))
	return ticked &^ had, had &^ ticked, err
}

// parseScopes reads scopes without what they imply.
func parseScopes(names []string) (scopes access.Permission, err error) {
	for _, name := range names {
		p, err := access.ParsePermissions([]string{name})
		if err != nil {
			return 0, fault.Invalid(err.Error())
		}
		scopes |= p
	}
	return scopes, nil
}

// widens reports whether the form gives a connection more than it has, beyond reading.
func (s *Section) widens(v *frame.Visit) (bool, error) {
	add, _, err := chosenScopes(v)
	if err != nil {
		return false, err
	}
	all, err := s.Connections.Store.Connections(v.Context(), v.Company.ID)
	for _, o := range all {
		if o.ID == v.PathValue("connection") {
			add &^= o.Scopes
		}
	}
	return add.Writes(), err
}

func (s *Section) setScopes(v *frame.Visit) error {
	add, remove, err := chosenScopes(v)
	if err != nil {
		return err
	}
	o, err := s.Connections.SetScopes(v.Context(), v.User, v.PathValue("connection"), add, remove)
	return s.redirect(v, err, "What "+o.ClientName+" may do is changed, from its next call on.")
}

// thaws reports whether a connection may act again.
func thaws(v *frame.Visit) (bool, error) { return v.Form.Get("frozen") != "true", nil }

func (s *Section) freeze(v *frame.Visit) error {
	frozen := v.Form.Get("frozen") == "true"
	o, err := s.Connections.Freeze(v.Context(), v.User, v.PathValue("connection"), frozen)
	return s.redirect(v, err, o.ClientName+frame.Either(frozen, " is frozen: its calls are refused until it is thawed.", " may act again."))
}

func (s *Section) revokeConnection(v *frame.Visit) error {
	o, err := s.Connections.Revoke(v.Context(), v.User, v.PathValue("connection"))
	return s.redirect(v, err, o.ClientName+" is disconnected.")
}

// redirect goes back to the page and says how it went.
func (s *Section) redirect(v *frame.Visit, err error, done string) error {
	return v.Finish(frame.AccessPath+"#connections", err, done, fault.Refused, fault.InvalidArguments)
}
