package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/musterhq/muster/internal/agentproto"
)

// ErrNotEnrolled is returned where the state directory holds no identity.
var ErrNotEnrolled = errors.New("this device is not enrolled: run muster-agent enroll")

// identity is who the device is to the service. It is written at enrolment and
// when keys change, and destroyed when the service lets the device go.
type identity struct {
	Server      string                  `json:"server"`
	DeviceID    string                  `json:"deviceId"`
	Role        agentproto.Role         `json:"role"`
	Key         []byte                  `json:"key"` // PKCS #8
	CommandKeys []agentproto.CommandKey `json:"commandKeys"`
	// Reserved is a sequence number that was never used: counting goes on from
	// there after a restart.
	Reserved int64 `json:"reserved"`
	OffsetMS int64 `json:"offsetMs"` // the service's clock minus the device's
	// NextKey was offered to the service, which may or may not have taken it.
	NextKey    []byte     `json:"nextKey,omitempty"` // PKCS #8
	KeyMade    int64      `json:"keyMade,omitempty"` // Unix milliseconds
	Connection Connection `json:"connection"`
}

// applied is what the device was brought to.
type applied struct {
	Policy   agentproto.PolicyRef       `json:"policy"`
	Wanted   map[string]string          `json:"wanted"`
	Settings []agentproto.SettingReport `json:"settings"`
	Reported bool                       `json:"reported"` // the service has the report
	BootID   string                     `json:"bootId"`   // when drift was last looked for
	CheckAt  int64                      `json:"checkAt"`  // Unix milliseconds: look for drift again
	Guard    *guard                     `json:"guard,omitempty"`
}

// guard waits for proof that the device is still in touch after its
// connectivity was changed; else what was before is restored.
type guard struct {
	Until  int64             `json:"until"`  // Unix milliseconds by the device's own clock
	Before map[string]string `json:"before"` // setting → value
}

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
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s is damaged: %w", s.path(name), err)
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
	return writeFile(s.path(name), data)
}

// destroy removes everything, the identity first: without it nothing else has
// any power.
func (s store) destroy() error {
	for _, name := range []string{identityFile, appliedFile, journalFile} {
		if err := s.remove(name); err != nil {
			return err
		}
	}
	return nil
}

func (s store) remove(name string) error {
	if err := os.Remove(s.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncDir(s.dir)
}

func (s store) identity() (identity, error) {
	var id identity
	err := s.load(identityFile, &id)
	if errors.Is(err, fs.ErrNotExist) {
		return id, ErrNotEnrolled
	}
	return id, err
}
