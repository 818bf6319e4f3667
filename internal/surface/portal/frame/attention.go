package frame

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
)

// Reader is the person as one who may decide, without their passkeys.
func (v *Visit) Reader() access.Approver {
	return access.Approver{UserID: v.User.ID, Name: v.User.Name, Disabled: v.User.Disabled, Permissions: v.User.Rights.Permissions(),
		Manages: v.May(account.ManageCompany), Policies: v.Principal.Policies}
}

// Attention is what waits in the company and the person sees. It is read once for a visit.
func (v *Visit) Attention() ([]attention.Item, error) {
	if v.attention == nil {
		all, err := v.frame.Attention(v.Context(), attention.Query{CompanyID: v.Company.ID, Policies: v.Principal.Policies,
			Rule: v.Company.Settings.Controls.ApplyApproval})
		if err != nil {
			return nil, err
		}
		v.attention = slices.DeleteFunc(append([]attention.Item{}, all...), func(i attention.Item) bool { return !i.Seen(v.Reader()) })
	}
	return v.attention, nil
}

// waiting is how many of these the person can decide or look after; 0 if it is not known.
func (v *Visit) waiting() (n int) {
	all, err := v.Attention()
	if err != nil {
		v.Note("count of what waits", err)
	}
	for _, i := range all {
		if i.Concerns(v.Reader(), v.Company.Settings.Controls) {
			n++
		}
	}
	return n
}

// countText is a count as the navigation has it. Of each kind a limited number is found.
func countText(n int) string {
	return Either(n > attention.Limit, Number(attention.Limit)+"+", Number(n))
}

// waitingTop is the count of narrow windows, where the navigation is closed.
const waitingTop = "waiting-top"

// countTopics are what the count listens to. On the overview it goes with the list, which
// also follows commands that their devices answer.
func countTopics(active string) string {
	return Either(active == OverviewPath, AttentionTopics, decisionTopics)
}

// AttentionTopics are those of the list of what waits.
const AttentionTopics = "commands " + decisionTopics

const decisionTopics = "attentions authorizations loosenings proposals"

// AttentionLink is where a person decides about an item, or looks after it.
func AttentionLink(i attention.Item) string {
	switch i.Kind {
	case attention.Approval:
		return ApprovalPath(i.ID)
	case attention.Authorization:
		return approval.Path + "/" + i.ID
	case attention.Loosening:
		return ControlsPath + "/" + i.ID + "/confirm"
	case attention.Enrollment:
		return DevicePath(i.AssetID) + "/asks"
	case attention.UnconfirmedChange:
		return ProposalPath(i.ID)
	case attention.PausedJob:
		return JobPath(i.ID)
	case attention.StoppedWebhook:
		return WebhookPath(i.ID)
	default:
		return DevicePath(i.AssetID) + "/commands"
	}
}

// AttentionText is what waits, as a sentence.
func AttentionText(i attention.Item) []activity.Part {
	name, caller := activity.Part{Text: Plain(i.Name), Name: true}, activity.Part{Text: cmp.Or(Plain(i.Caller), "An API key"), Name: true}
	row := command.Type(i.Detail).Row()
	switch i.Kind {
	case attention.Approval:
		return []activity.Part{caller, {Text: " asks to change "}, name, {Text: ": " + strings.TrimSuffix(Plain(i.Detail), ".")}}
	case attention.Authorization:
		return []activity.Part{caller, {Text: " asks for " + cmp.Or(row.Noun, "a command to") + " "}, name}
	case attention.Loosening:
		sentence := command.Sentence(activity.Entry{Action: activity.LooseningAsked,
			Changes: []activity.Change{{Field: i.Detail, Before: i.Before, After: i.After}}})
		return append([]activity.Part{caller, {Text: " "}}, sentence.Did...)
	case attention.Enrollment:
		return []activity.Part{name, {Text: " asks to be enrolled again"}}
	case attention.StoppedWebhook:
		return []activity.Part{{Text: "The webhook to "}, name, {Text: " was disabled: " + Plain(i.Detail)}}
	case attention.UnconfirmedChange:
		return []activity.Part{caller, {Text: " may have changed "}, name,
			{Text: ": " + strings.TrimSuffix(Plain(i.Detail), ".") + ". The outcome is not known"}}
	case attention.PausedJob:
		return []activity.Part{{Text: "The job "}, name, {Text: " of "}, caller, {Text: " is paused: " + Plain(i.Detail)}}
	case attention.FailedWipe:
		return []activity.Part{{Text: "The wipe of "}, name, {Text: " failed"}}
	default:
		return []activity.Part{caller, {Text: " may have " + cmp.Or(row.Past, "sent a command to") + " "}, name,
			{Text: ": the outcome is not known"}}
	}
}

// AttentionUntil says when an item ends without the person.
func AttentionUntil(i attention.Item, now time.Time) string {
	if i.Until.IsZero() {
		return ""
	}
	return Either(i.Kind == attention.Loosening, "takes effect ", "expires ") + Since(now, i.Until)
}

// count serves the count of one place of the page.
func (f *Frame) count(v *Visit) error {
	id, active := "waiting", v.Query().Get("active")
	if v.Query().Get("id") == waitingTop {
		id = waitingTop
	}
	if !slices.ContainsFunc(Sections(), func(s Section) bool { return s.Path == active }) {
		active = DevicesPath
	}
	return v.Fragment(Waiting(v, id, active))
}

// TroubleOf returns what is wrong with the enterprise of the person's company. A page is
// shown although that cannot be read.
func TroubleOf(v *Visit) company.Trouble {
	trouble, err := v.frame.Trouble(v.Context(), v.Company.ID)
	if err != nil {
		v.Note("state of the enterprise", err)
	}
	return trouble
}

// disconnect is the operator's command that gives the enterprise up.
func disconnect(v *Visit) string {
	return "muster company disconnect --company " + v.Company.Slug + " --confirm " + v.Company.Slug
}
