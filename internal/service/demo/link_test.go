package demo

import (
	"testing"
	"time"
)

// TestLink: the link of a start signs in once, with its own code, within the hour.
func TestLink(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)
	made := func() *link { return newLink(func() time.Time { return now }) }
	late := made()
	once := made()
	if _, ok := once.take("another code"); ok {
		t.Error("another code signs in")
	}
	if who, ok := once.take(once.code); !ok || who != portalUser {
		t.Errorf("the link signs in %q", who)
	}
	if _, ok := once.take(""); ok {
		t.Error("a used link signs in without a code")
	}
	now = now.Add(linkLife)
	if _, ok := late.take(late.code); ok {
		t.Error("the link signs in after an hour")
	}
}
