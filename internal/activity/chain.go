package activity

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
)

// Digest is the entry's hash after the one before it in the company's chain:
// the SHA-256, in hexadecimal, of its members as netstrings (length in bytes,
// a colon, the bytes, a comma), in this order: the hash before, seq, id,
// company, time in Unix milliseconds, actor's kind, id, user id, name and
// prefix, action, target's kind, id and name, outcome, reference, changes as
// JSON, request id, address, client. An entry with a reason, a ticket or a proof has
// three more: reason, ticket, proof.
func (e Entry) Digest(before string) string {
	members := append([]string{before, strconv.FormatInt(e.Seq, 10)}, e.members()...)
	if e.Proof != "" || e.Note != (access.Note{}) {
		members = append(members, e.Note.Reason, e.Note.Ticket, e.Proof)
	}
	sum := sha256.Sum256(netstrings(members))
	return hex.EncodeToString(sum[:])
}

// Statement is what an entry's proof covers: everything but its place in the chain.
func (e Entry) Statement() []byte {
	return netstrings(append(append([]string{"muster activity entry 1"}, e.members()...), e.Note.Reason, e.Note.Ticket))
}

func (e Entry) members() []string {
	return []string{
		e.ID, e.CompanyID, strconv.FormatInt(e.At.UnixMilli(), 10),
		string(e.Actor.Kind), e.Actor.ID, e.Actor.UserID, e.Actor.Name, e.Actor.Prefix,
		string(e.Action), string(e.Target.Kind), e.Target.ID, e.Target.Name, string(e.Outcome), e.Reference,
		EncodeChanges(e.Changes), e.RequestID, e.Address, e.Client,
	}
}

func netstrings(members []string) []byte {
	var out []byte
	for _, member := range members {
		out = append(append(append(strconv.AppendInt(out, int64(len(member)), 10), ':'), member...), ',')
	}
	return out
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
// when their time was over; Anchor is the hash of the last of them. A head is
// made with its company, so one that is missing (First is 0) was taken away.
//
// Exports and the log have it as JSON.
type Head struct {
	CompanyID string `json:"companyId"`
	First     int64  `json:"first"`
	Anchor    string `json:"anchor"`
	Last      int64  `json:"last"` // the number of the head; 0: nothing was sealed yet
	Hash      string `json:"hash"`
	// ProvedFrom is the first place whose entry must have a proof. 0: no program
	// that knows proofs has signed the head.
	ProvedFrom int64  `json:"provedFrom"`
	Signature  string `json:"signature"` // of Statement, in hexadecimal; empty: the chain has not begun
	// Oldest and Sealed are the time of the company's first entry and the highest
	// place of one. They are known only of a head without a number and a signature.
	Oldest time.Time `json:"-"`
	Sealed int64     `json:"-"`
}

// Statement is what the service signs: lines with the format's name, company, first place, anchor, last place,
// hash and, in format 2, ProvedFrom. A head without ProvedFrom is from before there were proofs: it has format 1.
func (h Head) Statement() []byte {
	lines := []string{"muster activity chain 1", h.CompanyID, strconv.FormatInt(h.First, 10), h.Anchor,
		strconv.FormatInt(h.Last, 10), h.Hash}
	if h.ProvedFrom > 0 {
		lines[0] = "muster activity chain 2"
		lines = append(lines, strconv.FormatInt(h.ProvedFrom, 10))
	}
	return []byte(strings.Join(lines, "\n"))
}

// Extend gives an entry the next place, after the head.
func (h *Head) Extend(e *Entry) {
	h.Last++
	e.Seq = h.Last
	h.Hash = e.Digest(h.Hash)
	e.Hash = h.Hash
}

// DemandProofs fixes, once, from which place on entries must have proofs. Of a chain that
// has not begun: from the first place, because who sets a head back to the beginning
// may also have made up the entries. Of a head from before there were proofs: from
// the first of those that are sealed now which has one.
func (h *Head) DemandProofs(fresh []Entry) {
	if h.ProvedFrom > 0 {
		return
	}
	h.ProvedFrom = 1
	if h.Signature == "" {
		return
	}
	h.ProvedFrom = h.Last + 1
	for _, e := range fresh {
		if e.Proof != "" {
			return
		}
		h.ProvedFrom++
	}
}

// unbegun reports whether the head is as a new company has it.
func (h Head) unbegun() bool {
	return h.Signature == "" && h.First == 1 && h.Anchor == "" && h.Last == 0 && h.Hash == "" && h.Sealed == 0
}

// Signer signs heads, and proves entries, with the service's own keys, which are not
// in the database.
type Signer interface {
	// SignStatement signs with the newest of the service's keys.
	SignStatement(statement []byte) []byte
	// VerifyStatement knows this signature if any of the service's keys made it.
	VerifyStatement(statement, signature []byte) bool
	// PublicKeys verify signatures, without the key file.
	PublicKeys() []ed25519.PublicKey
	Prover
	// Proves reports whether the proof is of the statement, by any of the service's keys.
	Proves(statement []byte, proof string) bool
}

// Prover proves entries where they are written.
type Prover interface {
	// Prove returns the message authentication code of a statement, with the id of its key.
	Prove(statement []byte) string
}

// Seal is how a store asks whether it may move a head, and has it signed.
type Seal struct {
	// Check returns a *BrokenError for a head that must not be moved. The store
	// asks once it has locked the head.
	Check func(Head) error
	Sign  func(statement []byte) []byte
	// Doubt, if not nil, is called with each entry that is given a place, to report one that lacks its proof.
	Doubt func(Head, Entry)
}

// BrokenError says that a company's head is not what this service signed.
type BrokenError struct {
	Head Head
	Why  string
}

// Error implements error.
func (e *BrokenError) Error() string { return e.Why }

// ChainStore keeps the chain. Each method fails as the database does, and with the error of a
// function that it is given.
type ChainStore interface {
	// SealActivity gives up to limit entries of a company their places, the
	// oldest first, and returns the head and how many.
	SealActivity(ctx context.Context, companyID string, limit int, seal Seal) (Head, int, error)
	// Unsealed returns companies that have entries without a place, or a head
	// without a signature or from before there were proofs.
	Unsealed(ctx context.Context) ([]string, error)
	// Heads returns the head of every company.
	Heads(ctx context.Context) ([]Head, error)
	// WalkActivity shows the head and then every entry of the chain, in order,
	// all of one moment.
	WalkActivity(ctx context.Context, companyID string, head func(Head) error, entry func(Entry) error) error
	// ForgetActivity removes up to limit of a company's oldest entries from before
	// a time, and returns how many.
	ForgetActivity(ctx context.Context, companyID string, before time.Time, limit int, seal Seal) (int, error)
	// RestartActivity takes every entry of a company out of the chain and signs
	// a head that follows the place after, or the highest so far if that is
	// higher. Entries that are there need no proof from then on. It records the event.
	// Until it is done, and after one that was interrupted, the head is broken.
	RestartActivity(ctx context.Context, companyID string, after int64, e Event, sign func([]byte) []byte) error
	// ActivityLifetimes returns how long each company keeps its entries.
	ActivityLifetimes(ctx context.Context) (map[string]time.Duration, error)
}

// lacksProof reports whether an entry must have a proof and has none of the signer's.
func (h Head) lacksProof(e Entry, signer Signer) bool {
	return h.ProvedFrom > 0 && e.Seq >= h.ProvedFrom && !signer.Proves(e.Statement(), e.Proof)
}

// chainCheck follows a chain from a place on, entry by entry, to its head.
type chainCheck struct {
	verdict Verification
	from    int64  // the place of the first entry
	hash    string // of the entry before the next
	signer  Signer // nil: proofs cannot be checked
}

func newChainCheck(h Head, from int64, before string, signer Signer) *chainCheck {
	return &chainCheck{verdict: Verification{Head: h}, from: from, hash: before, signer: signer}
}

// next checks the entry that follows.
func (c *chainCheck) next(e Entry) {
	v := &c.verdict
	if !v.Sound() {
		return
	}
	want := c.from + v.Checked
	switch {
	case e.Seq > v.Head.Last:
		c.verdict.fail(e.Seq, "an entry follows the signed head of the chain")
	case e.Seq != want:
		c.verdict.fail(want, "an entry is missing")
	case e.Digest(c.hash) != e.Hash:
		c.verdict.fail(e.Seq, "an entry is not what its hash says")
	case c.signer != nil && v.Head.lacksProof(e, c.signer):
		c.verdict.fail(e.Seq, "an entry has no proof: it was written without the service's key file")
	default:
		c.hash = e.Hash
		v.Checked++
	}
}

// end checks that the last entry was the head's.
func (c *chainCheck) end() {
	if last := c.from + c.verdict.Checked - 1; last != c.verdict.Head.Last {
		c.verdict.fail(last+1, "an entry is missing")
	} else if c.hash != c.verdict.Head.Hash {
		c.verdict.fail(last, "the head of the chain is not the last entry's")
	}
}
