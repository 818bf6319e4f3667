package demo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/durable"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/script"
)

// memory is what the demo keeps of itself between starts. Keys and passwords
// are shown once by a real service; the demo shows its own at every start, and
// so must keep them, in a file that its owner alone may read.
type memory struct {
	Key      string `json:"key"`      // every permission
	Observer string `json:"observer"` // reads alone
	// Assistant is the key of assistants; empty in a demo from before there was one.
	Assistant string `json:"assistant"`
	Password  string `json:"password"` // of the first administrator
	// Second is the password of the second one; empty in a demo without a history.
	Second string `json:"second"`
}

// The addresses that the demo's administrators sign in with.
const (
	portalUser = "admin@acme.test"
	secondUser = "bea@acme.test"
)

func (m *memory) passwordOf(email string) string {
	if email == secondUser {
		return m.Second
	}
	return m.Password
}

func (f *filler) memoryFile() string { return filepath.Join(f.settings.Data, "demo.json") }

func (f *filler) remember() {
	text, err := os.ReadFile(f.memoryFile())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = json.Unmarshal(text, &f.memory)
	}
	if err != nil {
		script.Fail("%s is damaged: remove %s and start again: %w", f.memoryFile(), f.settings.Data, err)
	}
}

// keep writes the memory whole: a demo that is killed while it writes finds
// the old one or the new one.
func (f *filler) keep() {
	text := script.Must(json.MarshalIndent(f.memory, "", "  "))
	script.Need(durable.Write(f.memoryFile(), append(text, '\n')))
}

// makeKeys makes the demo's keys, unless it has them.
func (f *filler) makeKeys(ctx context.Context) {
	keys := apikey.Keys{Store: f.admin.Keys, Now: f.now}
	for _, wanted := range []struct {
		name        string
		permissions access.Permission
		into        *string
	}{
		{"demo: everything", access.All, &f.memory.Key},
		{"demo: reads", access.DevicesRead | access.PoliciesRead, &f.memory.Observer},
		{"demo: assistant", assistantPreset(), &f.memory.Assistant},
	} {
		if *wanted.into != "" {
			continue
		}
		_, key, err := keys.CreateForOperator(ctx,
			apikey.Request{CompanyID: f.company.ID, Name: wanted.name, Permissions: wanted.permissions})
		script.Need(err)
		*wanted.into = key
		f.keep()
	}
}

// assistantPreset is what an assistant needs, and no more.
func assistantPreset() access.Permission {
	i := slices.IndexFunc(access.Presets(), func(p access.Preset) bool { return p.Name == "assistant" })
	return access.Presets()[i].Permissions
}

// makeUsers makes the administrators, whose passwords are kept first: a user whose
// password is unknown could not be repaired by starting again.
func (f *filler) makeUsers(ctx context.Context) {
	for _, u := range []struct {
		email, name string
		password    *string
	}{{portalUser, "Ada Admin", &f.memory.Password}, {secondUser, "Bea Boss", &f.memory.Second}} {
		if u.email == secondUser && f.history == nil {
			continue
		}
		if *u.password == "" {
			*u.password = rand.Text()
			f.keep()
		}
		_, err := f.admin.Users.UserByEmail(ctx, u.email)
		if fault.CodeOf(err) == fault.NotFound {
			users := account.Users{Store: f.admin.Users, Passwords: account.NewPasswords(1), Now: f.now}
			_, err = users.Create(ctx, account.NewUserRequest{CompanyID: f.company.ID, Email: u.email, Name: u.name, Role: account.Admin,
				Password: *u.password})
		}
		script.Need(err)
	}
}
