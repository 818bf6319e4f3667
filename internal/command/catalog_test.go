package command_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/test/expect"
)

// Every row has what a surface shows of it, and no two rows share a name.
func TestCatalog_RowsAreComplete(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, row := range command.Catalog() {
		t.Run(string(row.Type), func(t *testing.T) {
			for name, text := range map[string]string{"title": row.Title, "label": row.Label, "icon": row.Icon,
				"past": row.Past, "base": row.Base} {
				if text == "" {
					t.Errorf("no %s", name)
				}
			}
			for _, name := range []string{string(row.Type), "operation " + row.Operation, "segment " + row.Segment} {
				if seen[name] {
					t.Errorf("%s is there twice", name)
				}
				seen[name] = true
			}
			if len(row.Effects) == 0 || slices.ContainsFunc(row.Effects, func(s string) bool { return !strings.HasSuffix(s, ".") }) {
				t.Errorf("effects %q are not sentences", row.Effects)
			}
			if row.Platform == nil && (row.Agent == nil || row.Vendor != "") {
				t.Errorf("no device takes it: agent %v, vendor %q", row.Agent, row.Vendor)
			}
			if row.Destructive && !row.Irreversible || row.EndsManagement && !row.Destructive {
				t.Errorf("ends management %v, destructive %v, irreversible %v", row.EndsManagement, row.Destructive, row.Irreversible)
			}
			if row.Type.Row() != row {
				t.Error("the type finds another row")
			}
		})
	}
	if other := command.Type("OTHER").Row(); other == nil || other.Label != "" || other.Destructive {
		t.Errorf("an unknown type has the row %+v", other)
	}
}

func TestRow_EffectsOn(t *testing.T) {
	t.Parallel()
	wipe := command.WipeCompanyData.Row()
	for ownership, want := range map[asset.Ownership]string{
		asset.CompanyOwned: "factory settings", asset.PersonallyOwned: "what is private stays", "": "factory settings",
	} {
		text := wipe.Text(&asset.Device{Ownership: ownership})
		if !strings.Contains(text, want) || strings.Count(text, "This cannot be undone.") != 1 {
			t.Errorf("a wipe of a device of ownership %q: %s", ownership, text)
		}
	}
	if text := command.Lock.Row().Text(nil); strings.Contains(text, "undone") {
		t.Errorf("a lock: %s", text)
	}
}

// A form asks for what the operation takes, with the limits of its rules.
func TestRow_Inputs(t *testing.T) {
	t.Parallel()
	for kind, want := range map[command.Type]string{
		command.Lock:                     "",
		command.NotificationMessage:      "title:text body:area",
		command.StartLostMode:            "message:area phoneNumber:tel email:email streetAddress:text organization:text",
		command.LaunchApp:                "packageName:text",
		command.ClearAppData:             "packageNames:list",
		command.ChangePolicy:             "policyId:policy",
		command.ChangeScreenLockPassword: "newPassword:password",
	} {
		t.Run(string(kind), func(t *testing.T) {
			var got []string
			for _, in := range kind.Row().Arguments.Inputs {
				got = append(got, in.Name+":"+in.Kind)
				if in.Label == "" || in.Max == 0 && in.Kind != "policy" {
					t.Errorf("%s: %+v", kind, in)
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s asks for %q, want %q", kind, got, want)
			}
		})
	}
	if in := command.NotificationMessage.Row().Arguments.Inputs[0]; in.Max != 60 || !in.Required || in.Label != "Title" {
		t.Errorf("the message's title: %+v", in)
	}
}

// A command without a body has an empty object as its arguments, so that no agent has to read null.
func TestAgentArguments(t *testing.T) {
	t.Parallel()
	body := &command.PasswordBody{}
	expect.Equal(t, "arguments", expect.Values{
		"without a body": {command.AgentArguments(nil), struct{}{}},
		"with a body":    {command.AgentArguments(body), any(body)},
	})
}
