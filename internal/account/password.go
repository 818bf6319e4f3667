package account

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/musterhq/muster/internal/fault"
)

// The cost of a password hash: 19 MiB, two passes, one lane.
const (
	argonMemory = 19 << 10 // KiB
	argonTime   = 2
	argonLanes  = 1
	argonSalt   = 16
	argonKey    = 32
)

// Passwords hashes and checks passwords with argon2id, a bounded number at a
// time: each takes 19 MiB and some 50 ms of a core. When too many wait, the next
// one is refused with fault.RateLimited.
type Passwords struct{ waiting, slots chan struct{} }

// waitingEach is how many may wait for each hash that is made.
const waitingEach = 32

// NewPasswords allows at most parallel hashes at a time.
func NewPasswords(parallel int) *Passwords {
	parallel = max(1, parallel)
	return &Passwords{waiting: make(chan struct{}, parallel*(1+waitingEach)), slots: make(chan struct{}, parallel)}
}

var errHashFormat = errors.New("access: stored password hash has an unknown format")

// Hash returns the password's hash in the PHC string format.
func (p *Passwords) Hash(ctx context.Context, password string) (string, error) {
	var salt [argonSalt]byte
	_, _ = rand.Read(salt[:]) // never fails since Go 1.24
	sum, err := p.derive(ctx, password, salt[:], argonTime, argonMemory, argonLanes, argonKey)
	if err != nil {
		return "", err
	}
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s",
		argon2.Version, argonMemory, argonTime, argonLanes, encode(salt[:]), encode(sum)), nil
}

// Matches reports whether password has the hash. An empty hash matches
// nothing, at the same cost, so that time does not tell who exists.
func (p *Passwords) Matches(ctx context.Context, hash, password string) (bool, error) {
	if hash == "" {
		_, err := p.Hash(ctx, password)
		return false, err
	}
	var version int
	var memory, passes uint32
	var lanes uint8
	var rest string
	if _, err := fmt.Sscanf(hash, "$argon2id$v=%d$m=%d,t=%d,p=%d$%s", &version, &memory, &passes, &lanes, &rest); err != nil ||
		version != argon2.Version {
		return false, errHashFormat
	}
	salt, want, err := splitHash(rest)
	if err != nil || memory > 1<<20 || passes > 16 {
		return false, errHashFormat
	}
	got, err := p.derive(ctx, password, salt, passes, memory, lanes, uint32(len(want)))
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(got, want) == 1, nil
}

func splitHash(text string) (salt, sum []byte, err error) {
	first, second, _ := strings.Cut(text, "$")
	if salt, err = base64.RawStdEncoding.DecodeString(first); err == nil {
		sum, err = base64.RawStdEncoding.DecodeString(second)
	}
	if err != nil || len(sum) < 16 || len(sum) > 64 {
		return nil, nil, errHashFormat
	}
	return salt, sum, nil
}

func (p *Passwords) derive(ctx context.Context, password string, salt []byte, passes, memory uint32, lanes uint8,
	length uint32) ([]byte, error) {
	select {
	case p.waiting <- struct{}{}:
		defer func() { <-p.waiting }()
	default:
		return nil, fault.Limited(2*time.Second, "too many passwords are being checked: try again in a few seconds")
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return argon2.IDKey([]byte(password), salt, passes, memory, lanes, length), nil
}

// MinPassword and MaxPassword limit passwords of portal users, in characters.
const (
	MinPassword = 8
	MaxPassword = 256
)

// commonPasswords are the passwords that attackers try first, one a line, in
// lower case: those of MinPassword characters and more from the list that Django
// ships (docs/dependencies.md says how to renew it).
//
//go:embed passwords.txt
var commonPasswords string

// CheckPassword returns fault.InvalidArguments for a password that cannot be used.
func CheckPassword(password string) error {
	if n := utf8.RuneCountInString(password); n < MinPassword || n > MaxPassword || !utf8.ValidString(password) {
		return fault.Invalid(fmt.Sprintf("the password must have %d to %d characters", MinPassword, MaxPassword),
			fault.Field{Field: "password", Message: fmt.Sprintf("must have %d to %d characters", MinPassword, MaxPassword)})
	}
	if isCommon(password) {
		return fault.Invalid("the password is one of the most common ones: choose another, such as several words in a row",
			fault.Field{Field: "password", Message: "is one of the most common ones; choose another"})
	}
	return nil
}

// isCommon compares without case, as attackers do.
func isCommon(password string) bool {
	password = strings.ToLower(password)
	if strings.ContainsAny(password, "\r\n") {
		return false
	}
	line := password + "\n"
	return strings.HasPrefix(commonPasswords, line) || strings.Contains(commonPasswords, "\n"+line)
}
