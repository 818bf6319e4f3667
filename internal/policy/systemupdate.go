package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// SystemUpdateID is the setting as which agents get and report the systemUpdate of an
// AGENT policy. Its value is SystemUpdate.Value.
const SystemUpdateID = "SYSTEM_UPDATE"

// systemUpdate is the member of an AGENT document.
const systemUpdate = "systemUpdate"

// How devices install updates of their system.
const (
	Automatic = "AUTOMATIC" // as soon as there is one
	Windowed  = "WINDOWED"  // in a daily window
	Postpone  = "POSTPONE"  // not for 30 days
)

// The limits that Android has for freeze periods, in days.
const (
	maxFreeze     = 90
	minFreezeGap  = 60
	daysInYear    = 365 // Android counts February 29 as February 28
	minutesInDay  = 24 * 60
	maxSystemText = 4096 // bytes
)

// SystemUpdate is when devices install updates of their system, in the form of the
// platform's policy.
type SystemUpdate struct {
	Type string `json:"type"`
	// The window, with Windowed alone: minutes after midnight, local time. A window
	// whose end is not after its start ends the next day.
	StartMinutes *int `json:"startMinutes,omitempty"`
	EndMinutes   *int `json:"endMinutes,omitempty"`
	// FreezePeriods are times of each year in which no update is installed.
	FreezePeriods []FreezePeriod `json:"freezePeriods,omitempty"`
}

// FreezePeriod is a time of each year; both days are in it. An end before the start is in
// the next year.
type FreezePeriod struct {
	StartDate Day `json:"startDate"`
	EndDate   Day `json:"endDate"`
}

// Day is a day of each year.
type Day struct {
	Month int `json:"month"`
	Day   int `json:"day"`
}

// ParseSystemUpdate reads one, strictly: no member twice, none unknown.
func ParseSystemUpdate(text []byte) (SystemUpdate, error) {
	var u SystemUpdate
	if len(text) > maxSystemText {
		return u, fmt.Errorf("%s has %d bytes, at most %d are read", systemUpdate, len(text), maxSystemText)
	}
	if _, err := parseObject(text); err != nil {
		return u, err
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&u); err != nil {
		return u, fmt.Errorf("%s: %w", systemUpdate, err)
	}
	return u, u.check()
}

func (u SystemUpdate) check() error {
	window := u.StartMinutes != nil || u.EndMinutes != nil
	switch {
	case !slices.Contains([]string{Automatic, Windowed, Postpone}, u.Type):
		return fmt.Errorf("%s.type must be %s, %s or %s", systemUpdate, Automatic, Windowed, Postpone)
	case u.Type != Windowed && window:
		return fmt.Errorf("%s: only %s has startMinutes and endMinutes", systemUpdate, Windowed)
	case u.Type == Windowed && (!minute(u.StartMinutes) || !minute(u.EndMinutes)):
		return fmt.Errorf("%s: %s needs startMinutes and endMinutes from 0 to %d", systemUpdate, Windowed, minutesInDay-1)
	}
	return checkFreezes(u.FreezePeriods)
}

func minute(m *int) bool { return m != nil && *m >= 0 && *m < minutesInDay }

// checkFreezes refuses what Android refuses: periods of more than 90 days, and less than 60
// days between one and the next, over the end of the year.
func checkFreezes(periods []FreezePeriod) error {
	sorted := slices.Clone(periods)
	slices.SortFunc(sorted, func(a, b FreezePeriod) int { return a.StartDate.number() - b.StartDate.number() })
	for i, p := range sorted {
		if p.StartDate.number() == 0 || p.EndDate.number() == 0 {
			return errors.New(systemUpdate + ".freezePeriods: a date is a month and a day that exist")
		}
		length := (p.EndDate.number()-p.StartDate.number()+daysInYear)%daysInYear + 1 // both ends included
		if length > maxFreeze {
			return fmt.Errorf("%s.freezePeriods: %s has %d days, at most %d are allowed", systemUpdate, p, length, maxFreeze)
		}
		following := sorted[(i+1)%len(sorted)]
		gap := (following.StartDate.number()-p.StartDate.number()+daysInYear)%daysInYear - length
		if len(sorted) > 1 && gap < minFreezeGap {
			return fmt.Errorf("%s.freezePeriods: between %s and %s must be at least %d days", systemUpdate, p, following, minFreezeGap)
		}
	}
	return nil
}

// String is the period for people.
func (p FreezePeriod) String() string {
	return fmt.Sprintf("%02d-%02d to %02d-%02d", p.StartDate.Month, p.StartDate.Day, p.EndDate.Month, p.EndDate.Day)
}

// number is the day's in a year without a leap day, from 1; 0: there is no such day.
func (d Day) number() int {
	d = d.plain()
	at := time.Date(2026, time.Month(d.Month), d.Day, 0, 0, 0, 0, time.UTC)
	if int(at.Month()) != d.Month || at.Day() != d.Day || d.Month < 1 {
		return 0
	}
	return at.YearDay()
}

// plain is the day in a year without a leap day.
func (d Day) plain() Day {
	if d == (Day{2, 29}) {
		return Day{2, 28}
	}
	return d
}

// Value is the one text of u that agents get, and read back from their devices.
func (u SystemUpdate) Value() string {
	u.FreezePeriods = slices.Clone(u.FreezePeriods)
	for i, p := range u.FreezePeriods {
		u.FreezePeriods[i] = FreezePeriod{p.StartDate.plain(), p.EndDate.plain()}
	}
	slices.SortFunc(u.FreezePeriods, func(a, b FreezePeriod) int { return a.StartDate.number() - b.StartDate.number() })
	text, _ := json.Marshal(u) // it cannot fail
	return string(text)
}

// SystemUpdateOf returns the systemUpdate of an AGENT document; nil: it has none.
func SystemUpdateOf(document json.RawMessage) (*SystemUpdate, error) {
	o, err := parseObject(document)
	if err != nil {
		return nil, fmt.Errorf("cannot read the policy's document: %w", err)
	}
	m := o.find(systemUpdate)
	if m == nil {
		return nil, nil
	}
	u, err := ParseSystemUpdate(m.value)
	return &u, err
}

// withSystemUpdate is an AGENT document with a systemUpdate; one without members removes
// that of the document.
func withSystemUpdate(t Type, document, text json.RawMessage) (json.RawMessage, error) {
	if t != Agent {
		return nil, errors.New("only AGENT policies are given a " + systemUpdate + " in this way: a PLATFORM policy has it in its document")
	}
	o, err := parseObject(document)
	if err != nil {
		return nil, err
	}
	given, err := parseObject(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", systemUpdate, err)
	}
	if len(given.members) == 0 {
		o.remove([]string{systemUpdate})
		return json.RawMessage(o.text()), nil
	}
	if _, err := ParseSystemUpdate(text); err != nil {
		return nil, err
	}
	o.set([]string{systemUpdate}, jsontext.Value(text))
	return json.RawMessage(o.text()), nil
}
