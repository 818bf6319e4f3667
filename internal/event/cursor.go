package event

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/musterhq/muster/internal/fault"
)

// Latest asks for what happens from now on.
const Latest = "latest"

// cursorMark is how many bytes of a cursor say whose history it belongs to.
const cursorMark = 9

// noHyphen keeps a cursor from beginning with a hyphen, as a flag does. Cursors from before
// that have the bit; it does not count.
const noHyphen = 0x7f

func mark(history, companyID string) []byte {
	sum := sha256.Sum256([]byte(history + "\n" + companyID))
	sum[0] &= noHyphen
	return sum[:cursorMark]
}

// position reads a cursor; false if it is not one of this history.
func position(history, companyID, text string) (int64, bool) {
	read, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(read) <= cursorMark {
		return 0, false
	}
	if read[0] &= noHyphen; string(read[:cursorMark]) != string(mark(history, companyID)) {
		return 0, false
	}
	at, n := binary.Uvarint(read[cursorMark:])
	if n != len(read)-cursorMark || at > 1<<62 {
		return 0, false
	}
	return int64(at), true
}

// Head is what is known of a company's history.
type Head struct {
	History string // its id
	Last    int64  // position of the newest event; 0: there was none
	First   int64  // position of the oldest that is kept; 0: none is
}

// Start is the position after which the oldest kept event comes.
func (h Head) Start() int64 {
	if h.First == 0 {
		return h.Last
	}
	return h.First - 1
}

// Cursor is a position as callers bring it back. It names the history, so that the position
// is not taken for one in another.
func (h Head) Cursor(companyID string, position int64) string {
	text := binary.AppendUvarint(mark(h.History, companyID), uint64(position))
	return base64.RawURLEncoding.EncodeToString(text)
}

// Position is the position at which a caller goes on with a cursor, Latest, or nothing;
// fault.CursorExpired if what comes after it is not kept.
func (h Head) Position(companyID, text string) (int64, error) {
	switch text {
	case "":
		return h.Start(), nil
	case Latest:
		return h.Last, nil
	}
	at, ok := position(h.History, companyID, text)
	if ok && at >= h.Start() && at <= h.Last {
		return at, nil
	}
	e := fault.New(fault.CursorExpired, "the cursor is older than what is kept, or of another history, as after a restore: read your "+
		"data again and go on after oldest")
	e.Oldest = h.Cursor(companyID, h.Start())
	return 0, e
}
