package frame

import (
	"cmp"
	"context"
	"io"
	"strings"

	"github.com/a-h/templ"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
)

// ActorIcon is the icon of a sort of actor.
func ActorIcon(k access.Kind) string {
	icons := map[access.Kind]string{access.APIKey: "key-round", access.Connection: "bot", access.User: "user"}
	return cmp.Or(icons[k], "server")
}

// Ended is how an entry ended, and how that is meant: of a command, as it is now.
func Ended(e activity.Entry) (Tone, string) {
	isCommand := e.Action.Area() == "command" && e.Outcome == activity.OK
	switch e.Ended() {
	case activity.Open:
		return Idle, "In progress"
	case activity.Unkept:
		return Idle, "Result not kept"
	case activity.Doubtful:
		return Warn, "Unconfirmed"
	case activity.Wrong:
		if isCommand {
			return Bad, "Error"
		}
		if e.Outcome == activity.Refused {
			return Bad, "Refused"
		}
		return Bad, "Failed"
	default: // it was done
	}
	if isCommand {
		return OK, "Success"
	}
	return OK, "Done"
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
