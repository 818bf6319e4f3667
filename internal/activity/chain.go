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
// when their time was over; Anchor is the hash of the last of them. A head is
// made with its company, so one that is missing (First is 0) was taken away.
type Head struct {
	CompanyID string
	First     int64
	Anchor    string
	Last      int64 // 0: nothing was sealed yet
	Hash      string
	Signature string // of Statement, in hexadecimal; empty: the chain has not begun
	// Oldest and Sealed are the time of the company's first entry and the highest
	// place of one. They are known only of a head without a signature.
	Oldest time.Time
	Sealed int64
}

// Statement is what the service signs.
func (h Head) Statement() []byte {
	return []byte(strings.Join([]string{"muster activity chain 1", h.CompanyID, strconv.FormatInt(h.First, 10), h.Anchor,
		strconv.FormatInt(h.Last, 10), h.Hash}, "\n"))
}

// unbegun reports whether the head is as a new company has it.
func (h Head) unbegun() bool {
	return h.Signature == "" && h.First == 1 && h.Anchor == "" && h.Last == 0 && h.Hash == "" && h.Sealed == 0
}

// Signer signs heads with the service's own key, which is not in the database.
type Signer interface {
	SignStatement(statement []byte) []byte
	// VerifyStatement knows this signature if any of the service's keys made it.
	VerifyStatement(statement, signature []byte) bool
}

// Seal is how a store asks whether it may move a head, and has it signed.
type Seal struct {
	// Check returns a *BrokenError for a head that must not be moved. The store
	// asks once it has locked the head.
	Check func(Head) error
	Sign  func(statement []byte) []byte
}

// BrokenError says that a company's head is not what this service signed.
type BrokenError struct {
	Head Head
	Why  string
}

// Error implements error.
func (e *BrokenError) Error() string { return e.Why }

// ChainStore keeps the chain.
type ChainStore interface {
	// SealActivity gives up to limit entries of a company their places, the
	// oldest first, and returns the head and how many.
	SealActivity(ctx context.Context, companyID string, limit int, seal Seal) (Head, int, error)
	// Unsealed returns companies that have entries without a place, or a head
	// without a signature.
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
	// higher. It records the event.
	RestartActivity(ctx context.Context, companyID string, after int64, e Event, sign func([]byte) []byte) error
	// ActivityLifetimes returns how long each company keeps its entries.
	ActivityLifetimes(ctx context.Context) (map[string]time.Duration, error)
}
