package activity

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/fault"
)

// Sealer seals, verifies and forgets. It is safe for concurrent use; a process
// has one, because it remembers the heads that it has seen.
type Sealer struct {
	Store  ChainStore
	Signer Signer
	Now    func() time.Time
	// Log and Alarm may be nil. Alarm is called with the number of companies
	// whose chain is broken, whenever that was looked at.
	Log   *slog.Logger
	Alarm func(broken int)

	mu     sync.Mutex
	seen   map[string]int64  // by company: the last place of the newest head
	broken map[string]string // by company: why
}

const (
	// sealBatch bounds the entries that one transaction seals or forgets.
	sealBatch = 500
	// begins is how old a company's first entry may be when its chain begins. A
	// chain that was set back to its beginning has older ones.
	begins = 24 * time.Hour
)

// Seal gives every new entry its place in its company's chain. A broken chain
// is not extended: it raises the alarm, and the other companies go on.
func (k *Sealer) Seal(ctx context.Context) error {
	companies, err := k.Store.Unsealed(ctx)
	for i := 0; i < len(companies) && err == nil; i++ {
		err = k.tolerate(ctx, companies[i], k.Begin(ctx, companies[i]))
	}
	return err
}

// Begin seals what one company has. Of a new company it signs the head. The
// error is a *BrokenError if the chain is broken.
func (k *Sealer) Begin(ctx context.Context, companyID string) error {
	for {
		head, n, err := k.Store.SealActivity(ctx, companyID, sealBatch, k.seal())
		if err == nil {
			k.remember(head)
		}
		if err != nil || n < sealBatch {
			return err
		}
	}
}

// Forget removes what companies no longer keep at a time.
func (k *Sealer) Forget(ctx context.Context, asOf time.Time) error {
	lifetimes, err := k.Store.ActivityLifetimes(ctx)
	for id, lifetime := range lifetimes {
		for n := sealBatch; err == nil && n == sealBatch; {
			n, err = k.Store.ForgetActivity(ctx, id, asOf.Add(-lifetime), sealBatch, k.seal())
			err = k.tolerate(ctx, id, err)
		}
	}
	return err
}

// Inspect looks at the head of every company, so that a broken chain raises the
// alarm although nothing is added to it.
func (k *Sealer) Inspect(ctx context.Context) error {
	k.mu.Lock()
	seen := maps.Clone(k.seen) // before the heads are read, which may move on
	k.mu.Unlock()
	heads, err := k.Store.Heads(ctx)
	if err != nil {
		return err
	}
	k.retain(heads)
	for _, h := range heads {
		wrong := k.check(h)
		if wrong == nil && h.Last < seen[h.CompanyID] {
			wrong = setBack(h)
		}
		_ = k.tolerate(ctx, h.CompanyID, wrong) // nothing but a broken chain, which tolerate takes
	}
	return nil
}

// retain forgets the chains of companies that are deleted, or being deleted.
func (k *Sealer) retain(heads []Head) {
	gone := func(companyID string) bool {
		return !slices.ContainsFunc(heads, func(h Head) bool { return h.CompanyID == companyID })
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.seen, func(id string, _ int64) bool { return gone(id) })
	after := maps.Clone(k.broken)
	maps.DeleteFunc(after, func(id, _ string) bool { return gone(id) })
	if len(after) < len(k.broken) && k.Alarm != nil {
		k.Alarm(len(after))
	}
	k.broken = after
}

// Broken says what is wrong with a company's head, as far as this process has
// seen; empty: nothing.
func (k *Sealer) Broken(companyID string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.broken[companyID]
}

// Restart replaces a broken chain by one of the entries that the company has now.
// The record reports it.
func (k *Sealer) Restart(ctx context.Context, companyID string, target Target, reason string) (Verification, error) {
	v, err := k.Check(ctx, companyID)
	if err != nil {
		return v, err
	}
	if v.Sound() {
		return v, fault.New(fault.Refused, "the chain is sound: there is nothing to restart")
	}
	// Places go on at the present Unix time, which is above any that was given
	// before: what is left in the database may not tell how far the chain was.
	err = k.Store.RestartActivity(ctx, companyID, k.Now().Unix(), Event{Action: ChainRestarted, Target: target,
		Changes: []Change{{Field: "chain", Before: v.Why, After: reason}}}, k.Signer.SignStatement)
	if err == nil {
		err = k.Begin(ctx, companyID)
	}
	return v, err
}

// tolerate notes whether a company's chain is broken, reports it once, and
// returns every other error.
func (k *Sealer) tolerate(ctx context.Context, companyID string, err error) error {
	broken, is := errors.AsType[*BrokenError](err)
	if err != nil && !is {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.broken[companyID]
	after := maps.Clone(k.broken)
	if after == nil {
		after = map[string]string{}
	}
	delete(after, companyID)
	if is {
		after[companyID] = broken.Why
	}
	k.broken = after
	if k.Alarm != nil {
		k.Alarm(len(after))
	}
	if k.Log == nil || before == after[companyID] {
		return nil
	}
	if is {
		k.Log.ErrorContext(ctx, "activity chain broken", "company", companyID, "reason", broken.Why, "last", broken.Head.Last)
		return nil
	}
	k.Log.InfoContext(ctx, "activity chain sound again", "company", companyID)
	return nil
}

func (k *Sealer) seal() Seal {
	return Seal{Sign: k.Signer.SignStatement, Doubt: k.doubt, Check: func(h Head) error {
		if err := k.check(h); err != nil {
			return err
		}
		return k.follow(h)
	}}
}

// doubt reports an entry that no holder of the keys wrote. It is sealed nevertheless, so
// that it stays where it is, and Verify reports it too.
func (k *Sealer) doubt(h Head, e Entry) {
	if k.Log != nil && h.lacksProof(e, k.Signer) {
		k.Log.Error("activity entry without proof", "company", e.CompanyID, "entry", e.ID, "seq", e.Seq, "action", e.Action)
	}
}

// Note writes every head to the log. Kept where no one who may write to the database can
// change it, it shows later that the chain was not replaced.
func (k *Sealer) Note(ctx context.Context) error {
	heads, err := k.Store.Heads(ctx)
	for _, h := range heads {
		if h.Signature != "" && k.Log != nil {
			text, _ := json.Marshal(h) // it cannot fail
			k.Log.InfoContext(ctx, "activity head", "company", h.CompanyID, "number", h.Last, "head", string(text))
		}
	}
	return err
}

// check reports a head that this service has not signed.
func (k *Sealer) check(h Head) error {
	signature, err := hex.DecodeString(h.Signature)
	switch {
	case h.First == 0:
		return &BrokenError{h, "the head of the chain is missing"}
	case h.unbegun():
		if !h.Oldest.IsZero() && k.Now().Sub(h.Oldest) > begins {
			return &BrokenError{h, "the chain was set back to its beginning, or no service ran for a day after its first entry"}
		}
	case err != nil || !k.Signer.VerifyStatement(h.Statement(), signature):
		return &BrokenError{h, "the head of the chain was not signed by this service"}
	}
	return nil
}

// follow reports a head from before one that this process has seen. Heads come
// in their order only where they are locked.
func (k *Sealer) follow(h Head) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h.Last < k.seen[h.CompanyID] {
		return setBack(h)
	}
	return nil
}

// remember notes a head that is in the store.
func (k *Sealer) remember(h Head) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.seen == nil {
		k.seen = map[string]int64{}
	}
	k.seen[h.CompanyID] = max(k.seen[h.CompanyID], h.Last)
}

func setBack(h Head) error {
	return &BrokenError{h, "the head of the chain was set back to an earlier one"}
}

// Verification is what Verify found.
type Verification struct {
	Head    Head
	Checked int64
	// Broken is the place in the chain where something is wrong, and Why says
	// what; 0 and empty: nothing is wrong.
	Broken int64
	Why    string
}

// Sound reports whether nothing is wrong.
func (v Verification) Sound() bool { return v.Why == "" }

// fail notes the first thing that is wrong.
func (v *Verification) fail(place int64, why string) {
	if v.Sound() {
		v.Broken, v.Why = place, why
	}
}

// Unproved is the last place whose entry need not have a proof, so that the chain alone
// covers it; 0: every entry of the chain must have one.
func (v Verification) Unproved() int64 {
	if n := min(v.Head.ProvedFrom-1, v.Head.Last); n >= v.Head.First && v.Checked > 0 {
		return n
	}
	return 0
}

// Verify seals what is new and then checks a company's whole chain.
func (k *Sealer) Verify(ctx context.Context, companyID string) (Verification, error) {
	err := k.Begin(ctx, companyID)
	broken, is := errors.AsType[*BrokenError](err)
	if err := k.tolerate(ctx, companyID, err); err != nil {
		return Verification{}, err
	}
	if is {
		return Verification{Head: broken.Head, Broken: broken.Head.Last, Why: broken.Why}, nil
	}
	return k.Check(ctx, companyID)
}

// Check checks a company's whole chain and changes nothing. Entries without a
// place yet are not looked at.
func (k *Sealer) Check(ctx context.Context, companyID string) (Verification, error) {
	var c *chainCheck
	err := k.Store.WalkActivity(ctx, companyID, func(h Head) error {
		c = newChainCheck(h, h.First, h.Anchor, k.Signer)
		if err := k.check(h); err != nil {
			c.verdict.fail(h.Last, err.Error())
		} else if h.Signature == "" {
			c.verdict.fail(0, "no service has signed the head of the chain yet")
		}
		return nil
	}, func(e Entry) error {
		c.next(e)
		return nil
	})
	if c == nil {
		return Verification{}, err
	}
	if err == nil {
		c.end()
	}
	return c.verdict, err
}
