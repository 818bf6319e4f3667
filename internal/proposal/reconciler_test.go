package proposal_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/test/expect"
)

// looks is what a reconciler works with. It keeps how looks ended, and of which policies the
// platform's copies were read.
type looks struct {
	*database.DB
	platform proposal.Publisher
	other    bool // another holder has each proposal
	away     bool // no look can be saved
	lost     bool // no policy can be read
	endings  []proposal.Ending
	read     []string
}

func (l *looks) TakeOverProposal(ctx context.Context, id, holder string, ttl time.Duration) (proposal.Proposal, bool, error) {
	if l.other {
		return proposal.Proposal{}, false, nil
	}
	return l.DB.TakeOverProposal(ctx, id, holder, ttl)
}

func (l *looks) FinishProposal(ctx context.Context, e proposal.Ending) (proposal.Proposal, bool, error) {
	l.endings = append(l.endings, e)
	if l.away {
		return proposal.Proposal{}, false, errAway()
	}
	return l.DB.FinishProposal(ctx, e)
}

func (l *looks) Policy(ctx context.Context, companyID, id string) (policy.Policy, error) {
	if l.lost {
		return policy.Policy{}, errAway()
	}
	return l.DB.Policy(ctx, companyID, id)
}

func (l *looks) PushUnsaved(ctx context.Context, c company.Company, p policy.Policy) (policy.PushResult, int64) {
	return l.platform.PushUnsaved(ctx, c, p)
}

func (l *looks) ReadCopy(ctx context.Context, c company.Company, p policy.Policy) (policy.Copy, error) {
	l.read = append(l.read, p.ID)
	return l.platform.ReadCopy(ctx, c, p)
}

// What the platform does not take is told with its cause.
func TestApply_TellsWhyNothingWasPushed(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	var told strings.Builder
	r.service.Log = slog.New(slog.NewTextHandler(&told, nil))
	p := r.newPolicy("Warehouse", 0)
	r.vendor.next(notReached)
	_, err := r.apply(r.propose(p, "CAMERA", "BLOCK"))
	r.code(fault.Internal, err)
	_, err = r.apply(r.propose(p, "CAMERA", "BLOCK"))
	r.ok(err)
	if strings.Count(told.String(), "a policy was not pushed") != 1 || !strings.Contains(told.String(), "no route") {
		t.Errorf("told %q", told.String())
	}
}

// doubtful is a proposal whose request the platform never got, and what is due for a look at it.
func (r *fixture) doubtful(made proposal.Proposal) (*looks, *proposal.Reconciler) {
	r.Helper()
	r.vendor.next(losesRequest)
	_, err := r.apply(made)
	r.code(fault.Internal, err)
	l := &looks{DB: r.db, platform: r.vendor}
	r.clock.Advance(time.Minute)
	return l, &proposal.Reconciler{Store: l, Policies: l, Companies: r.db, Publisher: l, Now: r.clock.Now}
}

// A look finds out whether the platform has what is saved: only then the policy is not sent again.
func TestReconciler_Doubts(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 0)
	made := r.propose(p, "CAMERA", "BLOCK")
	l, k := r.doubtful(made)
	r.ok(k.Settle(t.Context()))
	r.vendor.PushUnsaved(t.Context(), r.company, policy.Policy{ID: p.ID, Document: made.Next.Document})
	r.clock.Advance(time.Minute)
	r.ok(k.Settle(t.Context()))
	if len(l.endings) != 2 {
		t.Fatalf("ended %+v", l.endings)
	}
	expect.Equal(t, "the looks", expect.Values{"first": {l.endings[0].Doubted, false},
		"next after":               {l.endings[0].LookIn, 30 * time.Second},
		"once the platform had it": {l.endings[1].Doubted, true}, "last after": {l.endings[1].LookIn, 3 * time.Minute}})
}

// The platform is not asked about a policy that was deleted since, or never made, and no further look is due.
func TestReconciler_PolicyGone(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 0)
	l, k := r.doubtful(r.propose(p, "CAMERA", "BLOCK"))
	r.ok(r.deletePolicy(p.ID))
	r.ok(k.Settle(t.Context()))
	if len(l.endings) != 1 || l.endings[0].LookIn != 0 || l.endings[0].Save || len(l.read) != 0 {
		t.Errorf("deleted: ended %+v, read %q", l.endings, l.read)
	}
	made, err := r.service.ProposeCopy(t.Context(), r.key("k"), r.newPolicy("Shop", 0).ID, "Berlin", nil)
	r.ok(err)
	l, k = r.doubtful(made)
	r.ok(k.Settle(t.Context()))
	if len(l.endings) != 1 || l.endings[0].LookIn != 0 || l.endings[0].Save || len(l.read) != 1 {
		t.Errorf("never made: ended %+v, read %q", l.endings, l.read)
	}
}

// A look that cannot be finished ends nothing, and one that is kept is told.
func TestReconciler_Fails(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	l, k := r.doubtful(r.propose(r.newPolicy("Warehouse", 0), "CAMERA", "BLOCK"))
	var told strings.Builder
	k.Log = slog.New(slog.NewTextHandler(&told, nil))
	for _, c := range []struct {
		name        string
		other, away bool
		lost        bool
		want        fault.Code
		endings     int
		told        int
	}{
		{"another holder has it", true, false, false, "", 0, 0},
		{"the policy cannot be read", false, false, true, fault.Unavailable, 0, 0},
		{"the ending cannot be saved", false, true, false, fault.Unavailable, 1, 0},
		{"nothing fails", false, false, false, "", 1, 1},
	} {
		l.other, l.away, l.lost, l.endings = c.other, c.away, c.lost, nil
		told.Reset()
		err := k.Settle(t.Context())
		expect.Equal(t, c.name, expect.Values{"code": {fault.CodeOf(err), c.want}, "endings": {len(l.endings), c.endings},
			"told": {strings.Count(told.String(), "looked at the platform's copy"), c.told}})
		r.clock.Advance(time.Minute)
	}
}

// A platform that cannot be asked is asked more and more rarely, and at least every ten minutes.
func TestReconciler_BlindLooks(t *testing.T) {
	t.Parallel()
	r := onSQLite(t)
	p := r.newPolicy("Warehouse", 0)
	l, k := r.doubtful(r.propose(p, "CAMERA", "BLOCK"))
	hear := func(deaf bool) {
		r.vendor.mu.Lock()
		defer r.vendor.mu.Unlock()
		r.vendor.deaf = deaf
	}
	pass := func(span time.Duration) {
		t.Helper()
		for i := range span / (15 * time.Second) {
			r.ok(k.Settle(t.Context()))
			if i%4 == 0 {
				r.ok(r.db.Sweep(t.Context(), r.clock.Now()))
			}
			r.clock.Advance(15 * time.Second)
		}
	}
	hear(true)
	pass(time.Hour)
	if n := len(l.read); n < 8 || n >= 20 {
		t.Errorf("asked %d times in an hour, want 8 to 19", n)
	}
	hear(false)
	l.endings = nil
	pass(10 * time.Minute)
	if len(l.endings) == 0 || !l.endings[0].Looked {
		t.Errorf("within ten minutes after it answers again: ended %+v", l.endings)
	}
}
