package activity

import (
	"cmp"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/slice"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

func kindWord(k access.Kind) string {
	words := map[access.Kind]string{access.APIKey: "API keys", access.Connection: "AI connections", access.User: "People"}
	return cmp.Or(words[k], "Muster and its operator")
}

// destructive is the choice of commands that end a device's management, or take its lock.
const destructive = "destructive"

// areaOptions are what entries can be about, the commands that matter most first.
func areaOptions() []option {
	return append([]option{{destructive, "Wipes and other destructive commands"}}, options(activity.Areas(), areaWord)...)
}

func areaWord(area string) string {
	words := map[string]string{"command": "Commands", "proposal": "Proposals", "policy": "Policies", "provisioning": "Enrollment codes",
		"signin": "Sign-ins", "identity": "Company sign-in", "user": "Users", "key": "API keys", "connection": "Connections",
		"company": "Settings", "asset": "Assets", "authorization": "Authorizations", "job": "Jobs", "webhook": "Webhooks"}
	return words[area]
}

func actorKinds() []access.Kind {
	return []access.Kind{access.User, access.APIKey, access.Connection, access.System}
}

func outcomeWord(o activity.Outcome) string {
	words := map[activity.Outcome]string{activity.OK: "Done or accepted", activity.Refused: "Refused", activity.Failed: "Failed",
		activity.Unconfirmed: "Unconfirmed"}
	return words[o]
}

func options[T ~string](values []T, word func(T) string) []option {
	return slice.Map(values, func(value T) option { return option{string(value), word(value)} })
}

// shown are the filters in words, for paper, which has no form. The time stands below the histogram.
func (p view) shown() string {
	var all []string
	add := func(name, word string) {
		if p.Query.Get(name) != "" {
			all = append(all, cmp.Or(word, frame.Plain(p.Query.Get(name))))
		}
	}
	add("q", "“"+frame.Plain(p.Query.Get("q"))+"”")
	add("actor", kindWord(access.Kind(p.Query.Get("actor"))))
	add("area", areaWord(p.Query.Get("area")))
	if p.Query.Get("area") == destructive {
		all[len(all)-1] = areaOptions()[0].Label
	}
	add("outcome", outcomeWord(activity.Outcome(p.Query.Get("outcome"))))
	for _, one := range [][2]string{{"device", "device"}, {"target", "target"}, {"by", "actor"}} {
		add(one[0], one[1]+" "+frame.Plain(p.Query.Get(one[0])))
	}
	return strings.Join(all, ", ")
}

// rangeOptions begin with the time that a bar of the histogram chose, if one did.
func rangeOptions(p view) (all []option) {
	if p.Query.Get("from") != "" {
		all = append(all, option{"", "As chosen"})
	}
	return append(all, slice.Map(spans(), func(s span) option { return option{s.Value, s.Label} })...)
}

func barLabel(b bar) string {
	return frame.Count(b.Count, "entry", "entries") + " from " + b.From.Format("2 Jan 15:04") + " to " + b.To.Format("2 Jan 15:04 UTC")
}

// height is a bar's, of 80; what is there is seen.
func height(b bar, most int64) int64 { return max(3, b.Count*78/max(1, most)) }
