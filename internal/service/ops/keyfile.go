package ops

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/durable"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/slice"
)

// Keys are the keys of a service. They are in a file outside the database, so that a copy of the database is not enough to
// open sealed data or to sign commands for devices. Keys do not change: concurrent use is safe.
type Keys struct {
	signing []signingKey           // the first, the youngest, signs; all verify
	sealers map[string]cipher.AEAD // by key id
	provers map[string][]byte      // by key id: the key that proves entries of the activity log
	digests []byte                 // the key of Digest
	current string                 // the id of the key that seals and proves
	all     []string               // the ids of all signing and sealing keys
}

// IDs are the ids of all keys of the file.
func (k *Keys) IDs() []string { return k.all }

// Belong returns nil if the keys fit the database: they include all that it needs, and one that signed its activity log.
// Otherwise the error says what is missing.
func (k *Keys) Belong(to database.Inspection) error {
	if err := to.Lacks(k.all); err != nil {
		return err
	}
	foreign := to.Unsigned(func(h activity.Head) bool {
		signature, err := hex.DecodeString(h.Signature)
		return err == nil && k.VerifyStatement(h.Statement(), signature)
	})
	if len(foreign) > 0 {
		return errors.New("the key file lacks the key that signed the database's activity log")
	}
	return nil
}

// signingKey is a key that signs commands for devices, with the time when it was made.
type signingKey struct {
	key  ed25519.PrivateKey
	made time.Time
}

const keyFileVersion = 1

// keyFile is the file's format. The first key of each list is in use; the
// others only open and verify, so that keys can be replaced.
type keyFile struct {
	Version int         `json:"version"`
	Comment string      `json:"comment"`
	Signing []keyRecord `json:"signing"` // Ed25519 seeds
	Sealing []keyRecord `json:"sealing"` // AES-256-GCM keys
}

type keyRecord struct {
	ID        string    `json:"id"`
	Secret    []byte    `json:"secret"` // 32 bytes
	CreatedAt time.Time `json:"createdAt"`
}

const secretSize = 32

// LoadKeys reads the key file. It does not check who else may read the file; see PrivateKeyFile.
func LoadKeys(path string) (*Keys, error) {
	_, keys, err := readKeyFile(path)
	return keys, err
}

// sharedRights are the mode bits that a key file must not have. Its group may read it.
const sharedRights = 0o037

// PrivateKeyFile returns an error for a key file that others may read or change, or that its group may change.
func PrivateKeyFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("cannot read the key file: %w", err)
	}
	if mode := info.Mode().Perm(); mode&sharedRights != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("the key file %s may be read or changed by others (mode %04o): run `chmod 600 %s`, or 640 for a group "+
			"that reads it", path, mode, path)
	}
	return nil
}

func readKeyFile(path string) (file keyFile, keys *Keys, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return file, nil, fmt.Errorf("cannot read the key file: %w", err)
	}
	err = json.Unmarshal(data, &file)
	if err == nil && file.Version != keyFileVersion {
		return file, nil, fmt.Errorf("the key file %s has version %d, this build reads %d: use a newer build", path,
			file.Version, keyFileVersion)
	}
	if err == nil {
		keys, err = file.keys()
	}
	if err != nil {
		return file, nil, fmt.Errorf("the key file %s is damaged (%w): restore it from a backup", path, err)
	}
	return file, keys, nil
}

// RotateKeyFile puts a new signing key and a new sealing key before those of a key file. The old keys stay: they open the
// data that they sealed, and devices that know only an old signing key learn the new one through it. The file is replaced
// whole, and keeps its owner and its mode. What a call that was killed left beside it is removed: it has keys, too.
// Replicas read the file when they start. It fails, and changes nothing, if now is before the newest signing key was made.
func RotateKeyFile(path string, now time.Time) error {
	file, _, err := readKeyFile(path)
	if err != nil {
		return err
	}
	if made := file.Signing[0].CreatedAt; made.After(now) {
		return fmt.Errorf("the newest key of %s was made at %s, which this machine's clock has not reached: set the clock first; devices "+
			"refuse a key that begins before the one it follows", path, made.UTC().Format(time.RFC3339))
	}
	file.Signing = slices.Insert(file.Signing, 0, newKeyRecord(now))
	file.Sealing = slices.Insert(file.Sealing, 0, newKeyRecord(now))
	data, err := file.text()
	if err != nil {
		return err
	}
	if err = durable.RemoveLeftovers(path); err == nil {
		err = durable.Write(path, data)
	}
	if err != nil {
		return fmt.Errorf("cannot write the key file: %w", err)
	}
	return nil
}

// LoadOrMakeKeys reads the key file. If there is none, it makes one first.
func LoadOrMakeKeys(path string, now time.Time) (*Keys, error) {
	if err := MakeKeyFile(path, now); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return LoadKeys(path)
}

// MakeKeyFile writes new keys to a file that only its owner can read. The owner is the user of this process or, if that is
// root, the owner of the directory. It fails with fs.ErrExist if the file exists; if several processes make it at the same
// time, one succeeds. That one removes what calls that were killed, or the others, left beside the file: these are keys, too.
func MakeKeyFile(path string, now time.Time) error {
	file := keyFile{
		Version: keyFileVersion,
		Comment: "Keys of a Muster service. Keep them secret, back them up, give the same file to every replica.",
		Signing: []keyRecord{newKeyRecord(now)}, Sealing: []keyRecord{newKeyRecord(now)},
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("the key file %s: %w", path, fs.ErrExist)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("cannot make the key file's directory: %w", err)
	}
	data, err := file.text()
	if err != nil {
		return err
	}
	fresh, err := durable.Prepare(path, data)
	if err != nil {
		return fmt.Errorf("cannot make the key file: %w", err)
	}
	defer os.Remove(fresh.Name()) //nolint:errcheck // the link has the file by then, or there was an error
	// Unlike a rename, a link never replaces a file.
	err = errors.Join(fresh.Close(), os.Link(fresh.Name(), path))
	if _, missing := os.Lstat(path); err != nil && missing == nil { // the process that was first may have removed fresh
		return fmt.Errorf("the key file %s: %w", path, fs.ErrExist)
	}
	if err != nil {
		return err
	}
	return errors.Join(durable.RemoveLeftovers(path), durable.Sync(filepath.Dir(path)))
}

func (f keyFile) text() ([]byte, error) {
	data, err := json.MarshalIndent(f, "", "  ")
	return append(data, '\n'), err
}

func newKeyRecord(now time.Time) keyRecord {
	secret := make([]byte, secretSize)
	_, _ = rand.Read(secret) // never fails since Go 1.24
	return keyRecord{ID: resource.NewID(), Secret: secret, CreatedAt: now.UTC().Truncate(time.Second)}
}

// keys derives the keys from the file's secrets. It fails if one is malformed, or a kind has none.
func (f keyFile) keys() (*Keys, error) {
	if len(f.Signing) == 0 || len(f.Sealing) == 0 {
		return nil, errors.New("a key is missing")
	}
	keys := &Keys{sealers: map[string]cipher.AEAD{}, provers: map[string][]byte{}, current: f.Sealing[0].ID}
	for _, record := range slices.Concat(f.Signing, f.Sealing) {
		if len(record.Secret) != secretSize || !resource.IsID(record.ID) {
			return nil, fmt.Errorf("key %q is malformed", record.ID)
		}
		keys.all = append(keys.all, record.ID)
	}
	for _, record := range f.Signing {
		keys.signing = append(keys.signing, signingKey{ed25519.NewKeyFromSeed(record.Secret), record.CreatedAt})
	}
	for _, record := range f.Sealing {
		block, err := aes.NewCipher(record.Secret)
		if err != nil {
			return nil, err
		}
		sealer, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, err
		}
		keys.sealers[record.ID] = sealer
		keys.provers[record.ID] = authenticate(record.Secret, []byte("muster activity proof 1"))
	}
	keys.digests = authenticate(f.Sealing[0].Secret, []byte("muster authorization digest 1"))
	return keys, nil
}

// Digest is a keyed digest of what an authorization is bound to. Data cannot be guessed
// from it without the key file.
func (k *Keys) Digest(data []byte) []byte { return authenticate(k.digests, data) }

// Signing is the key that signs commands for devices.
func (k *Keys) Signing() ed25519.PrivateKey { return k.signing[0].key }

// SignStatement implements activity.Signer. It uses the key of commands for devices too. The first words of a statement
// keep it apart: no command begins with them.
func (k *Keys) SignStatement(statement []byte) []byte { return ed25519.Sign(k.Signing(), statement) }

// VerifyStatement implements activity.Signer.
func (k *Keys) VerifyStatement(statement, signature []byte) bool {
	return slices.ContainsFunc(k.signing, func(known signingKey) bool {
		return ed25519.Verify(known.key.Public().(ed25519.PublicKey), statement, signature)
	})
}

// PublicKeys implements activity.Signer.
func (k *Keys) PublicKeys() []ed25519.PublicKey {
	return slice.Map(k.signing, func(known signingKey) ed25519.PublicKey { return known.key.Public().(ed25519.PublicKey) })
}

// Prove implements activity.Prover.
func (k *Keys) Prove(statement []byte) string {
	return k.current + "." + base64.RawURLEncoding.EncodeToString(authenticate(k.provers[k.current], statement))
}

// Proves implements activity.Signer.
func (k *Keys) Proves(statement []byte, proof string) bool {
	id, code, _ := strings.Cut(proof, ".")
	given, err := base64.RawURLEncoding.DecodeString(code)
	key, known := k.provers[id]
	return err == nil && known && hmac.Equal(given, authenticate(key, statement))
}

// authenticate returns the HMAC-SHA-256 of data.
func authenticate(key, data []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(data)
	return h.Sum(nil)
}

// Seal encrypts data so that only this service's keys open it, and only for
// the same purpose. Equal data seal to different texts.
func (k *Keys) Seal(purpose string, data []byte) []byte {
	sealed := append([]byte(k.current), '.')
	return k.sealers[k.current].Seal(sealed, nil, data, []byte(purpose)) //nolint:gosec // the sealer makes a random nonce
}

// Open decrypts what Seal made for the same purpose.
func (k *Keys) Open(purpose string, sealed []byte) ([]byte, error) {
	id, body, _ := strings.Cut(string(sealed), ".")
	sealer, ok := k.sealers[id]
	if !ok {
		return nil, errors.New("sealed with a key that this service does not have")
	}
	data, err := sealer.Open(nil, nil, []byte(body), []byte(purpose))
	if err != nil {
		return nil, errors.New("the sealed data is damaged or was made for another purpose")
	}
	return data, nil
}
