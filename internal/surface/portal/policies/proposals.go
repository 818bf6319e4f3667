package policies

import (
	"cmp"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// pageSize is how many proposals a page lists.
const pageSize = 50

// queue is the list of proposals.
type queue struct {
	Rows     []proposal.Listed
	Waiting  bool
	PolicyID string
	Next     string // where the list goes on; empty: at its end
}

// url is the list with the same filters from its beginning.
func (q queue) url() string {
	address := frame.ProposalsPath
	if q.Waiting {
		address += "?waiting=1"
	}
	if q.PolicyID != "" {
		address = frame.WithQuery(address, "policy="+q.PolicyID)
	}
	return address
}

// proposals lists all proposals of the company.
func (s *Section) proposals(v *frame.Visit) (err error) {
	asked := v.Query()
	q := queue{Waiting: asked.Get("waiting") != ""}
	query := proposal.Query{Waiting: q.Waiting, Limit: pageSize + 1}
	if id := asked.Get("policy"); id != "" {
		p, err := s.Policies.Open(v.Context(), v.Principal, id)
		if err != nil {
			return err
		}
		q.PolicyID, query.PolicyID = p.ID, p.ID
	}
	if before := v.Numbers["before"]; before > 0 {
		query.Before = proposal.Position{CreatedAt: time.UnixMilli(before), ID: asked.Get("id")}
	}
	if q.Rows, err = s.Reviewer.List(v.Context(), v.Principal, query); err != nil {
		return err
	}
	if len(q.Rows) > pageSize {
		q.Rows = q.Rows[:pageSize]
		last := q.Rows[pageSize-1].Position()
		q.Next = "before=" + strconv.FormatInt(last.CreatedAt.UnixMilli(), 10) + "&id=" + last.ID
	}
	return v.ShowLive("Proposals", frame.ProposalsPath, queuePage(v, q), queueRows(v, q))
}

// details is a proposal on its page.
type details struct {
	proposal.Review
	Devices []asset.Asset
	// Applied is how many of Managed devices have applied it; of one that was not applied: 0.
	Applied, Managed int
}

// proposal shows a proposal for review.
func (s *Section) proposal(v *frame.Visit, d details) error {
	return v.Show(d.Title, frame.ProposalsPath, proposalPage(v, d))
}

// look finds the proposal of the address.
func (s *Section) look(v *frame.Visit) (proposal.Review, error) {
	return s.Reviewer.Look(v.Context(), v.Principal, v.PathValue("id"))
}

func (s *Section) proposalDetails(v *frame.Visit) (details, error) {
	review, err := s.look(v)
	d := details{Review: review}
	if err == nil && v.May(account.ViewDevices) && !review.Creates() && !review.Gone {
		d.Devices, err = s.some(v, review.PolicyID)
	}
	if err == nil && review.Status == proposal.Succeeded {
		d.Applied, d.Managed, err = s.Progress(v.Context(), review.CompanyID, review.Next.PolicyID, review.Version)
	}
	return d, err
}

// standing is what the page of a proposal depends on.
func standing(r proposal.Review) string {
	return frame.Either(r.Stale, string(r.Status)+"-stale", string(r.Status))
}

// state follows where a proposal stands; once that changes, the page
// reloads.
func (s *Section) state(v *frame.Visit, review proposal.Review) error {
	if now := standing(review); v.Query().Get("was") != now {
		return v.Redirect(frame.ProposalPath(review.ID))
	}
	return v.Fragment(stateParts(v, review))
}

// apply applies the person's own proposal.
func (s *Section) apply(v *frame.Visit) error {
	id := v.PathValue("id")
	_, err := v.Run("apply_policy_proposal", map[string]any{"proposalId": id, "confirmation": v.Form.Get("confirmation")},
		v.Form.Get(frame.OnceField))
	switch fault.CodeOf(err) {
	case "":
		return v.Redirect(frame.ProposalPath(id), frame.Done("Applied. Devices receive it by themselves."))
	case fault.NotFound, fault.Forbidden:
		return err
	case fault.Internal: // the proposal's page says how it stands
		return v.Redirect(frame.ProposalPath(id),
			frame.Flash{Tone: frame.Bad, RequestID: v.RequestID, Text: "It was not applied, or that is not known: see below."})
	default:
		return v.Redirect(frame.ProposalPath(id), v.Failed(err))
	}
}

// again proposes the same as the person's own.
func (s *Section) again(v *frame.Visit) error {
	id := v.PathValue("id")
	name, args, err := s.Reviewer.Repeat(v.Context(), v.Principal, id)
	if err == nil && name == string(proposal.CreatePolicy) {
		err = v.Require(create)
	}
	if err != nil {
		return err
	}
	return s.propose(v, name, args, frame.ProposalPath(id), frame.Done("This proposal is your own: look at its list, then apply it."))
}

// advice says what to do about a proposal as it stands.
func advice(r proposal.Review) string {
	switch {
	case r.Gone:
		return "The policy was deleted: this can never be applied."
	case r.Status == proposal.Pending && r.Stale:
		return "The policy was saved since, as version " + strconv.Itoa(r.Policy.Version) + ": this can never be applied. Propose it " +
			"again and look at the new list."
	case r.Status == proposal.Executing:
		return "It is being sent to the platform just now."
	case r.Status == proposal.Unconfirmed:
		return "The platform did not say whether it has taken the change. Muster reads the platform's copy and brings both sides " +
			"together; look at the policy's settings before you propose it again."
	case r.Status == proposal.Failed && r.Outcome != "":
		return frame.Sentence(r.Outcome)
	case r.Status == proposal.Failed:
		return "Nothing was changed."
	case r.Status == proposal.Expired:
		return frame.Sentence(cmp.Or(r.Outcome, "it was not applied in time")) + " Nothing was changed."
	case r.Status == proposal.Succeeded:
		return "It was saved as version " + strconv.Itoa(r.Version) + "."
	default:
		return ""
	}
}

// irrevocable says what applying does that a rollback does not undo.
func irrevocable(r proposal.Review) []string {
	var all []string
	for _, f := range r.Fields {
		if lost := policy.Lost(f.Label, f.Value); lost != "" && f.Value != f.PreviousValue {
			all = append(all, lost)
		}
	}
	switch {
	case len(all) > 0:
	case len(r.Warnings) > 0:
		all = append(all, "Not everything: see the warnings at the changes.")
	case !r.Creates():
		all = append(all, "Nothing: the policy can be rolled back to what it was. What people did until then stays done.")
	}
	return all
}

// elapsed is how much of a proposal's time is left, in 600 parts, for the picture of
// its countdown.
func elapsed(v *frame.Visit, r proposal.Review) string {
	whole := max(r.ExpiresAt.Sub(r.CreatedAt), time.Second)
	left := max(0, min(r.ExpiresAt.Sub(v.Now), whole))
	return strconv.Itoa(int(600 * left.Seconds() / whole.Seconds()))
}

// rowPath is the page of a proposal: where a person decides, while one has to.
func rowPath(l proposal.Listed) string {
	return frame.Either(l.AwaitsApproval(), frame.ApprovalPath(l.ID), frame.ProposalPath(l.ID))
}

// timeToApply says how long the authors have.
func timeToApply(v *frame.Visit) string {
	if rule := v.Company.Settings.Controls.ApplyApproval; rule != "" && rule != access.ApproveNone {
		return "Changes of policies, reviewed before they are applied. People have ten minutes to apply their own, API keys and AI " +
			"clients 24 hours."
	}
	return "Changes of policies, reviewed before they are applied. Who made one has ten minutes to apply it."
}

// firstName is the policy that a proposal is about, as a link's text.
func firstName(r proposal.Review) string {
	return frame.Either(r.Creates(), r.Policy.Name+" (the source)", r.Policy.Name)
}

// rowTitle is what a proposal is about, short enough for a row.
func rowTitle(p proposal.Proposal) string {
	switch p.Capability {
	case proposal.CreatePolicy:
		return "New policy " + frame.Plain(p.TargetName)
	case proposal.RollBack:
		return "Roll back " + frame.Plain(p.TargetName)
	default:
		return frame.Plain(p.TargetName)
	}
}

// makerName is the name alone of who made a proposal.
func makerName(m proposal.Maker) string {
	return frame.Plain(cmp.Or(m.KeyName, m.Client, m.UserName))
}

// rowFields are the first changes of a proposal in a few words.
func rowFields(p proposal.Proposal) string {
	var parts []string
	for _, f := range p.Fields {
		parts = append(parts, f.Label+": "+frame.SettingWord(f.Label, f.PreviousValue)+" → "+frame.SettingWord(f.Label, f.Value))
	}
	return short(parts)
}
