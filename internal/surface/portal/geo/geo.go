// Package geo draws where devices are, without any map server: outlines of the
// world that the program ships, and a plot of a device's neighborhood in
// meters. Everything is SVG, so that it needs no script.
package geo

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/phrase"
)

// The map is in degrees east of 180° W and south of 90° N.
func x(l asset.Location) float64 { return l.Longitude + 180 }
func y(l asset.Location) float64 { return 90 - l.Latitude }

// Mark is a place on the map: one device, or several near each other.
type Mark struct {
	X, Y, Radius float64
	Count        int
	Label        string // what it is, in words
	Link         string // of a single device
}

// View is the part of the world that a map shows.
type View struct {
	Left, Top, Width, Height float64
	Marks                    []Mark
}

// box is the viewBox attribute.
func (v View) box() string {
	return fmt.Sprintf("%.2f %.2f %.2f %.2f", v.Left, v.Top, v.Width, v.Height)
}

// minSpan is the least width shown, in degrees: the outlines are too coarse
// for less.
const minSpan = 24.0

// Around is the part of the world around places, of the shape of a picture.
func Around(places []asset.Location, ratio float64) View {
	if len(places) == 0 {
		return View{Left: 0, Top: 10, Width: 360, Height: 360 / ratio}
	}
	left, right, top, bottom := 360.0, 0.0, 180.0, 0.0
	for _, p := range places {
		left, right = min(left, x(p)), max(right, x(p))
		top, bottom = min(top, y(p)), max(bottom, y(p))
	}
	width := max((right-left)*1.3, (bottom-top)*1.3*ratio, minSpan)
	width = min(width, 360)
	height := width / ratio
	v := View{Left: (left+right)/2 - width/2, Top: (top+bottom)/2 - height/2, Width: width, Height: height}
	v.Left = max(0, min(v.Left, 360-width))
	v.Top = max(0, min(v.Top, 180-min(height, 180)))
	return v
}

// cells is how many clusters there may be along a map's width.
const cells = 24

// Cluster puts places near each other together.
func (v View) Cluster(places []asset.Place, link func(id string) string) View {
	type cell struct{ column, row int }
	size := v.Width / cells
	groups := map[cell][]asset.Place{}
	for _, p := range places {
		c := cell{int((x(p.Location) - v.Left) / size), int((y(p.Location) - v.Top) / size)}
		groups[c] = append(groups[c], p)
	}
	for _, group := range groups {
		m := Mark{Count: len(group)}
		for _, p := range group {
			m.X += x(p.Location) / float64(len(group))
			m.Y += y(p.Location) / float64(len(group))
		}
		m.Radius = size * min(0.28+0.08*math.Log2(float64(m.Count)), 0.75)
		m.Label = fmt.Sprintf("%d devices", m.Count)
		if m.Count == 1 {
			m.Label, m.Link = group[0].Identification, link(group[0].ID)
		}
		v.Marks = append(v.Marks, m)
	}
	slices.SortFunc(v.Marks, func(a, b Mark) int { return b.Count - a.Count })
	return v
}

// metersPerDegree is that of latitude.
const metersPerDegree = 111_320.0

// Plot is a device's neighborhood: its trail in meters around its last place.
type Plot struct {
	Half  float64 // half the side, in meters
	Spots []Spot  // the oldest first
	At    int     // the spot that is looked at
	Scale float64 // length of the scale bar, in meters
}

// Spot is a place of a trail: where it is on the plot, and how accurate it is,
// in meters.
type Spot struct{ X, Y, Radius float64 }

// Neighborhood plots a trail, the oldest place first, and looks at one of its
// places; it must not be empty.
func Neighborhood(trail []asset.Location, at int) Plot {
	last := trail[len(trail)-1]
	shrink := math.Cos(last.Latitude * math.Pi / 180)
	p := Plot{At: at, Half: 60}
	for _, l := range trail {
		s := Spot{X: (l.Longitude - last.Longitude) * metersPerDegree * shrink, Y: (last.Latitude - l.Latitude) * metersPerDegree,
			Radius: max(l.AccuracyMeters, 1)}
		p.Spots = append(p.Spots, s)
		p.Half = max(p.Half, math.Abs(s.X)*1.15, math.Abs(s.Y)*1.15)
	}
	p.Half = max(p.Half, max(last.AccuracyMeters, trail[at].AccuracyMeters)*1.6)
	p.Scale = nice(p.Half / 2)
	return p
}

// nice is a round length that is not longer than n.
func nice(n float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(n)))
	for _, step := range []float64{5, 2} {
		if step*power <= n {
			return step * power
		}
	}
	return power
}

// line is the trail up to a spot as the points of a polyline.
func (p Plot) line(to int) string {
	var text strings.Builder
	for _, s := range p.Spots[:to+1] {
		fmt.Fprintf(&text, "%.1f,%.1f ", s.X, s.Y)
	}
	return strings.TrimSpace(text.String())
}

func number(n float64) string { return fmt.Sprintf("%.2f", n) }

// Accuracy is how accurate a place is, in words; 0: the device did not say.
func Accuracy(meters float64) string {
	return phrase.Either(meters == 0, "accuracy not reported", fmt.Sprintf("accurate to %.0f m", meters))
}

// Length is a length in words.
func Length(meters float64) string {
	return phrase.Either(meters >= 1000, fmt.Sprintf("%g km", meters/1000), fmt.Sprintf("%g m", meters))
}

// Coordinates are a place in the usual notation.
func Coordinates(l asset.Location) string { return Decimal(l.Latitude) + ", " + Decimal(l.Longitude) }

// Decimal is a latitude or longitude in degrees, to about a meter.
func Decimal(degrees float64) string { return strconv.FormatFloat(degrees, 'f', 5, 64) }
