package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/musterhq/muster/internal/access"
)

// memory is what the demo keeps of itself between starts. Keys are shown once
// by a real service; the demo shows its own at every start, and so must keep
// them, in a file that its owner alone may read.
type memory struct {
	Key      string `json:"key"`      // every permission
	Observer string `json:"observer"` // reads alone
}

func (f *filler) memoryFile() string { return filepath.Join(f.settings.Data, "demo.json") }

// makeKeys makes the demo's keys, unless it has them.
func (f *filler) makeKeys(ctx context.Context) error {
	text, err := os.ReadFile(f.memoryFile())
	if err == nil {
		if err := json.Unmarshal(text, &f.memory); err != nil {
			return fmt.Errorf("%s is damaged: remove %s and start again: %w", f.memoryFile(), f.settings.Data, err)
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	keys := access.Keys{Store: f.desk.Keys, Now: f.now}
	for _, wanted := range []struct {
		name        string
		permissions access.Permission
		into        *string
	}{
		{"demo: everything", access.All, &f.memory.Key},
		{"demo: reads", access.DevicesRead | access.PoliciesRead, &f.memory.Observer},
	} {
		_, key, err := keys.CreateForOperator(ctx, access.NewKeyRequest{CompanyID: f.company.ID, Name: wanted.name, Permissions: wanted.permissions})
		if err != nil {
			return err
		}
		*wanted.into = key
	}
	if text, err = json.MarshalIndent(f.memory, "", "  "); err != nil {
		return err
	}
	return os.WriteFile(f.memoryFile(), append(text, '\n'), 0o600)
}
