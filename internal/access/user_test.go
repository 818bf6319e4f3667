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

// What each role may do, spelled out: operations by permission, and the rest.
func TestWhatEachRoleMayDo(t *testing.T) {
	t.Parallel()
	look := access.DevicesRead | access.PoliciesRead
	for role, want := range map[access.Role]struct {
		operations access.Permission
		rest       access.Right
	}{
		access.Admin:    {access.All, access.ManageKeys | access.ManageUsers | access.ManageCompany | access.ViewActivity},
		access.Manager:  {access.All, access.ViewActivity},
		access.Operator: {look | access.DevicesCommand, 0},
		access.Viewer:   {look, 0},
	} {
		rights, known := role.Rights()
		if !known || rights.Permissions() != want.operations || rights&(access.ManageKeys|access.ManageUsers|access.ManageCompany|access.ViewActivity) != want.rest {
			t.Errorf("%s: %v", role, rights.Names())
		}
		if back, err := access.ParseRights(rights.Names()); err != nil || back != rights {
			t.Errorf("%s reads back as %v, %v", role, back, err)
		}
	}
	if _, known := access.Role("root").Rights(); known {
		t.Error("there is a role root")
	}
	if _, err := access.ParseRights([]string{"Edit-Policies"}); err == nil {
		t.Error("a right in another case was read")
	}
}

// Contract 5.3 and 5.4 for a person: what each single right amounts to, cut to
// the policies that the person may see, and bound by no setting for agents.
func TestAPersonIsTheirRights(t *testing.T) {
	t.Parallel()
	for right, want := range map[access.Right]access.Permission{
		access.ViewDevices: access.DevicesRead, access.CommandDevices: access.DevicesRead | access.DevicesCommand,
		access.DestroyDevices: access.DevicesRead | access.DevicesCommandDestructive, access.ViewPolicies: access.PoliciesRead,
		access.EditPolicies: access.PoliciesRead | access.PoliciesWrite, access.ProvisionDevices: access.PoliciesRead | access.Provisioning,
		access.ManageKeys: 0, access.ManageUsers: 0, access.ManageCompany: 0, access.ViewActivity: 0,
	} {
		person := access.UserAccount{ID: "u", CompanyID: "c", Rights: right, Policies: []string{"p"}}.Principal("acme", access.Settings{})
		if person.Permissions != want || person.Kind != access.User || person.UserID != "u" || !person.MaySee("p") || person.MaySee("q") {
			t.Errorf("%v: %+v", right.Names(), person)
		}
		for _, gate := range gates {
			if err := access.Grant(person, want, gate); err != nil {
				t.Errorf("%v: a setting for agents binds a person: %v", right.Names(), err)
			}
		}
	}
}
