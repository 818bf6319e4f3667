package event

import (
	"time"

	"github.com/musterhq/muster/internal/slice"
)

// Values are the types, for descriptions.
func (Type) Values() []string { return Names(Types()) }

// Names are types as texts.
func Names(types []Type) []string {
	return slice.Map(types, func(t Type) string { return string(t) })
}

// Sample is an event of a type as callers get it, for descriptions: with the members that
// apply to the type.
func Sample(t Type) View {
	e := Event{ID: "8k2v0r6m4q1x7t9c3w5y2n8b6d", Type: t, At: time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)}
	switch t.Area() {
	case "device", "command":
		e.AssetID, e.PolicyID = "8k2v0r6m4q1x7t9c3w5y2n8b6d", "5h9j3f7p1s6z4g8a2e0k7m9q3v"
	case "policy", "proposal":
		e.PolicyID = "5h9j3f7p1s6z4g8a2e0k7m9q3v"
	}
	if t.Area() == "command" {
		e.Command, e.RequestID = "LOCK", "nightly-42"
	}
	if t.Area() == "proposal" {
		e.ProposalID = "prp_7q2m9x4c6v1b8n3z5k0w4t6r2y"
	}
	e.Status = map[Type]string{DeviceLostMode: On, ProposalEnded: "EXPIRED", CommandSucceeded: "SUCCESS", CommandFailed: "ERROR",
		CommandUnconfirmed: "UNCONFIRMED"}[t]
	return e.View("acme")
}
