package apikey_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/fault"
)

// keyring keeps keys in memory; what the database does with them is its own test.
type keyring struct{ kept []apikey.Key }

func (k *keyring) CreateKey(_ context.Context, key apikey.Key) error {
	k.kept = append(k.kept, key)
	return nil
}

func (k *keyring) Keys(context.Context, string) ([]apikey.Key, error) { return k.kept, nil }

func (k *keyring) RevokeKey(_ context.Context, companyID, id string, at time.Time) (apikey.Key, error) {
	for i := range k.kept {
		if k.kept[i].ID == id && k.kept[i].CompanyID == companyID {
			k.kept[i].RevokedAt = at
			return k.kept[i], nil
		}
	}
	return apikey.Key{}, fault.New(fault.NotFound, "no such key")
}

func TestCreate_ByOperator(t *testing.T) {
	t.Parallel()
	ring := &keyring{}
	now := time.Date(2026, 11, 21, 9, 0, 0, 5_999_999, time.UTC)
	keys := apikey.Keys{Store: ring, Now: func() time.Time { return now }}
	for _, c := range []struct {
		name    string
		request apikey.Request
		field   string
	}{
		{"everything", apikey.Request{CompanyID: "c", Name: "ci", Permissions: access.All}, ""},
		{"a day", apikey.Request{CompanyID: "c", Name: "ci", Permissions: access.DevicesRead, ExpiresIn: 24 * time.Hour}, ""},
		{"nothing", apikey.Request{CompanyID: "c", Name: "ci"}, "permissions"},
		{"more than there is", apikey.Request{CompanyID: "c", Name: "ci", Permissions: access.All + 1<<15}, "permissions"},
		{"no name", apikey.Request{CompanyID: "c", Permissions: access.All}, "name"},
		{"long name", apikey.Request{CompanyID: "c", Name: strings.Repeat("n", 101), Permissions: access.All}, "name"},
		{"the past", apikey.Request{CompanyID: "c", Name: "ci", Permissions: access.All, ExpiresIn: -1}, "expiresIn"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(ring.kept)
			key, text, err := keys.CreateForOperator(t.Context(), c.request)
			if c.field != "" {
				if refusal := fault.From(err); refusal.Code != fault.InvalidArguments || refusal.Fields[0].Field != c.field || text != "" ||
					len(ring.kept) != before {
					t.Errorf("%s: %+v", c.name, refusal)
				}
				return
			}
			if err != nil || !key.Matches(text) {
				t.Errorf("%s: %+v, %v", c.name, key, err)
			}
			if key.CreatedBy != "operator" || key.CreatedAt.Nanosecond() != 5_000_000 {
				t.Errorf("%s: created by %q at %s", c.name, key.CreatedBy, key.CreatedAt)
			}
			if len(ring.kept) != before+1 {
				t.Errorf("%s: %d keys stored, want %d", c.name, len(ring.kept), before+1)
			}
			if expires := c.request.ExpiresIn > 0; expires != !key.ExpiresAt.IsZero() ||
				expires && !key.ExpiresAt.Equal(key.CreatedAt.Add(24*time.Hour)) {
				t.Errorf("%s: expires at %s", c.name, key.ExpiresAt)
			}
		})
	}
	revoked, err := keys.Revoke(t.Context(), "c", ring.kept[0].ID)
	if err != nil || revoked.Usable(now) {
		t.Errorf("%+v, %v", revoked, err)
	}
}

// TestCreate_ByUser is contract 5.3 at the door.
func TestCreate_ByUser(t *testing.T) {
	t.Parallel()
	admin, _ := account.Admin.Rights()
	viewer, _ := account.Viewer.Rights()
	for _, c := range []struct {
		name     string
		rights   account.Right
		policies []string
		grant    access.Permission
		want     bool
	}{
		{"an administrator grants all", admin, nil, access.All, true},
		{"who may edit policies grants that", account.ManageKeys | account.ViewPolicies | account.EditPolicies, nil,
			access.PoliciesWrite | access.PoliciesRead, true},
		{"who may not does not", admin &^ account.EditPolicies, nil, access.PoliciesWrite, false},
		{"who may provision grants that", account.ManageKeys | account.ProvisionDevices | account.ViewPolicies, nil,
			access.Provisioning | access.PoliciesRead, true},
		{"who may not does not", admin &^ account.ProvisionDevices, nil, access.Provisioning, false},
		{"nor with access to some policies only", admin, []string{"p"}, access.Provisioning, false},
		{"a viewer grants nothing", viewer, nil, access.DevicesRead, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ring := &keyring{}
			keys := apikey.Keys{Store: ring, Now: time.Now}
			by := account.User{ID: "u1", CompanyID: "c", Rights: c.rights, Policies: c.policies}
			key, text, err := keys.CreateForUser(t.Context(), by, apikey.Request{CompanyID: "another", Name: "k", Permissions: c.grant})
			if !c.want {
				if fault.CodeOf(err) != fault.Forbidden || len(ring.kept) != 0 {
					t.Errorf("%s: %+v, %v, want it forbidden", c.name, key, err)
				}
				return
			}
			if err != nil || !key.Matches(text) {
				t.Errorf("%s: %+v, %v", c.name, key, err)
			}
			if key.CompanyID != "c" || key.CreatedBy != "u1" {
				t.Errorf("%s: a key of company %q, created by %q", c.name, key.CompanyID, key.CreatedBy)
			}
		})
	}
}

// A person makes no key that allows nothing; the operator does.
func TestKeys_ThatAllowNothing(t *testing.T) {
	t.Parallel()
	admin, _ := account.Admin.Rights()
	by := account.User{ID: "u1", CompanyID: "c", Rights: admin}
	ring := &keyring{}
	keys := apikey.Keys{Store: ring, Now: time.Now}
	for _, p := range []access.Permission{access.DevicesCommand, access.PoliciesWrite | access.Provisioning,
		access.DevicesCommandDestructive} {
		if _, _, err := keys.CreateForUser(t.Context(), by, apikey.Request{Name: "k", Permissions: p}); fault.CodeOf(err) !=
			fault.InvalidArguments || len(ring.kept) != 0 {
			t.Errorf("%s: %v", p, err)
		}
	}
	if _, _, err := keys.CreateForOperator(t.Context(),
		apikey.Request{CompanyID: "c", Name: "k", Permissions: access.DevicesCommand}); err != nil {
		t.Errorf("on the command line: %v", err)
	}
}

func TestPresets(t *testing.T) {
	t.Parallel()
	want := map[string]string{"read-only": "DEVICES_READ, POLICIES_READ", "help-desk": "DEVICES_READ, DEVICES_COMMAND, POLICIES_READ",
		"assistant":  "DEVICES_READ, DEVICES_COMMAND, POLICIES_READ, POLICIES_WRITE",
		"automation": "DEVICES_READ, DEVICES_COMMAND, POLICIES_READ, POLICIES_WRITE, PROVISIONING"}
	for _, preset := range access.Presets() {
		if got := preset.Permissions.String(); got != want[preset.Name] {
			t.Errorf("%s: %s, want %s", preset.Name, got, want[preset.Name])
		}
	}
}

func FuzzParseNetworks(f *testing.F) {
	for _, seed := range []string{"192.0.2.0/24", "2001:db8::/32", "::ffff:192.0.2.0/120", "10.0.0.1", "fe80::1%eth0/64"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		networks, err := apikey.ParseNetworks([]string{text, text})
		if err == nil && (len(networks) != 1 || networks[0] != networks[0].Masked()) {
			t.Errorf("%q is %v", text, networks)
		}
	})
}
