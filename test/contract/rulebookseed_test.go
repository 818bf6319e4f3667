package contract_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// chosenSeed is the seed of this run, unless -rapid.seed gives one.
var chosenSeed = sync.OnceValues(func() (string, error) {
	given := flag.Lookup("rapid.seed")
	if given.Value.String() == "0" {
		if err := given.Value.Set(strconv.FormatUint(1+rand.Uint64()>>1, 10)); err != nil {
			return "", err
		}
	}
	return given.Value.String(), nil
})

// seed logs the seed of the run: rapid names it only where the property itself fails, and
// not where a helper ends the test.
func seed(t *testing.T) {
	t.Helper()
	s, err := chosenSeed()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("to repeat this run: -rapid.seed=%s", s)
}

// begin begins a play after every window has closed. What it returns ends the play, and
// shows what was noted if that failed.
func (b *book) begin(r *rapid.T) (end func()) {
	b.tenant.Advance(2 * time.Hour)
	b.begun, b.notes, b.proposals, b.person = b.tenant.Now(), nil, nil, nil
	before := b.t.Failed()
	return func() {
		b.failed = b.failed || r.Failed()
		if r.Failed() || !before && b.t.Failed() {
			b.t.Logf("play %d:\n%s", b.plays, strings.Join(b.notes, "\n"))
		}
	}
}

// note notes what happens in a play.
func (b *book) note(format string, values ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, values...))
}

// late reports whether the play takes so long that the budget of its first calls may have
// come back: on a slow machine it cannot be said then what is answered.
func (b *book) late() bool { return b.tenant.Now().Sub(b.begun) > 50*time.Second }

// dump is a value with what its pointers lead to.
func dump(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%+v", v)
	}
	return string(text)
}
