package agent_test

import (
	"testing"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// already is in agent.ErrEnrolled.
const already = "is enrolled already"

// A device enrolls again if its service has released it, or if it is asked to; never out of an order to erase it, at another
// service, or in another role.
func TestEnroll_Again(t *testing.T) {
	t.Parallel()
	companion := func(s *againWorld) {
		s.e.Role = protocol.Companion
		s.edit("identity.json", object{"role": "companion"})
	}
	changing := func(s *againWorld) {
		next, err := vectorKey(t, "next").Marshal()
		if err != nil {
			t.Fatal(err)
		}
		s.edit("identity.json", object{"nextKey": next})
	}
	for _, row := range []againRow{
		{"managed", nil, false, "not_found", already, "/policy/none", ""},
		{"managed, and is to", nil, true, "not_found", "", "/policy/none /checkin /enroll", "former"},
		{"managed, and is to, with an answer", nil, true, "", "", "/policy/none /checkin /enroll", "former"},
		{"released", nil, false, "unenroll", "", "/policy/none /enroll", ""},
		{"superseded", nil, false, "superseded", "", "/policy/none /enroll", ""},
		{"superseded, and is to", nil, true, "superseded", "", "/policy/none /enroll", ""},
		{"to be erased", nil, false, "wipe", "ordered to erase", "/policy/none", ""},
		{"to be erased, and is to", nil, true, "wipe", "ordered to erase", "/policy/none", ""},
		{"a companion to be erased", companion, false, "wipe", "", "/policy/none /enroll", ""},
		{"a managed companion, and is to", companion, true, "not_found", "", "/policy/none /checkin /enroll", ""},
		{"away", nil, false, "away", already, "/policy/none", ""},
		{"away, and is to", nil, true, "away", "connection refused", "/policy/none", ""},
		{"not known any more", nil, false, "bad_signature", already, "/policy/none", ""},
		{"not known any more, and is to", nil, true, "bad_signature", "", "/policy/none /enroll", "lost"},
		{"superseded, as it changes its key", changing, false, "superseded", "", "/rotate /enroll", ""},
		{"managed, as it changes its key", changing, false, "not_found", already, "/rotate /policy/none", ""},
		{"at another service", func(s *againWorld) { s.e.Server = "https://other.example" }, false, "superseded", already, "", ""},
		{"at the same service", func(s *againWorld) { s.e.Server += "/" }, false, "superseded", "", "/policy/none /enroll", ""},
		{"in another role", func(s *againWorld) { s.e.Role = protocol.Companion }, false, "superseded", already, "", ""},
	} {
		row.try(t)
	}
}

// A device that enrolls again keeps to the key by which it knows its service, also where it lost its identity.
func TestEnroll_AgainAtTheServiceItKnows(t *testing.T) {
	t.Parallel()
	lost := func(change func(*againWorld)) func(*againWorld) {
		return func(s *againWorld) {
			s.lost = true
			change(s)
		}
	}
	nothing := func(*againWorld) {}
	otherKey, ed25519 := func(s *againWorld) { s.otherKey = true }, func(s *againWorld) { s.e.Algorithm = protocol.Ed25519 }
	wipes := func(s *againWorld) { s.gives = protocol.WipeAgain }
	known, other := forger{t: t}.public(vectorKey(t, "device")), forger{t: t}.public(vectorKey(t, "other"))
	for _, row := range []againRow{
		{"by the code of its service", func(s *againWorld) { s.e.CommandKey = known.SPKI }, false, "unenroll", "",
			"/policy/none /enroll", ""},
		{"by the code of another", func(s *againWorld) { s.e.CommandKey = other.SPKI }, false, "unenroll", "does not know",
			"/policy/none", ""},
		{"with another algorithm", ed25519, false, "unenroll", "use --alg es256", "/policy/none", ""},
		{"answered with another key", otherKey, false, "unenroll", "does not name the command key", "/policy/none /enroll", ""},
		{"answered with a wipe", wipes, false, "unenroll", "ordered to erase", "/policy/none /enroll", ""},
		{"answered with an end", func(s *againWorld) { s.gives = protocol.Superseded }, false, "unenroll", "refused the enrollment",
			"/policy/none /enroll", ""},
		{"lost", lost(nothing), false, "", "", "/enroll", "lost"},
		{"lost, a companion", lost(func(s *againWorld) { s.whom, s.e.Role = "companion", "companion" }), false, "", "", "/enroll", ""},
		{"lost, in another role", lost(func(s *againWorld) { s.whom = "companion" }), false, "", "use --role companion", "", ""},
		{"lost, with another algorithm", lost(ed25519), false, "", "use --alg es256", "", ""},
		{"lost, without a note", lost(func(s *againWorld) { s.whom = nil }), false, "", "not known either", "", ""},
		{"lost, with a note of no id", lost(func(s *againWorld) { s.key = protocol.CommandKey{Key: known} }), false, "", "not known either",
			"", ""},
		{"lost, with a note of no key", lost(func(s *againWorld) { s.key = object{"id": "k1"} }), false, "", "not known either", "", ""},
		{"lost, answered with another key", lost(otherKey), false, "", "does not name the command key", "/enroll", "lost"},
		{"lost, answered with a wipe", lost(wipes), false, "", "refused the enrollment", "/enroll", "lost"},
	} {
		row.try(t)
	}
}
