package devices

import (
	"fmt"
	"strconv"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/surface/portal/geo"
)

// maxTrail is how many places a map shows.
const maxTrail = 200

// trail is where a device was, the oldest place first, and which of its places
// is looked at: its time is in the address, so that a link shows the same.
type trail struct {
	Places []asset.Location
	At     int
}

func (s *Section) trail(v *frame.Visit, d device) (trail, error) {
	places, err := s.Assets.Trail(v.Context(), d.CompanyID, d.ID, v.Now.Add(-asset.PlacesKept), maxTrail)
	if len(places) == 0 && d.Device != nil && d.Device.Location != nil {
		places = []asset.Location{*d.Device.Location}
	}
	t := trail{places, len(places) - 1}
	if at, wrong := strconv.ParseInt(v.Query().Get("at"), 10, 64); wrong == nil {
		for i, p := range places {
			if p.ReportedAt.UnixMilli() <= at {
				t.At = i
			}
		}
	}
	return t, err
}

// here is the place that is looked at.
func (t trail) here() asset.Location { return t.Places[t.At] }

// moment is a place's time, as the address has it.
func moment(l asset.Location) string { return strconv.FormatInt(l.ReportedAt.UnixMilli(), 10) }

// placePath shows the device at one of its places.
func (d device) placePath(l asset.Location) string { return d.path(locationTab) + "?at=" + moment(l) }

// spotText is a place in words, for the slider.
func spotText(l asset.Location) string {
	return fmt.Sprintf("%s, %s, accurate to %.0f m", frame.Exact(l.ReportedAt), geo.Coordinates(l), l.AccuracyMeters)
}
