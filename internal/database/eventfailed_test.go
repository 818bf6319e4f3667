package database_test

import (
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/proposal"
)

// A failed apply is an event for every caller who may read policies. Only the caller that made
// the proposal reads the proposal's id, and that its outcome is not known.
func TestEvents_FailedOrUnconfirmedApply(t *testing.T) {
	withCompany(t, func(f *fixture) {
		end := func(status proposal.Status) (id string) {
			f.Helper()
			id = f.propose(f.newPolicy("West "+string(status)), access.Actor{Kind: access.APIKey, ID: "k1"}).ID
			f.claim(id)
			f.finish(id, "h", proposal.Ending{Status: status}) // h: the holder whom claim names
			return id
		}
		failed, unconfirmed := end(proposal.Failed), end(proposal.Unconfirmed)
		equal(f, "applies in the log", f.recorded(activity.ProposalApplied), 2)
		for key, want := range map[string][]string{
			"k1": {words(event.PolicyFailed, "", failed), words(event.ProposalEnded, "FAILED", failed),
				words(event.ProposalEnded, "UNCONFIRMED", unconfirmed)},
			"k2": {words(event.PolicyFailed)},
		} {
			reader := all()
			reader.ID = key
			var got []string
			for _, e := range f.reader(f.db, reader).rest(f) {
				got = append(got, words(e.Type, e.Data.Status, e.Data.ProposalID))
			}
			slices.Sort(got)
			equal(f, "events of "+key, got, want)
		}
	})
}
