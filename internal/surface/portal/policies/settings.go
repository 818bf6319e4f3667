package policies

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// sheet is a policy's page around one of its tabs.
type sheet struct {
	policy.Policy
	Tab string // "", revisions, devices, json
	// Open is the dialog that is open again with what the person filled in. Wrong is what is wrong in its fields, and Problem
	// why else it was not saved.
	Open, Problem string
	Wrong         map[string]string
}

// typed is what an input of a dialog holds: what the person changed it to, where it is open again, or what is.
func (s sheet) typed(v *frame.Visit, dialog, name, is string) string {
	if s.Open != dialog || v.Kept(name) {
		return is
	}
	return v.Typed(name, is)
}

// wrong is what is wrong in a field of a dialog that is open again.
func (s sheet) wrong(dialog, field string) string {
	return frame.Either(s.Open == dialog, s.Wrong[field], "")
}

// group is a group of settings, in the catalog's order.
type group struct {
	ID     string
	Rows   []policy.Value
	Set    int
	Unset  int
	Custom int
}

func grouped(values []policy.Value) []group {
	var all []group
	for _, id := range []string{"APPS", "SECURITY", "RESTRICTIONS", "CONNECTIVITY", "LOCATION", "REPORTING"} {
		g := group{ID: id}
		for _, value := range values {
			if value.Group != id {
				continue
			}
			g.Rows = append(g.Rows, value)
			switch value.Value {
			case policy.NotSet:
				g.Unset++
			case policy.Custom:
				g.Custom++
			default:
				g.Set++
			}
		}
		all = append(all, g)
	}
	return all
}

// text says how many of the group are set.
func (g group) text() string {
	text := fmt.Sprintf("%d set", g.Set)
	if g.Unset > 0 {
		text += fmt.Sprintf(", %d not set", g.Unset)
	}
	if g.Custom > 0 {
		text += fmt.Sprintf(", %d custom", g.Custom)
	}
	return text
}

// open finds the policy of the address. A tab that moves with the policy asks
// for it each time.
func (s *Section) open(v *frame.Visit) (policy.Policy, error) {
	return s.Policies.Open(v.Context(), v.Principal, v.PathValue("id"))
}

func (s *Section) settings(v *frame.Visit, p policy.Policy) error {
	if v.Partial() {
		return v.Fragment(heldPart(v, p))
	}
	return s.showSettings(v, http.StatusOK, sheet{Policy: p})
}

// showSettings shows the settings and the dialog that is open again, if there is one.
func (s *Section) showSettings(v *frame.Visit, status int, page sheet) error {
	values, err := policy.View(page.Type, page.Document)
	if err != nil {
		return err
	}
	return v.ShowStatus(status, page.Name, frame.PoliciesPath, settingsPage(v, page, grouped(values)))
}

// refused shows the settings with a dialog as the person filled it in, and says why that was refused.
func (s *Section) refused(v *frame.Visit, p policy.Policy, dialog string, err error) error {
	page := sheet{Policy: p, Open: dialog, Wrong: frame.Fields(err)}
	if len(page.Wrong) == 0 {
		page.Problem = frame.Sentence(fault.From(err).Detail)
	}
	return s.showSettings(v, http.StatusUnprocessableEntity, page)
}

// fieldOf is the name of a setting's input.
func fieldOf(id string) string { return "s." + id }

// asked are the settings that a form changes, compared with the values of the
// version that the person saw.
func asked(form url.Values, seen []policy.Value) []policy.Change {
	var changes []policy.Change
	for _, value := range seen {
		if wanted := form.Get(fieldOf(value.ID)); wanted != "" && wanted != value.Value {
			changes = append(changes, policy.Change{Setting: value.ID, Value: wanted})
		}
	}
	return changes
}

// seenVersion is the version of the policy that the person saw.
func seenVersion(v *frame.Visit) (int, error) {
	version, err := strconv.Atoi(v.Form.Get("version"))
	if err != nil {
		return 0, fault.Invalid("the form does not say which version was seen")
	}
	return version, nil
}

// edited reads a form of settings: the policy as it is, the version that the
// person saw, and what they want changed.
func (s *Section) edited(v *frame.Visit) (p policy.Policy, version int, changes []policy.Change, err error) {
	if p, err = s.open(v); err != nil {
		return p, 0, nil, err
	}
	if version, err = seenVersion(v); err != nil {
		return p, 0, nil, err
	}
	seen := p.Document
	if version != p.Version {
		r, err := s.Policies.Revision(v.Context(), v.Principal, p.ID, version)
		if err != nil {
			return p, 0, nil, err
		}
		seen = r.Document
	}
	values, err := policy.View(p.Type, seen)
	return p, version, asked(v.Form, values), err
}

// review takes a form of settings to its review: a proposal of the person's
// own, or for an agent's policy the page that saves it. If the policy was saved
// since, it says by whom and offers the same changes on what is current.
func (s *Section) review(v *frame.Visit) error {
	p, version, changes, err := s.edited(v)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		return v.Redirect(frame.PolicyPath(p.ID), frame.Flash{Tone: frame.Idle, Text: "Nothing to review: no setting was changed."})
	}
	conflict, err := s.Policies.Conflict(v.Context(), v.Principal, p.ID, version)
	if err != nil {
		return err
	}
	if conflict != nil {
		return v.ShowStatus(http.StatusConflict, p.Name, frame.PoliciesPath, conflictPage(v, sheet{Policy: p}, conflict, changes))
	}
	if p.Type == policy.Agent {
		d, err := s.Policies.Preview(v.Context(), v.Principal, p.ID, version, policy.Edit{Changes: changes})
		return v.ShowUnless(err, p.Name, frame.PoliciesPath, agentReview(v, sheet{Policy: p}, d, changes))
	}
	return s.propose(v, "update_policy_settings", map[string]any{"policyId": p.ID, "changes": changes}, frame.PolicyPath(p.ID))
}

// propose is proposed for a form of the page from, which then says what was refused.
func (s *Section) propose(v *frame.Visit, operation string, args map[string]any, from string, flashes ...frame.Flash) error {
	return v.Refused(from, s.proposed(v, operation, args, flashes...),
		fault.Refused, fault.InvalidArguments, fault.RateLimited, fault.Unsupported)
}

// proposed makes a proposal of the person's own and opens its review, with the flashes.
func (s *Section) proposed(v *frame.Visit, operation string, args map[string]any, flashes ...frame.Flash) error {
	result, err := v.Run(operation, args, "")
	if err != nil {
		return err
	}
	made, ok := result.(proposal.View)
	if !ok {
		return fmt.Errorf("%s returns %T", operation, result)
	}
	return v.Redirect(frame.ProposalPath(made.ProposalID), flashes...)
}

// save saves the reviewed changes of an agent's policy.
func (s *Section) save(v *frame.Visit) error {
	p, _, changes, err := s.edited(v)
	if err != nil {
		return err
	}
	if p.Type != policy.Agent {
		return fault.New(fault.Unsupported, "changes of this policy are applied from their proposal")
	}
	return s.saved(v, p, "", policy.Edit{Changes: changes})
}

// The dialogs of a policy with fields.
const (
	copyDialog    = "copy"
	detailsDialog = "details"
	updatesDialog = "system-update"
)

// saved saves an edit of the version that the person saw, made in a dialog or, without one, reviewed, and opens the policy.
func (s *Section) saved(v *frame.Visit, p policy.Policy, dialog string, e policy.Edit) error {
	version, err := seenVersion(v)
	if err != nil {
		return err
	}
	after, err := s.Policies.SaveBy(v.Context(), v.Principal, p.ID, version, e)
	c, conflicts := errors.AsType[*policy.Conflict](err)
	code := fault.CodeOf(err)
	switch {
	case conflicts && dialog != "":
		return s.showSettings(v, http.StatusConflict, sheet{Policy: c.Current, Open: dialog, Problem: fmt.Sprintf(
			"%s saved version %d while you edited version %d. To put yours on it, save again.",
			authorWord(c.Saved.SavedBy), c.Current.Version, c.Expected)})
	case conflicts:
		return v.ShowStatus(http.StatusConflict, p.Name, frame.PoliciesPath, conflictPage(v, sheet{Policy: c.Current}, c, e.Changes))
	case dialog != "" && (code == fault.Refused || code == fault.InvalidArguments || code == fault.Unavailable):
		return s.refused(v, p, dialog, err)
	case err != nil:
		return v.Refused(frame.PolicyPath(p.ID), err, fault.Refused, fault.InvalidArguments, fault.Unavailable)
	}
	if after.Version == p.Version {
		return v.Redirect(frame.PolicyPath(p.ID), frame.Flash{Tone: frame.Idle, Text: "Nothing was changed."})
	}
	return v.Redirect(frame.PolicyPath(p.ID), frame.Done(fmt.Sprintf("Saved %s as version %d.", after.Name, after.Version)))
}

// details saves those of name, description, labels and group that the person changed.
func (s *Section) details(v *frame.Visit, p policy.Policy) error {
	newName, inGroup := v.Form.Get("name"), strings.TrimSpace(v.Form.Get("group"))
	text := strings.TrimSpace(strings.ReplaceAll(v.Form.Get("description"), "\r", "")) // the field counts a line break as one character
	var e policy.Edit
	frame.Set(v, "name", &e.Name, &newName)
	frame.Set(v, "description", &e.Description, &text)
	frame.Set(v, "group", &e.Group, &inGroup)
	if labels := frame.Parted(v.Form.Get("labels")); v.Form.Has("labels") {
		frame.Set(v, "labels", &e.Labels, &labels)
	}
	return s.saved(v, p, detailsDialog, e)
}

// oneLine is a text as the field of one line posts it.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "") }

// labelText is the text of the labels' field; shown is false where the field cannot show them, because one has a comma, a
// line break or a space at its ends.
func (s sheet) labelText() (text string, shown bool) {
	text = oneLine(strings.Join(s.Labels, ", "))
	return text, slices.Equal(frame.Parted(text), s.Labels)
}

// copy proposes a copy of the policy.
func (s *Section) copy(v *frame.Visit, p policy.Policy) error {
	err := s.proposed(v, "create_policy", map[string]any{"fromPolicyId": p.ID, "displayName": v.Form.Get("name")})
	switch fault.CodeOf(err) {
	case fault.Refused, fault.InvalidArguments, fault.RateLimited:
		return s.refused(v, p, copyDialog, err)
	default:
		return v.Refused(frame.PolicyPath(p.ID), err, fault.Unsupported)
	}
}

// push sends the policy to the platform again.
func (s *Section) push(v *frame.Visit, p policy.Policy) error {
	if err := s.Push(v.Context(), v.Company.ID, p.ID); err != nil {
		return v.Redirect(frame.PolicyPath(p.ID), v.Failed(err))
	}
	return v.Redirect(frame.PolicyPath(p.ID), frame.Done("The platform has taken version "+strconv.Itoa(p.Version)+"."))
}

// delete deletes the policy.
func (s *Section) delete(v *frame.Visit, p policy.Policy) error {
	codes, err := s.Policies.DeleteBy(v.Context(), v.Principal, p.ID)
	if err != nil {
		return v.Refused(frame.PolicyPath(p.ID), err, fault.Refused, fault.Unavailable)
	}
	return v.Redirect(frame.PoliciesPath, frame.Done("Deleted the policy "+p.Name+"."+provisioning.Ended(codes, p.Type)))
}
