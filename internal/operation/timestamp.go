package operation

import "time"

// Timestamp is a time as answers write it: ISO 8601 in UTC, always with three
// decimals of a second, so that texts sort as the times do.
type Timestamp struct{ time.Time }

// instantLayout is RFC 3339 with milliseconds, which is what is stored.
const instantLayout = "2006-01-02T15:04:05.000Z"

// MarshalJSON writes the text of i.
func (i Timestamp) MarshalJSON() ([]byte, error) {
	return i.UTC().AppendFormat(make([]byte, 0, len(instantLayout)+2), `"`+instantLayout+`"`), nil
}

// TimestampOf is t in an answer: null for the zero time, which means never or
// unknown.
func TimestampOf(t time.Time) *Timestamp {
	if t.IsZero() {
		return nil
	}
	return &Timestamp{t.UTC()}
}
