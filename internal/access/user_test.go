package access_test

import (
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

func TestKeyCreationRules(t *testing.T) {
	t.Parallel()
	rights := func(r access.Role) access.Right { all, _ := r.Rights(); return all }
	for _, test := range []struct {
		name  string
		user  access.UserAccount
		wants access.Permission
		may   bool
	}{
		{"admin grants everything", access.UserAccount{Rights: rights(access.Admin)}, access.All, true},
		{"manager may not make keys", access.UserAccount{Rights: rights(access.Manager)}, access.DevicesRead, false},
		{"who may not edit policies", access.UserAccount{Rights: access.ManageKeys | access.ViewPolicies}, access.PoliciesWrite, false},
		{"who may edit policies", access.UserAccount{Rights: access.ManageKeys | access.EditPolicies}, access.PoliciesWrite, true},
		{"who may not provision", access.UserAccount{Rights: access.ManageKeys | access.EditPolicies}, access.Provisioning, false},
		{"provisions some policies only", access.UserAccount{Rights: access.ManageKeys | access.ProvisionDevices, Policies: []string{"p"}}, access.Provisioning, false},
		{"provisions all policies", access.UserAccount{Rights: access.ManageKeys | access.ProvisionDevices}, access.Provisioning, true},
	} {
		if err := test.user.MayGrant(test.wants); (err == nil) != test.may || err != nil && fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestPasswordsMatchOnlyThemselves(t *testing.T) {
	t.Parallel()
	passwords := access.NewPasswords(2)
	hash, err := passwords.Hash(t.Context(), "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		hash, password string
		want, fails    bool
	}{
		{hash, "correct horse", true, false},
		{hash, "correct horsf", false, false},
		{"", "correct horse", false, false},
		{hash[:len(hash)-1] + "!", "correct horse", false, true},
		{"$argon2id$v=19$m=99999999,t=2,p=1$AAAA$AAAAAAAAAAAAAAAAAAAAAA", "x", false, true},
		{"plain", "plain", false, true},
	} {
		got, err := passwords.Matches(t.Context(), test.hash, test.password)
		if got != test.want || (err != nil) != test.fails {
			t.Errorf("%q with %q: %v, %v", test.hash, test.password, got, err)
		}
	}
}

func TestEmailAddressesAreOneForm(t *testing.T) {
	t.Parallel()
	if got, err := access.NormalEmail("Ada@Example.com"); err != nil || got != "ada@example.com" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []string{"", "ada", "ada@", "Ada <ada@example.com>", "ada@example.com\n", "a b@example.com"} {
		if _, err := access.NormalEmail(bad); fault.CodeOf(err) != fault.InvalidArguments {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
