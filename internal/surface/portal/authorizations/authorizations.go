// Package authorizations is the portal's page on which a person authorizes or declines
// one call of an API key or an AI client, with a passkey.
package authorizations

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/signature"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// Store keeps authorizations. Find methods return fault.NotFound.
type Store interface {
	// SeenAuthorization returns an authorization with its device as it now is, and with
	// the names that people see.
	SeenAuthorization(ctx context.Context, companyID, id string) (approval.Authorization, asset.Asset, approval.Seen, error)
	// Authorizations lists those that were asked for last.
	Authorizations(ctx context.Context, companyID string, limit int) ([]approval.Authorization, error)
	// DecideAuthorization records what a user signed; fault.Refused if it does not count.
	DecideAuthorization(ctx context.Context, companyID, id, userID, passkeyID string, signed signature.Signed) error
	// Approvers are the company's users as those who may decide.
	Approvers(ctx context.Context, companyID string) ([]access.Approver, error)
}

// Section serves the page and the list.
type Section struct {
	Store    Store
	Assets   asset.Finder
	Passkeys account.Passkeys
}

// Routes are the section's addresses.
func (s *Section) Routes() []frame.Route {
	const view = account.ViewDevices
	return []frame.Route{
		{Pattern: "GET " + approval.Path, Needs: view, Serve: s.list},
		{Pattern: "GET " + approval.Path + "/{id}", Needs: view, Serve: s.show},
		{Pattern: "POST " + approval.Path + "/{id}", Needs: view, Serve: s.decide},
	}
}

func pathOf(id string) string { return approval.Path + "/" + url.PathEscape(id) }

// asked is what the page shows.
type asked struct {
	approval.Authorization
	Seen    approval.Seen
	Device  asset.Asset
	Command *command.Row
	// Closed says why there is nothing to decide, Barred why this person may not; Alone:
	// no other person may either.
	Closed, Barred string
	Alone          bool
	NoPasskey      bool
	From           time.Time // when the person may decide, if only an age is missing

	Approve, Decline account.Challenge
}

// find reads an authorization for a device that the person may see.
func (s *Section) find(v *frame.Visit) (a asked, err error) {
	if a.Authorization, a.Device, a.Seen, err = s.Store.SeenAuthorization(v.Context(), v.Company.ID, v.PathValue("id")); err != nil {
		if fault.CodeOf(err) == fault.NotFound {
			err = errUnknown()
		}
		return a, err
	}
	if v.Principal.Policies != nil && (a.Device.Device == nil || !v.Principal.MaySee(a.Device.Device.PolicyID)) {
		return a, errUnknown()
	}
	a.Command = command.Type(a.Authorization.Command).Row()
	return a, nil
}

// errUnknown is of an address of no authorization, and of one that the person may not see:
// the two are not told apart.
func errUnknown() error {
	return fault.New(fault.NotFound, "Check the address: there is no such authorization.")
}

func (s *Section) show(v *frame.Visit) error {
	a, err := s.find(v)
	if err != nil {
		return err
	}
	if a.Closed = a.closed(v.Now); a.Closed == "" {
		err = s.admit(v, &a)
	}
	if err == nil && a.Closed == "" && a.Barred == "" {
		if a.Approve, err = s.begin(v, a, signature.Approve); err == nil {
			a.Decline, err = s.begin(v, a, signature.Decline)
		}
	}
	if err != nil {
		return err
	}
	return v.Show("Authorize a command", frame.DevicesPath, page(v, a))
}

// closed says why nothing can be decided any more; empty: it can.
func (a asked) closed(now time.Time) string {
	by := frame.Plain(a.DecidedByName)
	switch a.At(now) {
	case approval.Used:
		return by + " authorized it, and the caller used it: the command was recorded. It cannot be used again."
	case approval.Declined:
		return by + " declined it. Nothing was sent."
	case approval.Approved:
		return by + " authorized it. The caller can send the command once, until ten minutes after that."
	case approval.Expired:
		return "It has expired. Nothing was sent; the caller can ask again."
	case approval.Waiting:
	}
	if a.gone() {
		return "The device is no longer enrolled as it was when this was asked for: this can never be used."
	}
	return ""
}

// gone reports whether the device is not in the enrollment that it was for.
func (a asked) gone() bool { return a.Device.Device == nil || a.Device.Device.Epoch != a.Epoch }

// admit finds out whether the person may decide, and if not why.
func (s *Section) admit(v *frame.Visit, a *asked) error {
	if !s.Passkeys.Available() {
		a.Barred = "Passkeys do not work at this address of Muster, which has no host name. The operator has to give it one."
		return nil
	}
	all, err := s.Store.Approvers(v.Context(), v.Company.ID)
	if err != nil {
		return err
	}
	controls, matter := v.Company.Settings.Controls, a.Matter(a.Device.Device.PolicyID)
	may := func(who access.Approver) bool { return who.May(matter, controls, v.Now) == nil }
	for _, who := range all {
		if who.UserID != v.User.ID {
			continue
		}
		if refused := who.May(matter, controls, v.Now); refused != nil {
			a.Barred, a.NoPasskey = frame.Sentence(fault.From(refused).Detail), len(who.Passkeys) == 0
			if from := who.OldEnoughAt(matter, controls); from.After(v.Now) && who.May(matter, controls, from) == nil {
				a.From = from
			}
			a.Alone = !slices.ContainsFunc(all, may)
		}
		return nil
	}
	return fault.New(fault.NotFound, "your account is not there any more")
}

// begin asks for a signature of what is shown.
func (s *Section) begin(v *frame.Visit, a asked, d signature.Decision) (account.Challenge, error) {
	document, err := a.Document(a.Seen, signature.Person{ID: v.User.ID, Name: v.User.Name}, d, signature.Time(v.Now))
	if err != nil {
		return account.Challenge{}, err
	}
	return s.Passkeys.BeginSigning(v.Context(), v.User, document)
}

// decide takes the signed decision. What was signed says which one it is.
func (s *Section) decide(v *frame.Visit) error {
	a, err := s.find(v)
	if err != nil {
		return err
	}
	here := pathOf(a.ID)
	signed, key, err := v.Signed(s.Passkeys)
	if err == nil {
		err = s.Store.DecideAuthorization(v.Context(), v.Company.ID, a.ID, v.User.ID, key.ID, signed)
	}
	if err != nil {
		return v.Refused(here, err, fault.Refused, fault.Unauthorized, fault.Unsupported, fault.InvalidArguments)
	}
	return v.Redirect(here, frame.Done("Recorded."))
}

// listed bounds the list.
const listed = 100

// entry is a line of the list.
type entry struct {
	approval.Authorization
	Device string
	Title  string
}

func (s *Section) list(v *frame.Visit) error {
	all, err := s.Store.Authorizations(v.Context(), v.Company.ID, listed)
	if err != nil {
		return err
	}
	var entries []entry
	for _, a := range all {
		device, err := asset.Find(v.Context(), s.Assets, v.Principal, a.AssetID)
		if fault.CodeOf(err) == fault.NotFound {
			continue
		}
		if err != nil {
			return err
		}
		entries = append(entries, entry{a, device.Identification, command.Type(a.Command).Row().Title})
	}
	return v.Show("Authorizations", frame.DevicesPath, listPage(v, entries))
}

// caller names who calls, as people know them.
func caller(c approval.Caller) string {
	if c.Kind == access.Connection {
		return "the AI client " + frame.Plain(c.Name)
	}
	return "the API key " + frame.Plain(c.Name) + " (" + c.Prefix + "…)"
}

// status is a state in a word.
func status(s approval.State) (frame.Tone, string) {
	switch s {
	case approval.Waiting:
		return frame.Warn, "Waits for a person"
	case approval.Approved:
		return frame.OK, "Authorized"
	case approval.Used:
		return frame.OK, "Used"
	case approval.Declined:
		return frame.Bad, "Declined"
	default:
		return frame.Idle, "Expired"
	}
}
