package emulator

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Call is a call of the vendor's API that the emulator received.
type Call struct {
	Seq    int64           `json:"seq"`
	Method string          `json:"method"` // such as "devices.issueCommand"
	Path   string          `json:"path"`
	Query  string          `json:"query,omitempty"`
	Body   json.RawMessage `json:"body"` // null without one; passwords are replaced
	At     time.Time       `json:"at"`
	Status int             `json:"status,omitempty"` // of the answer; 0 while under way, or if it was dropped
}

// What the log of calls holds at least, and how many bytes of bodies at most.
const (
	callsKept     = 100_000
	callBytesKept = 256 << 20
)

// callLog is a ring of the last calls.
type callLog struct {
	mu    sync.Mutex
	ring  []Call
	next  int64 // the sequence number of the next call
	bytes int
	bare  int64 // calls before this one lost their bodies
}

// add keeps a call and gives its number.
func (l *callLog) add(c Call) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.Seq = l.next
	l.next++
	l.bytes += len(c.Body)
	if len(l.ring) < callsKept {
		l.ring = append(l.ring, c)
	} else {
		slot := &l.ring[c.Seq%callsKept]
		l.bytes -= len(slot.Body)
		*slot = c
	}
	for ; l.bytes > callBytesKept && l.bare < c.Seq; l.bare++ {
		if slot := &l.ring[l.bare%callsKept]; slot.Seq == l.bare {
			l.bytes -= len(slot.Body)
			slot.Body = nil
		}
	}
	return c.Seq
}

func (l *callLog) finish(seq int64, code int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := seq % callsKept; at < int64(len(l.ring)) && l.ring[at].Seq == seq {
		l.ring[at].Status = code
	}
}

// since gives the calls from a number on, in order; only those of a method
// unless that is empty.
func (l *callLog) since(seq int64, method string) []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := []Call{}
	for n := max(seq, l.next-int64(len(l.ring))); n < l.next; n++ {
		if c := l.ring[n%callsKept]; method == "" || c.Method == method {
			found = append(found, c)
		}
	}
	return found
}

// clear forgets the calls.
func (l *callLog) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring, l.bytes, l.next, l.bare = nil, 0, 0, 0
}

// redacted takes the place of a secret.
const redacted = "[redacted]"

// redactBody gives a body for the log: compact JSON without passwords. A body
// that is not JSON could hold anything, so it is left out.
func redactBody(raw []byte) json.RawMessage {
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if len(raw) == 0 || decoder.Decode(&tree) != nil {
		return nil
	}
	redactTree(tree)
	text, _ := json.Marshal(tree) // what was read can be written
	return text
}

func redactTree(tree any) {
	switch tree := tree.(type) {
	case map[string]any:
		for name, value := range tree {
			if isSecretName(name) {
				tree[name] = redacted
			} else {
				redactTree(value)
			}
		}
	case []any:
		for _, element := range tree {
			redactTree(element)
		}
	}
}

func isSecretName(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, "newpassword") || strings.HasSuffix(name, "new_password") || name == "access_token" || name == "key" ||
		name == "oauth_token"
}

// redactQuery gives a query for the log.
func redactQuery(query url.Values) string {
	kept := url.Values{}
	for name, values := range query {
		if isSecretName(name) {
			values = []string{redacted}
		}
		kept[name] = values
	}
	return kept.Encode()
}
