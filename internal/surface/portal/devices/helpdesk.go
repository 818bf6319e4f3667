package devices

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/surface/web"
)

// deskField is the field of a form that leads back to the help desk.
const deskField = "desk"

// maxDesk is how many devices the help desk lists.
const maxDesk = 20

// desk is what the help desk shows: one device, or several of which the person chooses one.
type desk struct {
	Asked  string
	Card   *device
	Listed []asset.Asset
	More   bool // there are more than are listed
}

// helpDesk serves the page on which a device is found by its serial number.
func (s *Section) helpDesk(v *frame.Visit) error {
	d := desk{Asked: strings.TrimSpace(v.Query().Get("q"))}
	id := v.Query().Get("id")
	if id == "" && d.Asked != "" {
		var err error
		if d.Listed, err = s.deskHits(v, d.Asked); err != nil {
			return err
		}
		if len(d.Listed) == 1 {
			id = d.Listed[0].ID
		}
		if d.More = len(d.Listed) > maxDesk; d.More {
			d.Listed = d.Listed[:maxDesk]
		}
	}
	if id == "" {
		return s.showDesk(v, http.StatusOK, d, nil)
	}
	a, err := asset.Find(v.Context(), s.Assets, v.Principal, id)
	if err != nil {
		return err
	}
	return s.showDesk(v, http.StatusOK, d, &device{Asset: a})
}

// showDesk answers with the page, with the card of a device if there is one.
func (s *Section) showDesk(v *frame.Visit, status int, d desk, card *device) error {
	web.AllowCamera(v.Writer())
	if card != nil {
		var err error
		card.Report, card.Once, card.Desk = reportOf(card.Asset), frame.NewOnce(), true
		if card.standing, err = s.stands(v, card.Asset); err != nil {
			return err
		}
		if v.Partial() {
			return v.Fragment(deskCard(v, s, *card))
		}
		d.Card = card
	}
	return v.ShowStatus(status, "Help desk", frame.HelpDeskPath, deskPage(v, s, d))
}

// deskHits are the devices with a serial number. Only if there is none, they are those that
// words find.
func (s *Section) deskHits(v *frame.Visit, text string) ([]asset.Asset, error) {
	if asset.IdentityKey(text) != "" {
		if found, err := s.newest(v, asset.Filter{Serial: text}, maxDesk+1); err != nil || len(found) > 0 {
			return found, err
		}
	}
	return s.newest(v, asset.Filter{Text: text}, maxDesk+1)
}

// deskDialogs are what the help desk does to devices: message, lock, the start and the end of lost mode, restart.
func deskDialogs() []action {
	return slices.DeleteFunc(actions(), func(a action) bool {
		return !slices.Contains([]command.Type{command.NotificationMessage, command.Lock, command.Reboot, command.StartLostMode,
			command.StopLostMode}, a.Type)
	})
}

// deskActions are those of them that the card of a device offers: of lost mode either the start or the end.
func deskActions(d device) []action {
	other := frame.Either(d.lost(), command.StartLostMode, command.StopLostMode)
	return slices.DeleteFunc(deskDialogs(), func(a action) bool { return a.Type == other })
}

// user is the person to whom the device is assigned.
func (d device) user() string {
	return frame.Plain(cmp.Or(d.CustomData[asset.UserKey], d.CustomData[asset.UserEmailKey]))
}

// deskTyped is what the search field begins with: nothing once a device was found, so that
// a scanner types the next serial number.
func deskTyped(d desk) string { return frame.Either(d.Card != nil, "", d.Asked) }

// deskFacts tell a device from others in the list.
func deskFacts(a asset.Asset) string {
	_, status := statusOf(a.Status)
	return frame.Joined(" · ", frame.Plain(a.Specifications["serialNumber"]), device{Asset: a}.user(), status)
}
