package devices

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/surface/portal/geo"
)

// standing is what the newest commands of a device say about how it stands.
type standing struct {
	Latest  *command.Command  // the newest one, while it is news
	Lost    *command.Command  // the start of the lost mode that is on or asked for
	Ended   *command.Command  // the command that ended its management
	Unknown []command.Command // those whose outcome is not known, the newest first
}

const (
	// newsFor is how long a command stays beside the device's name.
	newsFor = 2 * time.Minute
	// newest is how many commands are looked at.
	newest = 25
	// maxUnknown is how many commands whose outcome is not known are shown above the tabs.
	maxUnknown = 3
)

// stands reads what a device's newest commands say.
func (s *Section) stands(v *frame.Visit, a asset.Asset) (standing, error) {
	commands, _, err := s.Commands.History(v.Context(), a.CompanyID, a.ID, operation.PageRequest{Size: newest})
	if err != nil {
		return standing{}, err
	}
	return standingOf(commands, a, v.Now), nil
}

func standingOf(commands []command.Command, a asset.Asset, now time.Time) (st standing) {
	on, found := a.Device != nil && a.Device.LostMode, false
	for i := range commands {
		c := &commands[i]
		if i == 0 && now.Sub(c.CreatedAt) <= newsFor {
			st.Latest = c
		}
		if c.State == command.Unconfirmed && len(st.Unknown) < maxUnknown {
			st.Unknown = append(st.Unknown, *c)
		}
		switch {
		case c.Type == command.StopLostMode && c.State == command.Succeeded:
			found = true
		case c.Type == command.StartLostMode && !found && st.Lost == nil && (on || !c.State.Final()) &&
			a.Device != nil && c.Epoch == a.Device.Epoch: // not of an earlier enrollment
			st.Lost = c
		case c.Type.Row().EndsManagement && c.State != command.Failed && st.Ended == nil && a.Status == asset.Deleted:
			st.Ended = c
		}
	}
	return st
}

// lost reports whether lost mode is on, or asked for.
func (d device) lost() bool { return d.Device != nil && (d.Device.LostMode || d.Lost != nil) }

// offered reports whether an action makes sense as the device stands: lost mode ends
// where it is on, or asked for.
func (d device) offered(a action) bool { return a.Type != command.StopLostMode || d.lost() }

// menu are the actions beside the buttons: the usual ones, those that cannot be undone, and
// those that this device or this person cannot have.
func (s *Section) menu(v *frame.Visit, d device) (usual, final, barred []action) {
	for _, a := range actions() {
		switch {
		case a.Button || !d.offered(a):
		case s.barred(v, a, d.Asset) != "":
			barred = append(barred, a)
		case a.Irreversible:
			final = append(final, a)
		default:
			usual = append(usual, a)
		}
	}
	return usual, final, barred
}

// place is the device's last place; nil: none is known.
func (d device) place() *asset.Location {
	if d.Device == nil {
		return nil
	}
	return d.Device.Location
}

// openStreetMap is the address of a place, with a city around it. The place leaves for
// OpenStreetMap only when a person follows the link.
func openStreetMap(l asset.Location) string {
	lat, lon := geo.Decimal(l.Latitude), geo.Decimal(l.Longitude)
	return "https://www.openstreetmap.org/?mlat=" + lat + "&mlon=" + lon + "#map=14/" + lat + "/" + lon
}

func googleMaps(l asset.Location) string {
	return "https://www.google.com/maps/search/?api=1&query=" + url.QueryEscape(geo.Decimal(l.Latitude)+","+geo.Decimal(l.Longitude))
}

// unknownText says what is known of a command whose outcome is not.
func unknownText(c command.Command) string {
	return frame.Either(c.Ref != "", "It was accepted for the device, and the answer about what became of it was lost.",
		"It was sent, and the answer was lost: the device may carry it out, now or later, or never get it.")
}

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
