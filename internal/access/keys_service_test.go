package access_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

// keyring keeps keys in memory; what the database does with them is its own test.
type keyring struct{ kept []access.Key }

func (k *keyring) CreateKey(_ context.Context, key access.Key) error {
	k.kept = append(k.kept, key)
	return nil
}

func (k *keyring) Keys(context.Context, string) ([]access.Key, error) { return k.kept, nil }

func (k *keyring) RevokeKey(_ context.Context, companyID, id string, at time.Time) (access.Key, error) {
	for i := range k.kept {
		if k.kept[i].ID == id && k.kept[i].CompanyID == companyID {
			k.kept[i].RevokedAt = at
			return k.kept[i], nil
		}
	}
	return access.Key{}, fault.New(fault.NotFound, "no such key")
}

func TestKeysOfTheOperator(t *testing.T) {
	t.Parallel()
	ring := &keyring{}
	now := time.Date(2026, 11, 21, 9, 0, 0, 5_999_999, time.UTC)
	keys := access.Keys{Store: ring, Now: func() time.Time { return now }}
	for _, c := range []struct {
		name    string
		request access.NewKeyRequest
		field   string
	}{
		{"everything", access.NewKeyRequest{CompanyID: "c", Name: "ci", Permissions: access.All}, ""},
		{"a day", access.NewKeyRequest{CompanyID: "c", Name: "ci", Permissions: access.DevicesRead, ExpiresIn: 24 * time.Hour}, ""},
		{"nothing", access.NewKeyRequest{CompanyID: "c", Name: "ci"}, "permissions"},
		{"more than there is", access.NewKeyRequest{CompanyID: "c", Name: "ci", Permissions: access.All + 1<<15}, "permissions"},
		{"no name", access.NewKeyRequest{CompanyID: "c", Permissions: access.All}, "name"},
		{"long name", access.NewKeyRequest{CompanyID: "c", Name: strings.Repeat("n", 101), Permissions: access.All}, "name"},
		{"the past", access.NewKeyRequest{CompanyID: "c", Name: "ci", Permissions: access.All, ExpiresIn: -1}, "expiresIn"},
	} {
		before := len(ring.kept)
		key, text, err := keys.CreateForOperator(t.Context(), c.request)
		if c.field != "" {
			if told := fault.From(err); told.Code != fault.InvalidArguments || told.Fields[0].Field != c.field || text != "" || len(ring.kept) != before {
				t.Errorf("%s: %+v", c.name, told)
			}
			continue
		}
		if err != nil || !key.Matches(text) || key.CreatedBy != "operator" || key.CreatedAt.Nanosecond() != 5_000_000 || len(ring.kept) != before+1 {
			t.Errorf("%s: %+v, %v", c.name, key, err)
		}
		if expires := c.request.ExpiresIn > 0; expires != !key.ExpiresAt.IsZero() || expires && !key.ExpiresAt.Equal(key.CreatedAt.Add(24*time.Hour)) {
			t.Errorf("%s: expires at %s", c.name, key.ExpiresAt)
		}
	}
	revoked, err := keys.Revoke(t.Context(), "c", ring.kept[0].ID)
	if err != nil || revoked.Usable(now) {
		t.Errorf("%+v, %v", revoked, err)
	}
}

// TestKeysOfUsers is contract 5.3 at the door.
func TestKeysOfUsers(t *testing.T) {
	t.Parallel()
	admin, _ := access.Admin.Rights()
	viewer, _ := access.Viewer.Rights()
	for _, c := range []struct {
		name     string
		rights   access.Right
		policies []string
		grant    access.Permission
		want     bool
	}{
		{"an administrator grants all", admin, nil, access.All, true},
		{"who may edit policies grants that", access.ManageKeys | access.ViewPolicies | access.EditPolicies, nil, access.PoliciesWrite | access.PoliciesRead, true},
		{"who may not does not", admin &^ access.EditPolicies, nil, access.PoliciesWrite, false},
		{"who may provision grants that", access.ManageKeys | access.ProvisionDevices, nil, access.Provisioning, true},
		{"who may not does not", admin &^ access.ProvisionDevices, nil, access.Provisioning, false},
		{"nor with access to some policies only", admin, []string{"p"}, access.Provisioning, false},
		{"a viewer grants nothing", viewer, nil, access.DevicesRead, false},
	} {
		ring := &keyring{}
		keys := access.Keys{Store: ring, Now: time.Now}
		by := access.UserAccount{ID: "u1", CompanyID: "c", Rights: c.rights, Policies: c.policies}
		key, text, err := keys.CreateForUser(t.Context(), by, access.NewKeyRequest{CompanyID: "another", Name: "k", Permissions: c.grant})
		if c.want && (err != nil || key.CompanyID != "c" || key.CreatedBy != "u1" || !key.Matches(text)) {
			t.Errorf("%s: %+v, %v", c.name, key, err)
		}
		if !c.want && (fault.CodeOf(err) != fault.Forbidden || len(ring.kept) != 0) {
			t.Errorf("%s: %+v, %v", c.name, key, err)
		}
	}
}
