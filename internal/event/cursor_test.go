package event_test

import (
	"strconv"
	"testing"

	"github.com/musterhq/muster/internal/event"
)

// A cursor that began with a hyphen would be a flag on the command line. One of before, which
// may, is still read.
func TestCursor_BeginsWithNoHyphen(t *testing.T) {
	t.Parallel()
	read := 0
	for n := range 1000 {
		head, company := event.Head{History: strconv.Itoa(n), First: 1, Last: 9}, "acme"
		cursor := head.Cursor(company, 7)
		if cursor[0] == '-' {
			t.Fatalf("history %d has the cursor %s", n, cursor)
		}
		const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
		for i := range letters {
			if at, err := head.Position(company, letters[i:i+1]+cursor[1:]); err == nil && at == 7 {
				read++
			}
		}
	}
	if read != 2000 {
		t.Errorf("%d of 64,000 cursors with another first character are read, want those of now and of before", read)
	}
}
