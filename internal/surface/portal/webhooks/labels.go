package webhooks

import (
	"strconv"

	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/webhook"
)

// group is types of events under one title.
type group struct {
	Title string
	Kinds []event.Kind
}

// groups are all types of events, in the order of the list.
func groups() (all []group) {
	titles := map[string]string{"device": "Devices", "command": "Commands", "policy": "Policies", "proposal": "Proposed changes",
		"limit":      "Limits and stop",
		"automation": "Limits and stop", "control": "Limits and stop", "key": "API keys and AI clients",
		"connection": "API keys and AI clients", "platform": "Platform"}
	for _, k := range event.Kinds() {
		title, known := titles[k.Type.Area()]
		if !known {
			title = "Other"
		}
		if len(all) == 0 || all[len(all)-1].Title != title {
			all = append(all, group{Title: title})
		}
		last := &all[len(all)-1]
		last.Kinds = append(last.Kinds, k)
	}
	return all
}

// stateOf is a webhook's state for people.
func stateOf(w webhook.Webhook) (frame.Tone, string) {
	switch {
	case w.State == webhook.Disabled:
		return frame.Bad, "Disabled"
	case w.Held > 0:
		return frame.Warn, "Trying again"
	}
	return frame.OK, "Enabled"
}

// waitingText is what a webhook holds back.
func waitingText(w webhook.Webhook) string {
	if w.Held == 0 {
		return "Nothing"
	}
	return frame.Count(w.Held, "device or event", "devices or events")
}

func outcome(a webhook.Attempt) (frame.Tone, string) {
	if a.Delivered() {
		return frame.OK, "Delivered"
	}
	return frame.Bad, "Failed"
}

// detailOf says what came back. The receiver has a part in it.
func detailOf(a webhook.Attempt) string {
	switch {
	case a.Detail != "":
		return frame.Sentence(frame.Plain(a.Detail))
	case a.Status != 0:
		return "The receiver answered " + strconv.Itoa(a.Status) + "."
	}
	return ""
}
