package approvals

import (
	"net/url"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/signature"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

func callPath(id string) string { return approval.Path + "/" + url.PathEscape(id) }

// call finds the authorization that a visit is about, of a device that the person may see.
func (s *Section) call(v *frame.Visit) (matter, error) {
	a, seen, err := s.Store.SeenAuthorization(v.Context(), v.Company.ID, v.PathValue("id"))
	if err == nil {
		a, err = s.Store.PresentAuthorization(v.Context(), a, s.Verifier)
	}
	if err == nil && v.Principal.Policies != nil && (seen.Device.Device == nil || !v.Principal.MaySee(seen.Device.Device.PolicyID)) {
		err = fault.New(fault.NotFound, "not theirs")
	}
	if fault.CodeOf(err) == fault.NotFound { // of no authorization, and of one that the person may not see: they are not told apart
		err = fault.New(fault.NotFound, "Check the address: there is no such authorization.")
	}
	if err != nil {
		return matter{}, err
	}
	row, here := command.Type(a.Command).Row(), callPath(a.ID)
	m := matter{Subject: a.Subject(seen), title: "Authorize a command", summary: row.Title + ": " + frame.Plain(seen.Device.Identification),
		section: frame.DevicesPath, path: here, back: approval.Path, backTo: "Authorizations", note: a.Note, closed: closedCall(v, a, seen),
		promise: "The caller can then send this command once, within ten minutes.",
		approve: action{signature.Approve, here, "Authorize with a passkey", "destructive", "Authorized. The caller can send the command once, within ten minutes."},
		decline: action{signature.Decline, here, "Decline with a passkey", "outline", "Declined. Nothing is sent."}}
	document, _ := m.Document(signature.Head{}, nil).(signature.Call)
	var effects []string
	if seen.Device.Device != nil {
		effects = row.EffectsOn(seen.Device.Device)
	}
	m.body = callBody(v, a, seen, document, effects, m.closed == "")
	return m, nil
}

// closedCall says why nothing can be decided any more; empty: it can.
func closedCall(v *frame.Visit, a approval.Authorization, seen approval.Seen) string {
	by := frame.Plain(a.DecidedByName)
	switch a.At(v.Now) {
	case approval.Used:
		return by + " authorized it, and the caller used it: the command was recorded. It cannot be used again."
	case approval.Declined:
		return because(by+" declined it. Nothing was sent.", a.Reason)
	case approval.Approved:
		return by + " authorized it. The caller can send the command once, until ten minutes after that."
	case approval.Expired:
		return "It has expired. Nothing was sent; the caller can ask again."
	case approval.Waiting:
	}
	if gone := a.Gone(seen); gone != nil {
		return frame.Sentence(fault.From(gone).Detail) + " This can never be used."
	}
	return ""
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
		if err == nil {
			a, err = s.Store.PresentAuthorization(v.Context(), a, s.Verifier)
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
