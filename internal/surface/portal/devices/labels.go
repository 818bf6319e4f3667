package devices

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
)

// commandName is what people call a command.
func commandName(t command.Type) string { return cmp.Or(t.Row().Label, words(string(t))) }

// sample is a body for the API with the action's required arguments.
func sample(a action) string {
	if len(a.Arguments.Inputs) == 0 {
		return ""
	}
	body := map[string]any{}
	for _, in := range a.Arguments.Inputs {
		switch {
		case in.Kind == "list":
			body[in.Name] = []string{"com.example.app"}
		case in.Required:
			body[in.Name] = "…"
		}
	}
	text, _ := json.Marshal(body) // texts and lists of them: it cannot fail
	return string(text)
}

func keys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

func sentText(c command.Command) string {
	switch {
	case c.State == command.Prepared:
		return "under way"
	case c.Ref != "":
		return "accepted for the device"
	case c.State == command.Unconfirmed:
		return "not known"
	default:
		return "answered at once"
	}
}

// entryText is a command as the API's history shows it.
func entryText(c command.Command) string {
	text, _ := json.MarshalIndent(c.Entry(), "", "  ") // what cannot be written is not shown
	return string(text)
}

// lateTexts say why commands are open, and what to do.
func lateTexts(open []command.Named) []string {
	var texts []string
	if slices.ContainsFunc(open, func(c command.Named) bool { return c.State != command.Unconfirmed }) {
		texts = append(texts, "In progress: the device has not confirmed it. It may be switched off or without a network, and gets the "+
			"command when it is back, unless that expires before.")
	}
	if slices.ContainsFunc(open, func(c command.Named) bool { return c.State == command.Unconfirmed }) {
		texts = append(texts, "Unconfirmed: it is not known whether the device will carry it out. Do not send it again yet: look at the "+
			"device, or wait for its next report.")
	}
	return texts
}

// noPlace says why there is no place to show.
func noPlace(d device) string {
	if d.Device != nil && d.Device.Management == asset.Platform && !d.Device.PushReachable {
		return "No place is known. Devices of the Android platform tell their place only through our companion app, which this one " +
			"does not have."
	}
	return "No place is known. Ask the device with Locate."
}

// mapLink is where a place on the device's own map leads: to what it shows already.
func (d device) mapLink(string) string { return "" }
