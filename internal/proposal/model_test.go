package proposal_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"pgregory.net/rapid"
)

// model is what must be true of one policy, its copies and their proposals,
// whatever happens to them.
type model struct {
	*fixture
	t        *rapid.T
	policies []string // ids; those of copies that may exist come later
	versions map[string]int
	statuses map[string]proposal.Status // of each proposal, when last looked at
	made     map[string]proposal.Proposal
	order    []string // proposals in the order in which they were made
}

// TestProposals_Model draws sequences of saves, proposals, applies, deaths, vendor
// faults, expiries and settlings.
func TestProposals_Model(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	r.service.LeaseWait = time.Millisecond // a dead one's lease is not waited for
	round := 0
	rapid.Check(t, func(t *rapid.T) {
		round++
		r.vendor.next("")
		r.vendor.pushes = nil
		m := &model{fixture: r, t: t, versions: map[string]int{}, statuses: map[string]proposal.Status{},
			made: map[string]proposal.Proposal{}}
		m.policies = []string{r.newPolicy(fmt.Sprintf("Warehouse %d", round), rapid.IntRange(0, 1).Draw(t, "devices")).ID}
		t.Repeat(map[string]func(*rapid.T){
			"":         m.check,
			"save":     m.save,
			"propose":  m.propose,
			"copy":     m.copy,
			"rollback": m.rollback,
			"apply":    m.apply,
			"die":      m.die,
			"wait": func(t *rapid.T) {
				r.clock.Advance(time.Duration(rapid.SampledFrom([]int{1, 5, 20, 60, 300, 601}).Draw(t, "seconds")) * time.Second)
			},
			"settle": func(*rapid.T) { r.ok(r.reconciler.Settle(r.Context())) },
			"push":   func(*rapid.T) { r.push() },
		})
		r.vendor.next("")
		r.settle()
		m.check(t)
		m.ends(t)
	})
}

// existing are the policies that there are.
func (m *model) existing() []policy.Policy {
	var all []policy.Policy
	for _, id := range m.policies {
		p, err := m.db.Policy(m.Context(), m.company.ID, id)
		if fault.CodeOf(err) == fault.NotFound {
			continue
		}
		m.ok(err)
		all = append(all, p)
	}
	return all
}

func (m *model) some(t *rapid.T) policy.Policy {
	return rapid.SampledFrom(m.existing()).Draw(t, "policy")
}

func someChanges(t *rapid.T) []policy.Change {
	ids := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"CAMERA", "SMS", "WIFI_STATE", "FACTORY_RESET", "ENCRYPTION_POLICY",
		"APPLICATION_REPORT_LEVEL"}), 1, 3, rapid.ID[string]).Draw(t, "settings")
	var changes []policy.Change
	for _, id := range ids {
		s, _ := policy.Lookup(id)
		changes = append(changes, policy.Change{Setting: id, Value: rapid.SampledFrom(s.Allowed).Draw(t, id)})
	}
	return changes
}

// executing says whether a proposal about the policy is being applied by
// a process, which can only be dead here.
func (m *model) executing(policyID string) bool {
	return slices.ContainsFunc(m.order, func(id string) bool {
		return m.made[id].Next.PolicyID == policyID && m.fixture.proposal(id).Status == proposal.Executing
	})
}

func (m *model) save(t *rapid.T) {
	p := m.some(t)
	expected := p.Version - rapid.IntRange(0, 1).Draw(t, "behind")
	display := fmt.Sprintf("%s, version %d", p.ID[:8], p.Version)
	saved, err := m.fixture.policies.Save(m.Context(), m.company.ID, p.ID, expected, policy.Edit{Name: &display, Changes: someChanges(t)},
		operator())
	switch {
	case expected != p.Version:
		m.code(fault.StaleProposal, err)
	case m.executing(p.ID):
		m.code(fault.Unavailable, err)
	case err != nil || saved.Version != p.Version+1:
		t.Fatalf("saved %+v, %v", saved, err)
	}
}

// keep notes a proposal that was made.
func (m *model) keep(p proposal.Proposal, err error) {
	if fault.CodeOf(err) == fault.Refused {
		return // nothing would change, or the name is taken
	}
	m.ok(err)
	m.made[p.ID], m.order = p, append(m.order, p.ID)
	m.statuses[p.ID] = proposal.Pending
	if p.Creates() {
		m.policies = append(m.policies, p.Next.PolicyID)
	}
}

func (m *model) propose(t *rapid.T) {
	m.keep(m.service.ProposeChanges(m.Context(), m.key("k"), m.some(t).ID, someChanges(t)))
}

func (m *model) copy(t *rapid.T) {
	source := m.some(t)
	name := fmt.Sprintf("Copy %s %d", m.policies[0][:8], rapid.IntRange(1, 3).Draw(t, "name"))
	m.keep(m.service.ProposeCopy(m.Context(), m.key("k"), source.ID, name, someChanges(t)))
}

func (m *model) rollback(t *rapid.T) {
	p := m.some(t)
	m.keep(m.service.ProposeRollback(m.Context(), m.key("k"), p.ID, rapid.IntRange(1, p.Version).Draw(t, "revision")))
}

// one draws a proposal that was made, the newer the likelier.
func (m *model) one(t *rapid.T) proposal.Proposal {
	if len(m.order) == 0 {
		t.Skip("there is no proposal")
	}
	back := rapid.IntRange(0, min(3, len(m.order)-1)).Draw(t, "proposal")
	return m.made[m.order[len(m.order)-1-back]]
}

func (m *model) mood(t *rapid.T) answer {
	return rapid.SampledFrom([]answer{takes, takes, takes, refuses, notReached, losesAnswer, losesRequest}).Draw(t, "vendor")
}

// expect is what applying must answer, by what is known before.
func (m *model) expect(p proposal.Proposal, vendor answer) (fault.Code, proposal.Status) {
	now := m.fixture.proposal(p.ID)
	base := m.policy(p.PolicyID)
	switch {
	case now.Status != proposal.Pending:
		return fault.NotPending, now.Status
	case base.Version != p.BaseVersion:
		return fault.StaleProposal, proposal.Failed
	case m.nameTaken(p):
		return fault.Refused, proposal.Failed
	case m.executing(p.Next.PolicyID):
		return fault.Internal, proposal.Failed // the dead one's lease was waited for
	}
	switch vendor {
	case refuses:
		return fault.Refused, proposal.Failed
	case notReached:
		return fault.Internal, proposal.Failed
	case losesAnswer, losesRequest:
		return fault.Internal, proposal.Unconfirmed
	default:
		return "", proposal.Succeeded
	}
}

// nameTaken says whether the new name is another policy's, or is being given
// to another.
func (m *model) nameTaken(p proposal.Proposal) bool {
	if !p.Renames {
		return false
	}
	if slices.ContainsFunc(m.existing(), func(other policy.Policy) bool {
		return other.ID != p.Next.PolicyID && policy.SameName(other.Name, p.Next.Name)
	}) {
		return true
	}
	return slices.ContainsFunc(m.order, func(id string) bool {
		other := m.made[id]
		return other.Renames && other.Next.PolicyID != p.Next.PolicyID && policy.SameName(other.Next.Name, p.Next.Name) &&
			m.fixture.proposal(id).Status == proposal.Executing
	})
}

func (m *model) apply(t *rapid.T) {
	p, vendor := m.one(t), m.mood(t)
	code, status := m.expect(p, vendor)
	if rapid.IntRange(0, 4).Draw(t, "confirmed") == 0 && p.NeedsConfirmation() && code != fault.NotPending && code != fault.StaleProposal {
		_, err := m.service.Apply(m.Context(), m.key("k"), p.ID, "another name")
		m.code(fault.ConfirmationRequired, err)
		if got := m.fixture.proposal(p.ID).Status; got != proposal.Pending {
			t.Fatalf("a wrong confirmation made it %s", got)
		}
		return
	}
	m.vendor.next(vendor)
	_, err := m.fixture.apply(p)
	m.vendor.next("")
	m.code(code, err)
	if got := m.fixture.proposal(p.ID).Status; got != status {
		t.Fatalf("ended %s, want %s", got, status)
	}
}

func (m *model) die(t *rapid.T) {
	p, vendor := m.one(t), m.mood(t)
	if code, _ := m.expect(p, takes); code != "" {
		t.Skip("it cannot be applied")
	}
	step := rapid.SampledFrom([]string{proposal.BeforeClaim, proposal.AfterClaim, proposal.AfterPush, proposal.AfterOutcome}).Draw(t,
		"step")
	m.vendor.next(vendor)
	m.dies(p, step)
	m.vendor.next("")
}

// check demands what holds at every moment.
func (m *model) check(t *rapid.T) {
	revisions := map[string]policy.Revision{} // by proposal
	for _, p := range m.existing() {
		all := m.revisions(p.ID)
		slices.Reverse(all)
		if p.Version < m.versions[p.ID] || len(all) != p.Version {
			t.Fatalf("version %d after %d, with %d revisions", p.Version, m.versions[p.ID], len(all))
		}
		m.versions[p.ID] = p.Version
		for i, r := range all {
			if r.Revision != i+1 || r.Version != i+1 {
				t.Fatalf("revision %d of version %d is the %dth", r.Revision, r.Version, i+1)
			}
			if r.ProposalID == "" {
				continue
			}
			if _, twice := revisions[r.ProposalID]; twice {
				t.Fatalf("two revisions of %s", r.ProposalID)
			}
			revisions[r.ProposalID] = r
			m.reviewed(t, r, all[:i])
		}
	}
	for _, id := range m.order {
		now := m.fixture.proposal(id)
		if was := m.statuses[id]; was != now.Status && was.Final() {
			t.Fatalf("%s became %s", was, now.Status)
		}
		m.statuses[id] = now.Status
		_, saved := revisions[id]
		if now.Status != proposal.Unconfirmed && saved != (now.Status == proposal.Succeeded) {
			t.Fatalf("%s, saved: %v", now.Status, saved)
		}
	}
}

// reviewed demands that a revision is what was reviewed, bytes and list.
func (m *model) reviewed(t *rapid.T, r policy.Revision, before []policy.Revision) {
	p := m.made[r.ProposalID]
	if string(r.Document) != string(p.Next.Document) || r.Name != p.Next.Name {
		t.Fatalf("saved %s, reviewed %s", r.Document, p.Next.Document)
	}
	earlier := policy.Revision{}
	if p.Creates() {
		all := m.revisions(p.PolicyID)
		earlier = all[len(all)-p.BaseVersion]
		earlier.Name = r.Name
	} else {
		earlier = before[len(before)-1]
		if earlier.Version != p.BaseVersion {
			t.Fatalf("reviewed on version %d, saved after %d", p.BaseVersion, earlier.Version)
		}
	}
	d, err := policy.Compare(policy.Platform, earlier, r)
	m.ok(err)
	want := map[proposal.Field]bool{}
	for _, move := range d.Moves {
		want[proposal.Field{Label: move.Setting.Label, Value: move.To, PreviousValue: move.From}] = true
	}
	if d.Name != nil {
		want[proposal.Field{Label: "Name", Value: d.Name[1], PreviousValue: d.Name[0]}] = true
	}
	if len(want) != len(p.Fields) || slices.ContainsFunc(p.Fields, func(f proposal.Field) bool { return !want[f] }) {
		t.Fatalf("what changed %v, reviewed %v", want, p.Fields)
	}
}

// ends demands what holds once all has settled.
func (m *model) ends(t *rapid.T) {
	for _, id := range m.order {
		if got := m.fixture.proposal(id).Status; !got.Final() {
			t.Fatalf("%s forever", got)
		}
	}
	for _, p := range m.existing() {
		if m.vendor.holds(p.ID) != string(p.Document) || p.Push.Version != p.Version {
			t.Fatalf("the copies differ: pushed %d of %d", p.Push.Version, p.Version)
		}
	}
}
