package database_test

import (
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/proposal"
)

// Who may read policies learns that an apply failed; the proposal is named to its maker alone.
func TestEvents_FailedApplyNamesTheProposalToItsMaker(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.newPolicy("West")
		made := f.propose(p, proposal.Owner{Kind: access.APIKey, ID: "k1"})
		f.claim(made.ID)
		f.finish(made.ID, "h", proposal.Ending{Status: proposal.Failed})
		for id, want := range map[string]map[event.Type]string{
			"k1": {event.PolicyFailed: made.ID, event.ProposalEnded: made.ID},
			"k2": {event.PolicyFailed: ""},
		} {
			reader := all()
			reader.ID = id
			got := map[event.Type]string{}
			for _, e := range f.reader(f.db, reader).rest(f) {
				got[e.Type] = e.Data.ProposalID
			}
			equal(f, "events of "+id, got, want)
		}
	})
}

// The caller learns that the outcome of an apply is not known, as of one that failed.
func TestEvents_UnconfirmedApply(t *testing.T) {
	withCompany(t, func(f *fixture) {
		made := f.propose(f.newPolicy("West"), proposal.Owner{Kind: access.APIKey, ID: "k1"})
		f.claim(made.ID)
		f.finish(made.ID, "h", proposal.Ending{Status: proposal.Unconfirmed})
		reader := all()
		reader.ID = "k1"
		events := f.reader(f.db, reader).rest(f)
		if len(events) != 1 || events[0].Type != event.ProposalEnded || events[0].Data.Status != "UNCONFIRMED" ||
			events[0].Data.ProposalID != made.ID {
			f.Errorf("told %+v", events)
		}
	})
}
