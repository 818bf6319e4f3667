package operation

import "time"

// Moment is a time as answers write it: UTC, and null for the zero time, which
// means never or unknown.
func Moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	u := t.UTC()
	return &u
}
