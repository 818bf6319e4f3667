package frame

import (
	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/proposal"
)

// Standing is how a proposal stands, in a word; gone: its policy was deleted or saved since.
func Standing(p proposal.Proposal, gone bool) (Tone, string) {
	switch {
	case p.Approval.State == proposal.Declined:
		return Idle, "Declined"
	case p.Status == proposal.Succeeded:
		return OK, "Applied"
	case p.Status == proposal.Expired:
		return Idle, "Expired"
	case p.Status == proposal.Executing:
		return Warn, "Being applied"
	case p.Status == proposal.Unconfirmed:
		return Warn, "Not confirmed"
	case p.Status != proposal.Pending:
		return Bad, "Failed"
	case gone || p.Outdated:
		return Idle, "Out of date"
	case p.Unapproved():
		return Warn, "Needs approval"
	case p.NeedsApproval():
		return OK, "Approved"
	}
	return Warn, "Not applied yet"
}

// Caller names who calls, as people know them: name and prefix of an API key, or the name
// of an AI client and the user behind it, if known.
func Caller(kind access.Kind, name, prefix, user string) string {
	if kind != access.Connection {
		return "the API key " + Plain(name) + " (" + prefix + "…)"
	}
	if user == "" {
		return "the AI client " + Plain(name)
	}
	return "the AI client " + Plain(name) + " of " + Plain(user)
}

// Maker names who made a proposal.
func Maker(m proposal.Maker) string {
	switch m.Kind {
	case access.APIKey:
		return Caller(m.Kind, m.KeyName, m.KeyPrefix, "")
	case access.Connection:
		return Caller(m.Kind, m.Client, "", m.UserName)
	default:
		return Plain(m.UserName)
	}
}
