package approvals

import (
	"net/url"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
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
	if err == nil && !seen.Device.VisibleTo(v.Principal) {
		err = fault.New(fault.NotFound, "not theirs")
	}
	if fault.CodeOf(err) == fault.NotFound { // of no authorization, and of one that the person may not see: they are not told apart
		err = fault.New(fault.NotFound, "Check the address: there is no such authorization.")
	}
	if err != nil {
		return matter{}, err
	}
	gone := seen.Device.ID == ""
	if gone {
		seen.Device.Identification = deletedDevice
	}
	row, here := command.Type(a.Command).Row(), callPath(a.ID)
	m := matter{Subject: a.Subject(seen), title: row.Label + ": " + frame.Plain(seen.Device.Identification), section: frame.DevicesPath,
		here: here, path: here,
		topics: "authorization:" + a.ID + " command:" + a.AssetID, back: approval.Path, backTo: "Authorizations", note: a.Note,
		closed: closedCall(v, a, seen), promise: "The caller can then send this command once, within ten minutes.",
		approve: action{signature.Approve, here, "Authorize with a passkey", "destructive",
			"Authorized. The caller can send the command once, within ten minutes."},
		decline: action{signature.Decline, here, "Decline with a passkey", "outline", "Declined. Nothing is sent."}}
	m.tone, m.standing = status(a.At(v.Now))
	if state := a.At(v.Now); m.closed == "" || state == approval.Approved {
		m.until = a.EndsAt()
	}
	if m.steps, err = s.callSteps(v, a); err != nil {
		return matter{}, err
	}
	document, _ := m.Document(signature.Head{}, nil).(signature.Call)
	foreign := func(p policy.Policy) bool { return !v.Principal.MaySee(p.ID) }
	if a.Moves() && (!v.May(account.ViewPolicies) || !v.Principal.MaySee(a.Move.From.ID) || !v.Principal.MaySee(a.Move.To.ID) ||
		slices.ContainsFunc(seen.OnTheWay, foreign)) {
		document.Policies = nil // they are not for this person, who cannot decide either
	}
	m.answers = callAnswers(row, a, seen, document)
	if !gone { // what was shown is in the signed document
		m.body = callBody(seen, document)
	}
	return m, nil
}

// callAnswers are what a person asks first about a command.
func callAnswers(row *command.Row, a approval.Authorization, seen approval.Seen, d signature.Call) []answer {
	happens := answer{question: "What happens", text: row.Title + ".", grave: d.Irreversible}
	if seen.Device.Device != nil {
		happens.text = strings.Join(row.EffectsOn(seen.Device.Device), " ")
	}
	if d.Policies != nil {
		happens.text, happens.more = "Moves the device from "+frame.Plain(d.Policies.From.Name)+" to "+frame.Plain(d.Policies.To.Name)+".",
			frame.Count(len(d.Policies.Changes), "setting changes", "settings change")+". Impact: "+frame.Word(d.Policies.Impact)+"."
	}
	undo := answer{question: "Can be undone", text: "Yes, by another command.", grave: d.Irreversible}
	switch {
	case d.Policies != nil && d.Irreversible:
		undo.text = "Not everything: see the warnings at the changes."
	case d.Policies != nil:
		undo.text = "Yes, by moving the device back."
	case d.Irreversible:
		undo.text = "No."
	}
	device := answer{question: "Device", text: frame.Plain(d.Device.Name), more: deviceText(d.Device)}
	if d.Device.ID != "" {
		device.link = frame.DevicePath(d.Device.ID)
	}
	return []answer{happens, device,
		{question: "Asked by", text: frame.Caller(a.Caller.Kind, a.Caller.Name, a.Caller.Prefix, seen.CallerUser)}, undo}
}

// deviceText tells a device from others of its name.
func deviceText(d signature.Device) string {
	labeled := func(label, text string) string { return frame.Either(text == "", "", label+frame.Plain(text)) }
	return frame.Joined(" · ", labeled("serial number ", d.SerialNumber), labeled("", d.Model), labeled("policy ", d.Policy.Name),
		labeled("of ", d.User))
}

// callSteps is what has happened to an authorization, until its command ended.
func (s *Section) callSteps(v *frame.Visit, a approval.Authorization) ([]step, error) {
	steps := []step{{at: a.CreatedAt, text: "Asked for by " + frame.Caller(a.Caller.Kind, a.Caller.Name, a.Caller.Prefix, ""),
		tone: frame.Idle}}
	by := frame.Plain(a.DecidedByName)
	switch a.State {
	case approval.Declined:
		return append(steps, step{at: a.DecidedAt, text: "Declined by " + by, more: a.Reason, tone: frame.Idle}), nil
	case approval.Approved, approval.Used:
		steps = append(steps, step{at: a.DecidedAt, text: "Authorized by " + by, tone: frame.OK})
	case approval.Waiting, approval.Expired:
	}
	if a.At(v.Now) == approval.Expired && !a.CallerEnded(v.Now) {
		return append(steps, step{at: a.EndsAt(), text: "Expired: nothing was sent", tone: frame.Idle}), nil
	}
	if a.State != approval.Used {
		return steps, nil
	}
	steps = append(steps, step{at: a.UsedAt, text: "Sent by the caller", link: frame.DevicePath(a.AssetID) + "/commands", tone: frame.OK})
	c, err := s.Store.Command(v.Context(), a.CommandID)
	if fault.CodeOf(err) == fault.NotFound || err == nil && c.CompanyID != a.CompanyID {
		return steps, nil
	}
	return append(steps, outcome(c)), err
}

// outcome is how a command ended, or that it has not.
func outcome(c command.Command) step {
	switch c.State {
	case command.Succeeded:
		return step{text: "The device confirmed it", tone: frame.OK}
	case command.Failed:
		return step{text: "It failed", more: c.Outcome, tone: frame.Bad}
	case command.Unconfirmed:
		return step{text: "Not confirmed by the device", tone: frame.Warn}
	case command.Prepared, command.Sent:
	}
	return step{text: "In progress until the device confirms it", tone: frame.Warn}
}

// closedCall says why nothing can be decided any more; empty: it can.
func closedCall(v *frame.Visit, a approval.Authorization, seen approval.Seen) string {
	by, at := frame.Plain(a.DecidedByName), " at "+frame.Exact(a.DecidedAt)
	switch a.At(v.Now) {
	case approval.Used:
		return by + " authorized it" + at + ", and the caller used it: the command was recorded. It cannot be used again."
	case approval.Declined:
		return because(by+" declined it"+at+". Nothing was sent.", a.Reason)
	case approval.Approved:
		return by + " authorized it" + at + ". The caller can send the command once in the time that is left."
	case approval.Expired:
		return frame.Either(a.CallerEnded(v.Now), frame.Sentence(approval.NoCaller)+" Nothing was sent.",
			"It has expired. Nothing was sent; the caller can ask again.")
	case approval.Waiting:
	}
	if gone := a.Gone(seen); gone != nil {
		return frame.Sentence(fault.From(gone).Detail) + " This can never be used."
	}
	return ""
}

// deletedDevice stands for a device that is not there any more.
const deletedDevice = "a deleted device"

// listed bounds the list.
const listed = 100

// entry is a line of the list.
type entry struct {
	approval.Authorization
	Device string
	Title  string
}

func (s *Section) list(v *frame.Visit) error {
	all, err := s.Store.Authorizations(v.Context(), v.Company.ID, v.Principal.Policies, listed)
	if err != nil {
		return err
	}
	var entries []entry
	for _, a := range all {
		device, err := asset.Find(v.Context(), s.Assets, v.Principal, a.AssetID)
		if fault.CodeOf(err) == fault.NotFound && v.Principal.Policies != nil {
			continue // it was moved out of their sight at this moment
		}
		if fault.CodeOf(err) == fault.NotFound {
			device.Identification, err = deletedDevice, nil
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

// status is a state in a word.
func status(s approval.State) (frame.Tone, string) {
	switch s {
	case approval.Waiting:
		return frame.Warn, "Needs authorization"
	case approval.Approved:
		return frame.OK, "Authorized"
	case approval.Used:
		return frame.OK, "Used"
	case approval.Declined:
		return frame.Idle, "Declined"
	default:
		return frame.Idle, "Expired"
	}
}
