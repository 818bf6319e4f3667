package emulator

import (
	"crypto/rand"
	"encoding/hex"
	"time"

	am "google.golang.org/api/androidmanagement/v1"
)

// world is all that the platform knows, and the devices themselves. It is kept
// in the state file as it is, so its members are exported.
type world struct {
	LastDevice  int64                  `json:"lastDevice"`
	Signups     map[string]*signup     `json:"signups,omitempty"`
	Enterprises map[string]*enterprise `json:"enterprises,omitempty"`
	Tokens      map[string]*pushToken  `json:"pushTokens,omitempty"`
	Accounts    map[string]*account    `json:"accounts,omitempty"`
	Messages    []PushMessage          `json:"-"` // what was sent through FCM
	lastMessage int64
	bearers     map[string]bearer     // access tokens
	byValue     map[string]*token     // enrollment tokens by their value
	byDevice    map[string]*simulated // devices by id, deleted ones too
	pushed      chan struct{}         // closed when a push message was sent
}

func newWorld() world {
	return world{
		Signups: map[string]*signup{}, Enterprises: map[string]*enterprise{}, Tokens: map[string]*pushToken{},
		Accounts: map[string]*account{}, bearers: map[string]bearer{},
		byValue: map[string]*token{}, byDevice: map[string]*simulated{}, pushed: make(chan struct{}),
	}
}

// enterprise is one customer of the platform.
type enterprise struct {
	ID       string             `json:"id"`
	Project  string             `json:"project"`
	Resource *am.Enterprise     `json:"resource"`
	Policies map[string]*policy `json:"policies,omitempty"`
	Tokens   map[string]*token  `json:"tokens,omitempty"`
	Devices  []*simulated       `json:"devices,omitempty"` // by Seq; deleted ones until they know it
}

func (n *enterprise) name() string { return "enterprises/" + n.ID }

// policy is a policy as the platform keeps it.
type policy struct {
	ID       string         `json:"id"`
	Version  int64          `json:"version"`
	Document map[string]any `json:"document"` // without name and version
}

// token is an enrollment token.
type token struct {
	ID       string              `json:"id"`
	Resource *am.EnrollmentToken `json:"resource"` // the whole, with value and QR code
	PolicyID string              `json:"policyId"`
	Expires  time.Time           `json:"expires"`
	Used     bool                `json:"used,omitempty"` // a one-time token that enrolled its device

	owner *enterprise
}

func (t *token) valid(now time.Time) bool { return !t.Used && now.Before(t.Expires) }

// randomText gives n characters of an alphabet. Names and tokens are as hard to
// guess as the vendor's.
func randomText(n int, alphabet string) string {
	text := make([]byte, n)
	_, _ = rand.Read(text) // never fails
	for i, b := range text {
		text[i] = alphabet[int(b)%len(alphabet)] // some a little more often, which helps none to guess
	}
	return string(text)
}

const (
	upperDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	upper       = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	lowerDigits = "abcdefghijklmnopqrstuvwxyz0123456789"
)

// randomHex gives n bytes in hexadecimal.
func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func topicName(project string) string { return "projects/" + project + "/topics/" + DefaultTopic }
