package geo_test

import (
	"math"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/surface/portal/geo"
)

// TestSurroundings: a place is named by the city nearest to it, which the map has.
func TestSurroundings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		latitude, longitude float64
		where, on           string
	}{
		{52.524, 13.411, "In the center of Berlin, DE", "Berlin"},
		{52.524, 12.83, "21 km north-west of the center of Potsdam, DE", "Potsdam"},
		{-18.14, -179.9, "176 km east of the center of Suva, FJ", "Suva"}, // across 180°
		{-80, 20, "", ""}, // Antarctica
		{0, -30, "", ""},  // the Atlantic
	} {
		town := geo.Surroundings(asset.Location{Latitude: c.latitude, Longitude: c.longitude, AccuracyMeters: 30})
		if town.Where != c.where {
			t.Errorf("%v, %v: %q, want %q", c.latitude, c.longitude, town.Where, c.where)
		}
		if c.on != "" && !slices.ContainsFunc(town.Towns, func(l geo.Label) bool { return l.Name == c.on }) {
			t.Errorf("%v, %v: the map has %v", c.latitude, c.longitude, town.Towns)
		}
		if !(town.Half >= 20 && town.Half < 1000) || math.IsNaN(town.Scale()) {
			t.Errorf("%v, %v: %f km wide", c.latitude, c.longitude, town.Half)
		}
	}
}
