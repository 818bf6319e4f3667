// Package release signs programs of the agent, and finds out who signed one: an
// Ed25519 signature behind the program's end, so that the file runs as it is.
//
// The file is the program, the statement as JSON, the public key, the signature, the
// statement's length in four bytes, and the magic.
package release

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
)

// Statement is what the signature says of a program.
type Statement struct {
	Package string `json:"package"` // the system that it runs on, such as linux-arm64
	Version string `json:"version"`
	Code    int64  `json:"code"` // grows with each version
}

const (
	magic        = "MUSTER-RELEASE-1"
	tailSize     = ed25519.PublicKeySize + ed25519.SignatureSize + 4 + len(magic)
	maxStatement = 4 << 10 // bytes
)

var (
	errUnsigned = errors.New("the file is no signed release of the agent")
	errUseless  = errors.New("a release needs a package, a version and a code above 0, of at most 4 KiB in all")
)

// usable fails for a statement that names no release, or has more than maxStatement bytes.
func (s Statement) usable(text []byte) error {
	if s.Package == "" || s.Version == "" || s.Code <= 0 || len(text) > maxStatement {
		return errUseless
	}
	return nil
}

// Sign returns the program with its signature. It fails for a statement that Read refuses.
func Sign(program []byte, s Statement, key ed25519.PrivateKey) ([]byte, error) {
	statement, err := json.Marshal(s)
	if err == nil {
		err = s.usable(statement)
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(program)
	file := append(program[:len(program):len(program)], statement...)
	file = append(file, key.Public().(ed25519.PublicKey)...)
	file = append(file, ed25519.Sign(key, message(sum[:], statement))...)
	file = binary.LittleEndian.AppendUint32(file, uint32(len(statement)))
	return append(file, magic...), nil
}

func message(sum, statement []byte) []byte {
	return []byte("muster-release-v1\n" + hex.EncodeToString(sum) + "\n" + string(statement))
}

// Read returns what the signature of a file says, and the key that made it. It fails for a file
// without a signature or with a wrong one, and where the file cannot be read. It shows that the
// file is whole, not who made it: the caller compares the key with one that it trusts.
func Read(file io.ReaderAt, size int64) (Statement, ed25519.PublicKey, error) {
	var s Statement
	tail := make([]byte, tailSize)
	if size < int64(tailSize) {
		return s, nil, errUnsigned
	}
	if _, err := file.ReadAt(tail, size-int64(tailSize)); err != nil {
		return s, nil, err
	}
	length := int64(binary.LittleEndian.Uint32(tail[tailSize-len(magic)-4:]))
	end := size - int64(tailSize) - length
	if string(tail[tailSize-len(magic):]) != magic || length > maxStatement || end < 0 {
		return s, nil, errUnsigned
	}
	statement := make([]byte, length)
	if _, err := file.ReadAt(statement, end); err != nil {
		return s, nil, err
	}
	digest := sha256.New()
	if _, err := io.Copy(digest, io.NewSectionReader(file, 0, end)); err != nil {
		return s, nil, err
	}
	key, signature := ed25519.PublicKey(tail[:ed25519.PublicKeySize]), tail[ed25519.PublicKeySize:][:ed25519.SignatureSize]
	if !ed25519.Verify(key, message(digest.Sum(nil), statement), signature) {
		return s, nil, errors.New("the signature of the file is wrong: the file is damaged or was changed")
	}
	if json.Unmarshal(statement, &s) != nil {
		return s, nil, errUseless
	}
	return s, key, s.usable(statement)
}

// KeyText is a public key as the agent is built with it (scripts/agents.sh).
func KeyText(key ed25519.PublicKey) string { return base64.RawURLEncoding.EncodeToString(key) }

// ParseKey reads what KeyText wrote.
func ParseKey(text string) (ed25519.PublicKey, error) {
	key, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, errors.New("the release key is no Ed25519 key in base64url")
	}
	return key, nil
}
