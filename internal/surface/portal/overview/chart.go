package overview

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// day counts the commands of one day by what the service knows of them.
type day struct {
	At                              time.Time
	Success, Error, Unknown, Active int64
}

func (d day) total() int64 { return d.Success + d.Error + d.Unknown + d.Active }

// link is where that day's commands are listed.
func (d day) link() string {
	return fmt.Sprintf("%s?area=command&from=%d&to=%d", frame.ActivityPath, d.At.UnixMilli(), d.At.Add(24*time.Hour).UnixMilli())
}

// daysShown is how far the chart goes back.
const daysShown = 30

func (s *Section) days(v *frame.Visit, t *tiles) error {
	if !v.May(account.ViewDevices) {
		return nil
	}
	today := v.Now.UTC().Truncate(24 * time.Hour)
	first := today.AddDate(0, 0, 1-daysShown)
	tallies, err := s.Commands.Tallies(v.Context(), v.Company.ID, v.Principal.Policies, first)
	if err != nil {
		return err
	}
	t.Days = make([]day, daysShown)
	for i := range t.Days {
		t.Days[i].At = first.AddDate(0, 0, i)
	}
	for _, c := range tallies {
		i := int(c.Day.Sub(first) / (24 * time.Hour))
		if i < 0 || i >= daysShown {
			continue
		}
		switch c.State {
		case command.Succeeded:
			t.Days[i].Success += c.Count
		case command.Failed:
			t.Days[i].Error += c.Count
		case command.Unconfirmed:
			t.Days[i].Unknown += c.Count
		default:
			t.Days[i].Active += c.Count
		}
	}
	return nil
}

// The chart's size, in its own units.
const (
	chartWidth, chartHeight = 600.0, 150.0
	barWidth                = chartWidth / daysShown
)

// part is one part of a day's bar.
type part struct{ X, Y, Width, Height, Class string }

// highest is the top of the chart's scale.
func highest(days []day) int64 {
	top := int64(4)
	for _, d := range days {
		top = max(top, d.total())
	}
	return top + top%2 // its half is on the scale, too
}

// parts stacks a day, what went well at the bottom.
func parts(i int, d day, top int64) []part {
	var all []part
	y := chartHeight
	for _, p := range []struct {
		n     int64
		class string
	}{{d.Success, "fill-ok"}, {d.Active, "fill-idle"}, {d.Unknown, "fill-warn"}, {d.Error, "fill-bad"}} {
		if p.n == 0 {
			continue
		}
		height := chartHeight * float64(p.n) / float64(top)
		y -= height
		all = append(all, part{number(float64(i)*barWidth + 2), number(y), number(barWidth - 4), number(height), p.class})
	}
	return all
}

func number(n float64) string { return fmt.Sprintf("%.2f", n) }

func (d day) text() string {
	return fmt.Sprintf("%s: %d success, %d in progress, %d unconfirmed, %d error", d.At.Format("2 Jan"), d.Success,
		d.Active, d.Unknown, d.Error)
}

// bar is one bar of a list of bars.
type bar struct {
	Label, Link string
	Count       int64
	Share       float64 // of the longest
	Tone        frame.Tone
}

// barsShown is how many bars a list has.
const barsShown = 7

func (s *Section) policies(v *frame.Visit, t *tiles) error {
	if !v.May(account.ViewPolicies) {
		return nil
	}
	all, _, err := s.Policies.Policies(v.Context(), policy.Query{CompanyID: v.Company.ID, IDs: v.Principal.Policies,
		Order: policy.ByDevices, Descending: true, Limit: barsShown})
	for _, p := range all {
		link := frame.Either(v.May(account.ViewDevices), frame.DevicesPath+"?policy="+url.QueryEscape(p.ID), frame.PolicyPath(p.ID))
		t.Policies = append(t.Policies, bar{Label: p.Name, Link: link, Count: int64(p.DeviceCount)})
	}
	t.Policies = shared(t.Policies)
	return err
}

func (s *Section) patches(v *frame.Visit, t *tiles) error {
	if !v.May(account.ViewDevices) {
		return nil
	}
	levels, err := s.Assets.PatchLevels(v.Context(), v.Company.ID, v.Principal.Policies)
	for _, l := range levels {
		t.Patches = append(t.Patches, bar{Label: cmp.Or(l.Month, "not reported"), Count: l.Devices, Tone: age(v.Now, l.Month),
			Link: frame.DevicesPath + "?patch=" + cmp.Or(l.Month, asset.NoPatch)})
	}
	t.Patches = folded(t.Patches)
	return err
}

// folded keeps the newest months, and puts older ones into one bar; what is not
// reported stays apart. The bars come newest first.
func folded(bars []bar) []bar {
	if len(bars) > barsShown {
		unknown := bars[len(bars)-1:]
		if unknown[0].Tone != frame.Idle {
			unknown = nil
		}
		months := bars[:len(bars)-len(unknown)]
		keep := barsShown - 1 - len(unknown)
		older := bar{Label: "before " + months[keep-1].Label, Tone: months[keep].Tone,
			Link: frame.DevicesPath + "?patchBefore=" + months[keep-1].Label + "-01"}
		for _, b := range months[keep:] {
			older.Count += b.Count
		}
		bars = append(append(slices.Clone(months[:keep]), older), unknown...)
	}
	return shared(bars)
}

// shared sets the bars' shares of the longest.
func shared(bars []bar) []bar {
	most := int64(1)
	for _, b := range bars {
		most = max(most, b.Count)
	}
	for i := range bars {
		bars[i].Share = float64(bars[i].Count) / float64(most)
	}
	return bars
}

// age says whether a patch level is old: three months are late, half a year bad.
func age(now time.Time, level string) frame.Tone {
	at, err := time.Parse("2006-01", level)
	switch {
	case err != nil:
		return frame.Idle
	case now.Sub(at) > 183*24*time.Hour:
		return frame.Bad
	case now.Sub(at) > 92*24*time.Hour:
		return frame.Warn
	default:
		return frame.OK
	}
}

func fill(tone frame.Tone) string {
	return "fill-" + cmp.Or(string(tone), "primary")
}

// gate is one of the company's settings for AI agents.
type gate struct {
	Name     string
	On       bool
	Destroys bool
}

// approvalState says which policy changes need an approval. That programs may
// change policies without a person is marked.
func approvalState(s access.Settings) (frame.Tone, string) {
	switch {
	case s.Controls.ApplyApproval != "" && s.Controls.ApplyApproval != access.ApproveNone:
		return frame.OK, "On"
	case s.PolicyChanges:
		return frame.Warn, "Off"
	}
	return frame.Idle, "Off"
}

func gatesOf(s access.Settings) []gate {
	return []gate{
		{"Device commands", s.DeviceCommands, false}, {"Destructive", s.DeviceCommands && s.DestructiveCommands, true},
		{"Policy changes", s.PolicyChanges, false}, {"Provisioning", s.Provisioning, false}, {"Connections", s.OAuthConnections, false},
	}
}
