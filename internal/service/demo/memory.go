package demo

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/durable"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/surface/mcp"
	"github.com/musterhq/muster/internal/surface/rest"
	"github.com/musterhq/muster/internal/surface/web"
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
		{"demo: assistant", AssistantPreset(), &f.memory.Assistant},
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

// AssistantPreset is what an assistant needs, and no more.
func AssistantPreset() access.Permission {
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

// controls says which of the company's controls are on.
func (f *filler) controls() string {
	c, ages := f.company.Settings.Controls, "of any age"
	if c.ApproverAge > 0 {
		ages = "older than " + phrase.Span(c.ApproverAge)
	}
	limit := "no limit of destructive commands"
	if l := c.DestructiveLimit; !l.Off() {
		limit = "at most " + l.Words() + " get a destructive command"
	}
	return fmt.Sprintf("%s; approval of policy changes: %s; authorization of destructive commands: %s; a person with an account %s may "+
		"approve and confirm",
		limit, strings.ToLower(string(cmp.Or(c.ApplyApproval, access.ApproveNone))), access.OnOff(c.DestructiveApproval), ages)
}

// introduce prints the addresses, the credentials and commands to try. Tests and people's scripts
// read this text: its first address must be the portal's, and its first key the one with every
// permission.
func (f *filler) introduce(ctx context.Context) {
	device := f.someDevice(ctx)
	address, api, key, assistant := f.service.PublicURL(), f.service.PublicURL()+rest.Prefix, f.memory.Key, f.memory.Assistant
	client := script.Must(json.MarshalIndent(map[string]any{"mcpServers": map[string]any{"muster": map[string]any{
		"type": "http", "url": address + mcp.Path, "headers": map[string]string{"X-API-Key": assistant},
	}}}, "  ", "  "))
	f.say("\nMuster is up. Stop it with Ctrl-C; start it again and it goes on where it stopped.\n")
	f.say("  Portal     %s", address)
	f.say("  Open       %s%s?code=%s  (signs in once, within the hour)", address, web.OncePath, f.link.code)
	f.say("  Sign in    %s with the password %s", portalUser, f.memory.Password)
	if f.memory.Second != "" {
		f.say("  Second     %s with the password %s  (another administrator, who can confirm and approve)", secondUser, f.memory.Second)
	}
	f.say("  API        %s  (reference: %s/api/docs)", api, address)
	f.say("  Emulator   %s", f.emulator.URL())
	f.say("  API key    %s  (may do everything)", key)
	f.say("  API key    %s  (may read)", f.memory.Observer)
	f.say("  API key    %s  (for an assistant: reads, sends commands, proposes and applies policy changes; erases nothing)", assistant)
	f.say("  Controls   %s", f.controls())
	f.say("\nConnect an assistant over MCP:\n\n  %s", client)
	f.say("\n  One that starts programs instead: MUSTER_URL=%s MUSTER_API_KEY=%s muster mcp", address, assistant)
	f.say("\nThree commands to try:\n")
	f.say("  curl -H 'X-API-Key: %s' '%s/assets?status=ACTIVE&size=3'", key, api)
	f.say("  curl -H 'X-API-Key: %s' -X POST %s/assets/%s/commands/lock", key, api, device.ID)
	f.say("  curl -H 'X-API-Key: %s' %s/assets/%s/commands\n", key, api, device.ID)
}
