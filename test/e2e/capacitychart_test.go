package e2e_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
)

// The chart has one panel above the other, each with its own scale from zero.
const (
	chartWidth, chartLeft, chartRight = 760, 70, 150
	panelHeight, panelGap, chartTop   = 100, 36, 60
)

var chartTemplate = template.Must(template.New("chart").
	Parse(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {{.Width}} {{.Height}}" font-family="sans-serif" font-size="12" role="img">
<title>{{.Title}}</title>
<rect width="{{.Width}}" height="{{.Height}}" fill="#ffffff"/>
<text x="16" y="26" font-size="15" fill="#1f2937">{{.Title}}</text>
{{- range .Panels}}
<g transform="translate({{$.Left}} {{.Top}})">
<text y="-8" fill="#1f2937">{{.Name}}</text>
<path d="M0 0H{{$.Plot}}M0 {{$.Half}}H{{$.Plot}}M0 {{$.Panel}}H{{$.Plot}}" stroke="#d1d5db" fill="none"/>
<text x="-8" y="4" text-anchor="end" fill="#4b5563">{{.Most}}</text>
<text x="-8" y="{{$.Panel}}" dy="4" text-anchor="end" fill="#4b5563">0</text>
{{- range .Lines}}
<polyline points="{{.Points}}" fill="none" stroke="{{.Color}}" stroke-width="1.5"/>
<text x="{{$.Plot}}" dx="8" y="{{.LabelAt}}" fill="{{.Color}}">{{.Name}}</text>
{{- end}}
</g>
{{- end}}
<text x="{{.Left}}" y="{{.Foot}}" fill="#4b5563">0</text>
<text x="{{.End}}" y="{{.Foot}}" text-anchor="end" fill="#4b5563">{{.Seconds}} s</text>
</svg>
`))

type chartPanel struct {
	Name, Most string
	Top        int
	Lines      []chartLine
}

type chartLine struct {
	Name, Color, Points string
	LabelAt             int
	of                  func(sample) float64
}

// draw writes the chart of the run to a file.
func (r *capacityRun) draw(t *testing.T, file string) {
	t.Helper()
	drawChart(t, file, fmt.Sprintf("%d agents, %.0f of %.0f commands a second", r.Agents, r.Rate, r.Capacity), r.samples, []chartPanel{
		{Name: "Commands a second", Lines: []chartLine{{Name: "acknowledged", of: func(s sample) float64 { return s.rate }}}},
		{Name: "Time from the call to the acknowledgment, ms", Lines: []chartLine{
			{Name: "p99", of: func(s sample) float64 { return s.p99 }}, {Name: "p50", of: func(s sample) float64 { return s.p50 }}}},
		memoryPanel("Memory of the service, MB"),
		{Name: "Goroutines of the service", Lines: []chartLine{{Name: "goroutines", of: func(s sample) float64 { return s.goroutines }}}},
	})
}

func memoryPanel(name string) chartPanel {
	return chartPanel{Name: name, Lines: []chartLine{
		{Name: "process", of: func(s sample) float64 { return mb(s.own) }},
		{Name: "heap", of: func(s sample) float64 { return mb(s.heap) }}}}
}

// drawChart writes a chart to a file; by default to a temporary one. It reads the file again.
func drawChart(t *testing.T, file, title string, samples []sample, panels []chartPanel) {
	t.Helper()
	if file == "" {
		file = filepath.Join(t.TempDir(), "chart.svg")
	}
	lines := 0
	for i := range panels {
		panels[i].Top = chartTop + i*(panelHeight+panelGap)
		panels[i].plot(samples)
		lines += len(panels[i].Lines)
	}
	bottom := panels[len(panels)-1].Top + panelHeight
	var text strings.Builder
	err := chartTemplate.Execute(&text, map[string]any{"Title": title, "Panels": panels,
		"Width": chartWidth, "Height": bottom + 40, "Left": chartLeft, "End": chartWidth - chartRight,
		"Plot":  chartWidth - chartLeft - chartRight,
		"Panel": panelHeight, "Half": panelHeight / 2, "Foot": bottom + 20, "Seconds": int(samples[len(samples)-1].at.Seconds())})
	if err = errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text.String()), 0o644)); err != nil {
		t.Fatal(err)
	}
	checkChart(t, file, lines, len(samples))
}

// plot draws the panel's lines to its own scale.
func (p *chartPanel) plot(samples []sample) {
	colors := []string{"#b45309", "#1d4ed8"}
	most := 0.0
	for _, line := range p.Lines {
		for _, s := range samples {
			most = max(most, line.of(s))
		}
	}
	most = roundUp(most)
	p.Most = fmt.Sprint(most)
	end := samples[len(samples)-1].at
	for i := range p.Lines {
		line := &p.Lines[i]
		line.Color = colors[i]
		var points []string
		for _, s := range samples {
			x := float64(s.at) / float64(end) * (chartWidth - chartLeft - chartRight)
			y := panelHeight * (1 - line.of(s)/most)
			points = append(points, fmt.Sprintf("%.1f,%.1f", x, y))
			line.LabelAt = int(y) + 4
		}
		line.Points = strings.Join(points, " ")
	}
	if len(p.Lines) == 2 && p.Lines[1].LabelAt-p.Lines[0].LabelAt < 14 { // labels have room
		p.Lines[0].LabelAt = p.Lines[1].LabelAt - 14
	}
}

// roundUp is the next number with one digit, or one and a half, that is not 0.
func roundUp(n float64) float64 {
	if n <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(n)))
	return math.Ceil(n/unit*2) / 2 * unit
}

// checkChart reads the file as XML, and counts the lines and their points.
func checkChart(t *testing.T, file string, want, points int) {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	lines := 0
	for decoder := xml.NewDecoder(in); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the chart is no XML: %v", err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "polyline" {
			lines++
			if n := len(strings.Fields(start.Attr[0].Value)); n != points {
				t.Errorf("line %d of the chart has %d points, want %d", lines, n, points)
			}
		}
	}
	if lines != want {
		t.Errorf("the chart has %d lines, want %d", lines, want)
	}
}
