package agent

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/durable"
)

// ErrNotEnrolled is returned where the state directory holds no identity.
var ErrNotEnrolled = errors.New("this device is not enrolled: run muster-agent enroll")

// errDamaged is in the error of a file that is not what was written.
var errDamaged = errors.New("is damaged")

// identity is who the device is to the service. It is written at enrollment and
// when keys change, and destroyed when the enrollment ends.
type identity struct {
	Server      string                `json:"server"`
	DeviceID    string                `json:"deviceId"`
	Role        protocol.Role         `json:"role"`
	Key         []byte                `json:"key"` // PKCS #8
	CommandKeys []protocol.CommandKey `json:"commandKeys"`
	// Reserved is a sequence number that was never used: counting goes on from
	// there after a restart.
	Reserved int64 `json:"reserved"`
	OffsetMS int64 `json:"offsetMs"` // the service's clock minus the device's
	// NextKey was offered to the service, which may or may not have taken it.
	NextKey    []byte     `json:"nextKey,omitempty"` // PKCS #8
	KeyMade    int64      `json:"keyMade,omitempty"` // Unix milliseconds
	Connection Connection `json:"connection"`
	// Latest is the latest time, in Unix milliseconds, that the service has
	// signed. The device's own clock cannot take it back.
	Latest int64 `json:"latest,omitempty"`
}

// sound reports what an identity lacks without which there is nothing to run.
func (id identity) sound() error {
	switch {
	case checkServer(id.Server) != nil:
		return errors.New("it names no service")
	case id.DeviceID == "":
		return errors.New("it names no device")
	case len(id.CommandKeys) == 0:
		return errors.New("it holds no command key")
	}
	_, err := protocol.ParsePrivateKey(id.Key)
	return err
}

// applied is what the device was brought to.
type applied struct {
	Policy   protocol.PolicyRef       `json:"policy"`
	Wanted   map[string]string        `json:"wanted"`
	Settings []protocol.SettingReport `json:"settings"`
	Reported bool                     `json:"reported"` // the service has the report
	BootID   string                   `json:"bootId"`   // when drift was last looked for
	CheckAt  int64                    `json:"checkAt"`  // by the clock of this start of the machine, in milliseconds: look for drift again
	Guard    *guard                   `json:"guard,omitempty"`
	Lost     bool                     `json:"lost,omitempty"` // what was here was damaged
	// Touched are the settings that a policy which is being applied sets or takes back.
	Touched []string `json:"touched,omitempty"`
}

// guard waits for proof that the device is still in touch after its
// connectivity was changed; else what was before is restored.
type guard struct {
	BootID string            `json:"bootId"` // of the start of the machine whose clock Until is by
	Until  int64             `json:"until"`  // milliseconds
	Before map[string]string `json:"before"` // setting → value
}

// tells is from when on a check-in that begins tells whether the device is still in touch.
func (g guard) tells() int64 { return g.Until - (guardTime - settleTime).Milliseconds() }

// store is the state directory.
type store struct{ dir string }

const (
	identityFile = "identity.json"
	appliedFile  = "applied.json"
	journalFile  = "journal"
)

func (s store) path(name string) string { return filepath.Join(s.dir, name) }

func (s store) load(name string, v any) error {
	data, err := os.ReadFile(s.path(name))
	if err != nil {
		return err
	}
	if data, err = unsum(data); err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		return fmt.Errorf("%s %w: %w", s.path(name), errDamaged, err)
	}
	return nil
}

func (s store) save(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	return writeFile(s.path(name), fmt.Appendf(nil, `%s,"checksum":"%08x"}`, data[:len(data)-1], crc32.ChecksumIEEE(data)))
}

// sumForm is the last member of each file: the checksum of what the file is
// without it. Agents before this one pass over a member that they do not know.
var sumForm = regexp.MustCompile(`,"checksum":"([0-9a-f]{8})"}$`)

// unsum returns the object without its checksum. One that has none was written
// by an agent before this one.
func unsum(file []byte) ([]byte, error) {
	found := sumForm.FindSubmatchIndex(file)
	if found == nil {
		return file, nil
	}
	object := append(file[:found[0]:found[0]], '}')
	if fmt.Sprintf("%08x", crc32.ChecksumIEEE(object)) != string(file[found[2]:found[3]]) {
		return nil, errors.New("its checksum is wrong")
	}
	return object, nil
}

func (s store) remove(name string) error {
	if err := os.Remove(s.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return durable.Sync(s.dir)
}

func (s store) identity() (identity, error) {
	var id identity
	err := s.load(identityFile, &id)
	if errors.Is(err, fs.ErrNotExist) {
		return id, ErrNotEnrolled
	}
	if err == nil {
		if unsound := id.sound(); unsound != nil {
			err = fmt.Errorf("%s %w: %w", s.path(identityFile), errDamaged, unsound)
		}
	}
	if errors.Is(err, errDamaged) {
		return id, fmt.Errorf("%w: %w", ErrLost, err)
	}
	return id, err
}

// The reserve is a file that gives its place up when the storage is full. Without
// it, a person who fills a device's storage could keep it from noting a wipe, and so from
// being erased.
const (
	reserveFile = "reserve"
	reserveSize = 32 << 10
)

// keepReserve makes the reserve where it is missing. Without room it goes on without.
func keepReserve(dir string) {
	path := filepath.Join(dir, reserveFile)
	if _, err := os.Lstat(path); err == nil {
		return
	}
	data := make([]byte, reserveSize)
	_, _ = rand.Read(data) // it never fails; no file system can compress this
	if os.WriteFile(path, data, 0o600) != nil {
		_ = os.Remove(path)
	}
}

// withReserve tries a write that failed again, in the place of the reserve.
func withReserve(dir string, write func() error) error {
	err := write()
	if err != nil && os.Remove(filepath.Join(dir, reserveFile)) == nil {
		err = write()
	}
	return err
}
