package controls

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// limits is the form of the limits, as it was filled in.
type limits struct {
	Limited                 bool
	Devices, Minutes, Hours string
	Problem                 string
}

// limitsOf is the form for the company's controls. Without a limit it offers the first one.
func limitsOf(c access.Controls) limits {
	shown := c.DestructiveLimit
	if shown.Off() {
		shown = access.DefaultControls().DestructiveLimit
	}
	return limits{Limited: !c.DestructiveLimit.Off(), Devices: strconv.Itoa(shown.Devices),
		Minutes: strconv.Itoa(int(shown.Window.Minutes())), Hours: hoursText(c.ApproverAge)}
}

func hoursText(d time.Duration) string { return strconv.FormatFloat(d.Hours(), 'f', -1, 64) }

// readLimits reads the form. The limit may be written as the command line takes it, too:
// 25/60m, or off.
func readLimits(v *frame.Visit) limits {
	field := func(name string) string { return strings.TrimSpace(v.Form.Get(name)) }
	f := limits{Limited: field("limited") == "true", Devices: field("limit"), Minutes: field("minutes"), Hours: field("age")}
	if l, err := access.ParseDestructiveLimit(f.Devices); err == nil {
		f.Limited = !l.Off()
		f.Devices, f.Minutes = strconv.Itoa(l.Devices), strconv.Itoa(int(l.Window.Minutes()))
	}
	return f
}

// parse returns the limit and the age, or what is wrong with the form. An age of the operator
// may be greater than the portal sets: it stays.
func (f limits) parse(age time.Duration) (limit access.DestructiveLimit, _ time.Duration, wrong string) {
	if _, err := strconv.Atoi(f.Devices); err != nil && f.Devices != "" {
		return limit, age, "The limit must be a number of devices."
	}
	if f.Limited {
		var err error
		if limit, err = access.ParseDestructiveLimit(f.Devices + "/" + f.Minutes + "m"); err != nil {
			return limit, age, "The limit must be for 1 to 100,000 devices in 1 to 10,080 whole minutes (7 days)."
		}
	}
	if f.Hours == hoursText(age) {
		return limit, age, ""
	}
	hours, err := strconv.ParseFloat(f.Hours, 64)
	if err != nil || math.IsNaN(hours) || hours < 0 || hours > access.MaxPortalApproverAge.Hours() {
		return limit, age, "The age must be from 0 to 168 hours (7 days). The operator can set a greater one."
	}
	return limit, time.Duration(hours * float64(time.Hour)).Truncate(time.Millisecond), ""
}
