package activity

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
)

// headLine is the last line of an export that can be verified without the database.
type headLine struct {
	Head *Head `json:"head"`
	// Before is the hash of the entry before the first of the export.
	Before string `json:"before"`
	// Keys are the public keys of the service, in base64.
	Keys []string `json:"keys"`
}

// ExportChain writes what ExportActivity shows as NDJSON. keys are the service's; nil: unknown.
func ExportChain(ctx context.Context, store Store, companyID string, since time.Time, keys Signer, to io.Writer) error {
	out := bufio.NewWriter(to)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	err := store.ExportActivity(ctx, companyID, since, func(e Entry) error { return encoder.Encode(e.line()) },
		func(h Head, before string) error {
			last := headLine{Head: &h, Before: before, Keys: []string{}}
			if keys != nil {
				for _, key := range keys.PublicKeys() {
					last.Keys = append(last.Keys, base64.StdEncoding.EncodeToString(key))
				}
			}
			return encoder.Encode(last)
		})
	return errors.Join(err, out.Flush())
}

// Offline is what VerifyExport found.
type Offline struct {
	Verification
	From     int64  // the place of the first entry
	Unsealed int    // entries without a place yet
	Key      string // the public key that signed the head, in base64
	Proofs   bool   // whether proofs were checked: that takes the key file
	Compared int    // noted heads that the export continues
	Older    int    // noted heads from before the export, which cannot be compared
	Devices  bool   // entries have the member device, which no hash covers
}

// strictly reads one line as every reader of JSON does: members of exactly these names,
// none twice and none unknown, and nothing after them.
func strictly(text []byte, into any) error {
	return jsonv2.Unmarshal(text, into, jsonv2.RejectUnknownMembers(true))
}

// VerifyExport checks an export of ExportChain without a database: the chain, the signature
// of its head and, with signer, the proofs. Without signer the signature is checked with the
// keys that the export itself names. The export must continue each head that noted holds:
// lines of the service's log, or exports. noted may be nil.
func VerifyExport(export, noted io.Reader, signer Signer) (Offline, error) {
	o := offline{signer: signer}
	if err := o.read(export); err != nil {
		return o.found, err
	}
	o.checkChain()
	if noted != nil && o.found.Sound() {
		if err := o.continues(noted); err != nil {
			return o.found, err
		}
	}
	return o.found, nil
}

// maxExportLine bounds a line, in bytes.
const maxExportLine = 4 << 20

func scanLines(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), maxExportLine)
	return s
}

type offline struct {
	signer  Signer
	keys    []ed25519.PublicKey // that the export names
	before  string
	entries []Entry // with a place, in its order
	fresh   []Entry // without
	found   Offline
}

func (o *offline) read(export io.Reader) error {
	lines, n, headed := scanLines(export), 0, false
	for lines.Scan() {
		n++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		var end headLine
		var one Entry
		switch {
		case headed:
			return fmt.Errorf("line %d follows the head of the chain, which must be the last line", n)
		case strictly(text, &end) == nil && end.Head != nil:
			headed = true
			o.takeHead(end)
		case strictly(text, &one) != nil || one.ID == "":
			return fmt.Errorf("line %d is not an entry: the file must be what `muster activity export --format ndjson` wrote, with "+
				"exactly its members", n)
		case one.Seq == 0:
			o.fresh = append(o.fresh, one)
			o.found.Devices = o.found.Devices || one.Device != ""
		default:
			o.entries = append(o.entries, one)
			o.found.Devices = o.found.Devices || one.Device != ""
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("cannot read line %d: %w", n+1, err)
	}
	if !headed {
		return errors.New("the file has no head of the chain as its last line: export it again with `muster activity export --format " +
			"ndjson`, without --area")
	}
	slices.SortFunc(o.entries, func(a, b Entry) int { return int(a.Seq - b.Seq) })
	return nil
}

func (o *offline) takeHead(end headLine) {
	o.found.Head, o.before = *end.Head, end.Before
	for _, text := range end.Keys {
		if key, err := base64.StdEncoding.DecodeString(text); err == nil && len(key) == ed25519.PublicKeySize {
			o.keys = append(o.keys, key)
		}
	}
}

// signed returns the key that signed a head; empty: none that is known.
func (o *offline) signed(h Head) string {
	keys := o.keys
	if o.signer != nil {
		keys = o.signer.PublicKeys()
	}
	signature, err := hex.DecodeString(h.Signature)
	for _, key := range keys {
		if err == nil && ed25519.Verify(key, h.Statement(), signature) {
			return base64.StdEncoding.EncodeToString(key)
		}
	}
	return ""
}

func (o *offline) checkChain() {
	o.found.Proofs, o.found.Unsealed = o.signer != nil, len(o.fresh)
	if o.found.Key = o.signed(o.found.Head); o.found.Key == "" {
		o.found.fail(o.found.Head.Last, "the head of the chain was not signed by this service, or its key is not known: give --key-file")
		return
	}
	o.found.From = o.found.Head.Last + 1
	if len(o.entries) > 0 {
		o.found.From = o.entries[0].Seq
	}
	if o.found.From == o.found.Head.First && o.before != o.found.Head.Anchor {
		o.found.fail(o.found.From, "the beginning of the chain is not what its head says")
		return
	}
	c := newChainCheck(o.found.Head, o.found.From, o.before, o.signer)
	for _, e := range slices.Concat(o.entries, o.fresh) {
		if e.CompanyID != o.found.Head.CompanyID {
			c.verdict.fail(e.Seq, "an entry is another company's")
		}
	}
	for _, e := range o.entries {
		c.next(e)
	}
	c.end()
	for _, e := range o.fresh {
		e.Seq = o.found.Head.Last + 1
		if o.signer != nil && o.found.Head.lacksProof(e, o.signer) {
			c.verdict.fail(e.Seq, "an entry has no proof: it was written without the service's key file")
		}
	}
	o.found.Verification = c.verdict
}

// continues checks the heads that were noted before.
func (o *offline) continues(noted io.Reader) error {
	lines := scanLines(noted)
	seen := false
	for lines.Scan() {
		h, ok := notedHead(lines.Text())
		if !ok || h.CompanyID != o.found.Head.CompanyID {
			continue
		}
		seen = true
		switch {
		case o.signed(h) == "":
			o.found.fail(h.Last, "a noted head was not signed by the service that signed this chain")
		case h.Last > o.found.Head.Last:
			o.found.fail(o.found.Head.Last, fmt.Sprintf("the chain ends before head %d, which was noted earlier", h.Last))
		case h.Last < o.found.From-1:
			o.found.Older++
		case o.hashAt(h.Last) != h.Hash:
			o.found.fail(h.Last, fmt.Sprintf("the chain is not the one of head %d, which was noted earlier", h.Last))
		default:
			o.found.Compared++
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("cannot read the heads: %w", err)
	}
	if !seen {
		return errors.New("the file of heads has none of this company: it must have lines of the service's log with the message " +
			"\"activity head\"")
	}
	return nil
}

func (o *offline) hashAt(place int64) string {
	if place == o.found.From-1 {
		return o.before
	}
	return o.entries[place-o.found.From].Hash
}

// notedHead finds a head in a line: of the log, in either form, or of an export.
func notedHead(text string) (Head, bool) {
	var wrapped struct {
		Head json.RawMessage `json:"head"`
	}
	body := []byte(text)
	if jsonv2.Unmarshal(body, &wrapped) == nil && wrapped.Head != nil { // beside it, a line of the log has what it likes
		body = wrapped.Head
	} else if _, after, ok := strings.Cut(text, "head="); ok && after != "" && after[0] == '"' {
		body = []byte(after)
		if quoted, err := strconv.QuotedPrefix(after); err == nil {
			body = []byte(quoted)
		}
		if inner, err := strconv.Unquote(string(body)); err == nil {
			body = []byte(inner)
		}
	}
	var inner string
	if jsonv2.Unmarshal(body, &inner) == nil { // the log in JSON quotes it
		body = []byte(inner)
	}
	var h Head
	err := strictly(body, &h)
	return h, err == nil && h.CompanyID != "" && h.Signature != ""
}
