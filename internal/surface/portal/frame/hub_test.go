package frame

import (
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/resource"
)

// TestLive_StreamRepeatsWhatItMissed: what changes between the making of a page and
// the opening of its stream is reported when the stream opens.
func TestLive_StreamRepeatsWhatItMissed(t *testing.T) {
	t.Parallel()
	const company = "c"
	missed := func(h *Hub, mark string) []string {
		s := &stream{company: company, topics: []string{"assets", "asset:a", "asset:b"}, signal: make(chan struct{}, 1)}
		h.since(mark, s)
		return s.take()
	}
	h := NewHub()
	mark := h.Mark()
	if got := missed(h, mark); got != nil {
		t.Errorf("nothing happened, and the stream hears %v", got)
	}
	h.Changed([]string{resource.Change(company, "asset", "a"), resource.Change("other", "asset", "b")})
	if got := missed(h, mark); !slices.Equal(got, []string{"assets", "asset:a"}) {
		t.Errorf("the stream hears %v", got)
	}
	if got := missed(h, h.Mark()); got != nil {
		t.Errorf("what the page shows already is sent again: %v", got)
	}
	all := []string{"assets", "asset:a", "asset:b"}
	for name, old := range map[string]string{"another replica's mark": NewHub().Mark(), "no mark": "x",
		"a mark of the future": h.Mark() + "999"} {
		t.Run(name, func(t *testing.T) {
			if got := missed(h, old); !slices.Equal(got, all) {
				t.Errorf("%s: the stream hears %v", name, got)
			}
		})
	}
	h.Changed(nil)
	if got := missed(h, mark); !slices.Equal(got, all) {
		t.Errorf("after anything may have changed: %v", got)
	}
	mark = h.Mark()
	for range 1000 {
		h.Changed([]string{resource.Change("other", "asset", "b")})
	}
	if got := missed(h, mark); !slices.Equal(got, all) {
		t.Errorf("after more than is kept: %v", got)
	}
}
