package frame

import (
	"cmp"
	"context"
	"io"
	"strings"

	"github.com/a-h/templ"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/proposal"
)

// ActorIcon is the icon of a sort of actor.
func ActorIcon(k access.Kind) string {
	icons := map[access.Kind]string{access.APIKey: "key-round", access.Connection: "bot", access.User: "user"}
	return cmp.Or(icons[k], "server")
}

// Ended is how an entry ended, and how that is meant: of a command, as it is now.
func Ended(e activity.Entry) (Tone, string) {
	done, wrong := "Done", Either(e.Outcome == activity.Refused, "Refused", "Failed")
	if e.Action.Area() == "command" && e.Outcome == activity.OK {
		done, wrong = "Success", "Error"
	}
	switch e.Ended() {
	case activity.Open:
		return Idle, "In progress"
	case activity.Unkept:
		return Idle, "Result not kept"
	case activity.Doubtful:
		return Warn, "Unconfirmed"
	case activity.Wrong:
		return Bad, wrong
	default:
		return OK, done
	}
}

// TargetName is what something was done to, for people.
func TargetName(t activity.Target) string {
	return cmp.Or(Plain(t.Name), t.ID)
}

// parts renders a sentence. A template would put spaces between its parts.
func parts(all []activity.Part) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var b strings.Builder
		for _, p := range all {
			text := templ.EscapeString(p.Text)
			if p.Name {
				text = `<bdi class="font-medium break-words">` + text + `</bdi>`
			}
			b.WriteString(text)
		}
		_, err := io.WriteString(w, b.String())
		return err
	})
}

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
	return "the AI client " + Plain(name) + Either(user == "", "", " of "+Plain(user))
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
