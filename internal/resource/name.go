// Package resource makes and reads resource names and ids.
//
// A resource name is enterprises/<company>/<collection>/<id> (contract 2.1,
// 4.6). The short id is the last segment of the name and is
// all that the store knows; the company is the caller's own, so a name of
// another company, or of another collection, simply is not found.
package resource

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/validate"
)

// Collection is the plural noun inside a resource name.
type Collection string

// The collections that have resource names.
const (
	Assets   Collection = "assets"
	Policies Collection = "policies"
)

const root = "enterprises/"

// Company returns the resource name of a company.
func Company(slug string) string { return root + slug }

// Of returns the resource name of id in a company's collection.
func Of(slug string, c Collection, id string) string {
	return root + slug + "/" + string(c) + "/" + id
}

// Short returns the short id that ref means for a caller of the company:
// ref is either a short id or the full resource name. It reports false for a
// name of another company or collection and for anything that cannot be an id.
func Short(slug string, c Collection, ref string) (string, bool) {
	id := strings.TrimPrefix(ref, Of(slug, c, ""))
	return id, IsID(id)
}

// Owner returns the slug of the company in a full resource name.
func Owner(ref string) (slug string, ok bool) {
	rest, ok := strings.CutPrefix(ref, root)
	slug, _, found := strings.Cut(rest, "/")
	return slug, ok && found && IsSlug(slug)
}

var idShape = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// IsID reports whether s has the shape of a short id.
func IsID(s string) bool { return idShape.MatchString(s) }

var slugShape = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$`)

// IsSlug reports whether s may name a company: 1 to 40 lower-case letters,
// digits and inner hyphens.
func IsSlug(s string) bool { return slugShape.MatchString(s) }

var encoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding) //nolint:gochecknoglobals // an Encoding does not change

// NewID returns a fresh id of 128 random bits: unguessable, 26 characters.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return encoding.EncodeToString(b[:])
}

// NewIDAt returns a fresh id for a row of a table that grows with time, made at a moment: 80
// random bits behind its milliseconds. Ids of one time are neighbors in an index, so that adding
// rows costs the same however many there are.
func NewIDAt(at time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(at.UnixMilli())<<16)
	_, _ = rand.Read(b[6:]) // never fails since Go 1.24
	return encoding.EncodeToString(b[:])
}

// NewLeaseHolder names one attempt of a component as the holder of leases.
func NewLeaseHolder(component string) string { return component + "-" + NewID() }

const proposalPrefix = "prp_"

// NewProposalID returns a fresh proposal id, prp_<id> (contract 2.6).
func NewProposalID() string { return proposalPrefix + NewID() }

// IsProposalID reports whether s has the shape of a proposal's id.
func IsProposalID(s string) bool {
	id, ok := strings.CutPrefix(s, proposalPrefix)
	return ok && IsID(id)
}

// Changes is the topic of hints that something changed, between replicas and
// to pages that are open.
const Changes = "changes"

// Change is one such hint: a company, a kind of thing (asset, command, policy,
// proposal, key, user, connection, event) and its id.
func Change(companyID, kind, id string) string { return companyID + "/" + kind + "/" + id }

// CompanyKind is the kind of a change of who may do what in a company.
const CompanyKind = "company"

// ParseChange takes a hint apart.
func ParseChange(hint string) (companyID, kind, id string) {
	companyID, rest, _ := strings.Cut(hint, "/")
	kind, id, _ = strings.Cut(rest, "/")
	return companyID, kind, id
}

// IsLabel reports whether text may be the name that a person gives to a
// company or a key: 1 to limit printable characters without outer spaces, not all invisible.
func IsLabel(text string, limit int) bool {
	if validate.Blank(text) || !utf8.ValidString(text) || utf8.RuneCountInString(text) > limit {
		return false
	}
	notPrintable := func(r rune) bool { return !unicode.IsPrint(r) }
	return strings.IndexFunc(text, notPrintable) < 0 && strings.TrimSpace(text) == text
}

var requestIDShape = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,64}$`)

// RequestID is the caller's own id for a request, if it is fit for a log and a
// header (1 to 64 letters, digits and any of - _ . :), else a new one.
func RequestID(given string) string {
	if requestIDShape.MatchString(given) {
		return given
	}
	return NewID()
}
