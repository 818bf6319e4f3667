package activity

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Digest is the entry's hash after the one before it in the company's chain:
// the SHA-256, in hexadecimal, of its members as netstrings (length in bytes,
// a colon, the bytes, a comma), in this order: the hash before, seq, id,
// company, time in Unix milliseconds, actor's kind, id, user id, name and
// prefix, action, target's kind, id and name, outcome, reference, changes as
// JSON, request id, address, client.
func (e Entry) Digest(before string) string {
	sum := sha256.New()
	for _, member := range []string{
		before, strconv.FormatInt(e.Seq, 10), e.ID, e.CompanyID, strconv.FormatInt(e.At.UnixMilli(), 10),
		string(e.Actor.Kind), e.Actor.ID, e.Actor.UserID, e.Actor.Name, e.Actor.Prefix,
		string(e.Action), string(e.Target.Kind), e.Target.ID, e.Target.Name, string(e.Outcome), e.Reference,
		EncodeChanges(e.Changes), e.RequestID, e.Address, e.Client,
	} {
		_, _ = sum.Write([]byte(strconv.Itoa(len(member)) + ":" + member + ",")) // a hash never fails
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// EncodeChanges is the JSON of changes, empty if there are none.
func EncodeChanges(changes []Change) string {
	if len(changes) == 0 {
		return ""
	}
	text, _ := json.Marshal(changes) // texts alone always encode
	return string(text)
}

// Head is where a company's chain stands. Entries before First were removed
// when their time was over; Anchor is the hash of the last of them.
type Head struct {
	CompanyID string
	First     int64
	Anchor    string
	Last      int64 // 0: nothing was sealed yet
	Hash      string
	Signature string // of Statement, in hexadecimal
}

// Statement is what the service signs.
func (h Head) Statement() []byte {
	return []byte(strings.Join([]string{"muster activity chain 1", h.CompanyID, strconv.FormatInt(h.First, 10), h.Anchor,
		strconv.FormatInt(h.Last, 10), h.Hash}, "\n"))
}

// Signer signs heads with the service's own key, which is not in the database.
type Signer interface {
	SignStatement(statement []byte) []byte
	// VerifyStatement knows this signature if any of the service's keys made it.
	VerifyStatement(statement, signature []byte) bool
}

// ChainStore keeps the chain.
type ChainStore interface {
	// SealActivity gives up to limit entries of a company their places, the
	// oldest first, and returns how many.
	SealActivity(ctx context.Context, companyID string, limit int, sign func([]byte) []byte) (int, error)
	// Unsealed returns companies that have entries without a place.
	Unsealed(ctx context.Context) ([]string, error)
	// WalkActivity shows the head and then every entry of the chain, in order,
	// all of one moment.
	WalkActivity(ctx context.Context, companyID string, head func(Head) error, entry func(Entry) error) error
	// ForgetActivity removes up to limit of a company's oldest entries from before
	// a time, and returns how many.
	ForgetActivity(ctx context.Context, companyID string, before time.Time, limit int, sign func([]byte) []byte) (int, error)
	// ActivityLifetimes returns how long each company keeps its entries.
	ActivityLifetimes(ctx context.Context) (map[string]time.Duration, error)
}

// Keeper seals, verifies and forgets.
type Keeper struct {
	Store  ChainStore
	Signer Signer
	Now    func() time.Time
}

// sealBatch bounds the entries that one transaction seals or forgets.
const sealBatch = 500

// Seal gives every new entry its place in its company's chain.
func (k Keeper) Seal(ctx context.Context) error {
	companies, err := k.Store.Unsealed(ctx)
	for _, id := range companies {
		if err := k.seal(ctx, id); err != nil {
			return err
		}
	}
	return err
}

func (k Keeper) seal(ctx context.Context, companyID string) error {
	for {
		n, err := k.Store.SealActivity(ctx, companyID, sealBatch, k.Signer.SignStatement)
		if err != nil || n < sealBatch {
			return err
		}
	}
}

// Forget removes what companies no longer keep.
func (k Keeper) Forget(ctx context.Context) error {
	lifetimes, err := k.Store.ActivityLifetimes(ctx)
	for id, lifetime := range lifetimes {
		for n := sealBatch; err == nil && n == sealBatch; {
			n, err = k.Store.ForgetActivity(ctx, id, k.Now().Add(-lifetime), sealBatch, k.Signer.SignStatement)
		}
	}
	return err
}

// Verdict is what Verify found.
type Verdict struct {
	Head    Head
	Checked int64
	// Broken is the place in the chain where something is wrong, and Why says
	// what; 0 and empty: all is as it was written.
	Broken int64
	Why    string
}

// Sound reports whether nothing is wrong.
func (v Verdict) Sound() bool { return v.Why == "" }

// Verify seals what is new and then checks a company's whole chain.
func (k Keeper) Verify(ctx context.Context, companyID string) (Verdict, error) {
	if err := k.seal(ctx, companyID); err != nil {
		return Verdict{}, err
	}
	var v Verdict
	hash := ""
	err := k.Store.WalkActivity(ctx, companyID, func(h Head) error {
		v, hash = Verdict{Head: h}, h.Anchor
		signature, err := hex.DecodeString(h.Signature)
		if h.Last > 0 && (err != nil || !k.Signer.VerifyStatement(h.Statement(), signature)) {
			v.Broken, v.Why = h.Last, "the head of the chain was not signed by this service"
		}
		return nil
	}, func(e Entry) error {
		if v.Why != "" {
			return nil
		}
		want := v.Head.First + v.Checked
		switch {
		case e.Seq > v.Head.Last:
			v.Broken, v.Why = e.Seq, "an entry follows the signed head of the chain"
		case e.Seq != want:
			v.Broken, v.Why = want, "an entry is missing"
		case e.Digest(hash) != e.Hash:
			v.Broken, v.Why = e.Seq, "an entry is not as it was written"
		default:
			hash = e.Hash
			v.Checked++
		}
		return nil
	})
	if err == nil && v.Why == "" && v.Head.Last > 0 {
		if last := v.Head.First + v.Checked - 1; last != v.Head.Last {
			v.Broken, v.Why = last+1, "an entry is missing"
		} else if hash != v.Head.Hash {
			v.Broken, v.Why = last, "the head of the chain is not the last entry's"
		}
	}
	return v, err
}
