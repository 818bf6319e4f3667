package resource_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/resource"
)

// A reference is the short id or the caller's own full name of the same thing,
// and nothing else comes through.
func FuzzShort(f *testing.F) {
	for _, ref := range []string{"a", "enterprises/acme/assets/a1", "enterprises/acme/assets/", "enterprises/acme/policies/a1",
		"enterprises/other/assets/a1", "enterprises/acme/assets/enterprises/acme/assets/a1", "A1", "../a",
		strings.Repeat("a", 65), "prp_a"} {
		f.Add("acme", ref)
	}
	f.Fuzz(func(t *testing.T, slug, ref string) {
		id, ok := resource.Short(slug, resource.Assets, ref)
		if ok != resource.IsID(id) || ok && ref != id && ref != resource.Of(slug, resource.Assets, id) {
			t.Errorf("%q of %q is read as %q, %v", ref, slug, id, ok)
		}
		if _, other := resource.Short(slug, resource.Policies, resource.Of(slug, resource.Assets, "a1")); other {
			t.Error("an asset's name is read as a policy's")
		}
		if resource.IsProposalID(ref) && !strings.HasPrefix(ref, "prp_") {
			t.Errorf("%q is taken for a proposal's id", ref)
		}
		if !ok {
			return
		}
		if again, ok := resource.Short(slug, resource.Assets, resource.Of(slug, resource.Assets, id)); !ok || again != id {
			t.Errorf("the full name of %q is read as %q, %v", id, again, ok)
		}
	})
}

// Ids of later moments are greater, and those of one moment differ and are not counted.
func TestNewIDAt(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	last, at := "", time.UnixMilli(1_700_000_000_000)
	for range 1000 {
		id, other := resource.NewIDAt(at), resource.NewIDAt(at)
		if len(id) != 26 || !resource.IsID(id) {
			t.Fatalf("the id %q", id)
		}
		if seen[id] || seen[other] || seen[id[10:]] || id == other {
			t.Fatalf("%q or %q was there before", id, other)
		}
		if min(id, other) <= last {
			t.Fatalf("%q and %q are not after %q of an earlier moment", id, other, last)
		}
		seen[id], seen[other], seen[id[10:]] = true, true, true
		last, at = max(id, other), at.Add(time.Millisecond)
	}
}

func TestNewID(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		id := resource.NewID()
		if !resource.IsID(id) || len(id) != 26 || seen[id] {
			t.Fatalf("%q is no new id", id)
		}
		seen[id] = true
	}
	if id := resource.NewProposalID(); !resource.IsProposalID(id) || resource.IsProposalID("prp_") || resource.IsProposalID(seenOne(seen)) {
		t.Errorf("%q is no proposal's id, or others are", id)
	}
}

func seenOne(ids map[string]bool) string {
	for id := range ids {
		return id
	}
	return ""
}
