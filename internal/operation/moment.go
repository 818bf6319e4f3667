package operation

import "time"

// Instant is a time as answers write it: ISO 8601 in UTC, always with three
// decimals of a second, so that texts sort as the times do.
type Instant struct{ time.Time }

// instantLayout is RFC 3339 with milliseconds, which is what is stored.
const instantLayout = "2006-01-02T15:04:05.000Z"

// MarshalJSON writes the text of i.
func (i Instant) MarshalJSON() ([]byte, error) {
	return i.UTC().AppendFormat(make([]byte, 0, len(instantLayout)+2), `"`+instantLayout+`"`), nil
}

// Moment is t in an answer: null for the zero time, which means never or
// unknown.
func Moment(t time.Time) *Instant {
	if t.IsZero() {
		return nil
	}
	return &Instant{t.UTC()}
}
