package database_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/approval/approvaltest"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/signature"
)

// moved is an attempt to move a device or to claim the proposal, of one round.
type moved struct {
	round int
	claim bool
}

// approveChange has a person approve a proposal as it now is.
func (f *fixture) approveChange(id string, by account.User) error {
	f.Helper()
	return f.decideChange(f.company.ID, id, by, signature.Approve)
}

// decideChange has a person decide about a proposal of the fixture's company as it now is, under the name of a company.
func (f *fixture) decideChange(companyID, id string, by account.User, d signature.Decision) error {
	f.Helper()
	listed, err := f.db.ListedProposal(f.Context(), f.company.ID, id)
	f.ok(err)
	of := listed.Subject()
	document, err := of.Canonical(signature.Head{Approver: signature.Person{ID: by.ID, Name: by.Name}, Decision: d,
		At: signature.Time(f.clock.Now()), Confirmation: of.Name}, nil)
	f.ok(err)
	return f.db.Decide(f.Context(), approval.Decision{CompanyID: companyID, Kind: approval.ChangeKind, ID: id, UserID: by.ID,
		PasskeyID: f.key(by).ID, Signed: f.sign(by, document), Verifier: approvaltest.Verifier()})
}

// A change of high impact and a move to its policy never both begin while no person
// approved the change of a policy with devices, over two replicas that are killed.
func TestBegin_MoveAndChangeAreLinearizableWithKills(t *testing.T) {
	for _, rule := range []access.ApprovalRule{access.ApproveRisky, access.ApproveAll} {
		t.Run(string(rule), func(t *testing.T) {
			withCompany(t, func(f *fixture) { f.movesAndChanges(rule) })
		})
	}
}

func (f *fixture) movesAndChanges(rule access.ApprovalRule) {
	f.setControls(func(k *access.Controls) { k.ApplyApproval, k.ApproverAge = rule, 0 })
	k, ada := &killing{fixture: f}, f.person("Ada", true)
	var from, to policy.Policy
	var phones []asset.Asset
	var made proposal.Proposal
	round := 0
	prepare := func() {
		round++
		f.clock.Advance(time.Second)
		from, to = f.newPolicy(words("From", round)), f.newPolicy(words("To", round))
		phones = nil
		for n := range 3 {
			phones = append(phones, f.enroll(words("d", round, n), from.ID))
		}
		if made = f.loosening(to); rule == access.ApproveAll { // of a policy that no device has
			f.ok(f.approveChange(made.ID, ada))
		}
	}
	prepare()
	k.rounds(10, func(caller int, random *rand.Rand) {
		// Which of the two begins first in a round is its only chance: every other round is for one.
		in, o := moved{round, (random.IntN(10) == 0) == (round%2 == 0)}, wipeOrder{At: f.clock.Now().UnixMilli(), Company: f.company.ID}
		if in.claim {
			o.Claims = &proposal.Claim{ID: made.ID, Holder: "h", For: time.Minute, Confirmed: true, Next: made.Next}
		} else {
			c := f.moving(phones[random.IntN(len(phones))], from, to)
			c.Ask.Verifier = approval.Verifier{} // the replica has it
			o.Moves = &c
		}
		k.ask(caller, random.IntN(2), o, in, func(got wipeAnswer, lost bool) any { return wiped{got.Done, lost} })
	}, prepare)
	k.linearizable(moves())
	began := map[bool]int{}
	for _, o := range k.history {
		if o.Output.(wiped).begun {
			began[o.Input.(moved).claim]++
		}
	}
	if began[true] == 0 || began[false] == 0 {
		f.Errorf("%d changes and %d moves began, want some of both", began[true], began[false])
	}
}

const (
	moveBegan  = 1
	claimBegan = 2
)

// begun is what has begun in each round.
type begun [16]byte

func (b begun) after(in moved) (begun, bool) {
	was := b[in.round]
	switch {
	case was&claimBegan != 0, in.claim && was&moveBegan != 0:
		return b, false
	case in.claim:
		b[in.round] |= claimBegan
	default:
		b[in.round] |= moveBegan
	}
	return b, true
}

func moves() porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Partition: func(history []porcupine.Operation) (rounds [][]porcupine.Operation) {
			rounds = make([][]porcupine.Operation, len(begun{}))
			for _, o := range history {
				rounds[o.Input.(moved).round] = append(rounds[o.Input.(moved).round], o)
			}
			return rounds
		},
		Init: func() []any { return []any{begun{}} },
		Step: func(state, input, output any) []any {
			next, done := state.(begun).after(input.(moved))
			switch got := output.(wiped); {
			case got.lost:
				return []any{state, next}
			case got.begun == done:
				return []any{next}
			default:
				return nil
			}
		},
	}).ToModel()
}
