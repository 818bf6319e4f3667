package geo

import (
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/musterhq/muster/internal/asset"
)

//go:embed cities.tsv
var cityTable string

// city is a city of at least 50,000 people.
type city struct {
	Name, Country string // the country in two letters
	Center        asset.Location
	People        int
}

var cities = sync.OnceValue(readCities) //nolint:gochecknoglobals // reads an embedded table once

func readCities() (all []city) {
	for line := range strings.Lines(cityTable) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		number := func(i int) float64 {
			n, _ := strconv.ParseFloat(fields[i], 64) // the table is part of the program
			return n
		}
		all = append(all, city{Name: fields[0], Country: fields[1], People: int(number(4)),
			Center: asset.Location{Latitude: number(2), Longitude: number(3)}})
	}
	return all
}

// Town is the surroundings of a place: it is in the middle, and lengths are in kilometers.
type Town struct {
	Half   float64 // half the side
	Radius float64 // how accurate the place is
	Towns  []Label // the largest cities in sight
	Where  string  // "12 km north of Kassel, DE"; empty: no city is near
}

// Label is a city on a map.
type Label struct {
	X, Y, Radius float64
	Name         string
}

// How far a city may be, how many are named, and how wide a map is at least, in kilometers.
const (
	farthest = 400.0
	named    = 6
	leastMap = 20.0
)

// Surroundings are the cities around a place. The map is so wide that it has the nearest.
func Surroundings(l asset.Location) Town {
	t := Town{Half: leastMap, Radius: l.AccuracyMeters / 1000}
	nearest := math.Inf(1)
	var near []city
	for _, c := range cities() {
		if away := math.Hypot(offset(l, c.Center)); away < farthest {
			near = append(near, c)
			if away < nearest {
				nearest, t.Where = away, where(l, c, away)
			}
		}
	}
	if len(near) > 0 {
		t.Half = max(leastMap, nearest*2)
	}
	t.Half = max(t.Half, t.Radius*1.2)
	slices.SortStableFunc(near, func(a, b city) int { return b.People - a.People })
	for _, c := range near {
		x, y := offset(l, c.Center)
		if math.Abs(x) < t.Half*0.9 && math.Abs(y) < t.Half*0.55 && len(t.Towns) < named {
			t.Towns = append(t.Towns, Label{X: x, Y: y, Radius: t.Half * (0.01 + 0.004*math.Log10(float64(c.People))), Name: c.Name})
		}
	}
	return t
}

// offset is where another place is, in kilometers east and south.
func offset(from, to asset.Location) (east, south float64) {
	turn := math.Remainder(to.Longitude-from.Longitude, 360)
	return turn * metersPerDegree / 1000 * math.Cos(from.Latitude*math.Pi/180), (from.Latitude - to.Latitude) * metersPerDegree / 1000
}

// where says how a place lies to a city.
func where(l asset.Location, c city, away float64) string {
	name := c.Name + ", " + c.Country
	if away < 2 {
		return "In the center of " + name
	}
	east, south := offset(c.Center, l)
	names := [...]string{"east", "south-east", "south", "south-west", "west", "north-west", "north", "north-east"}
	turn := int(math.Round(math.Atan2(south, east)/(math.Pi/4))) & 7
	return fmt.Sprintf("%.0f km %s of the center of %s", away, names[turn], name)
}

// label is the map in words.
func (t Town) label() string {
	return cmp.Or(t.Where, "No city within 400 km") + ", " + Accuracy(t.Radius*1000)
}

// Scale is the length of the map's scale bar.
func (t Town) Scale() float64 { return nice(t.Half / 2) }
