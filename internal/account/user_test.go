package account_test

import (
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
)

func TestUser_KeyCreationRules(t *testing.T) {
	t.Parallel()
	rights := func(r account.Role) account.Right { all, _ := r.Rights(); return all }
	for _, test := range []struct {
		name  string
		user  account.User
		wants access.Permission
		may   bool
	}{
		{"admin grants everything", account.User{Rights: rights(account.Admin)}, access.All, true},
		{"manager may not make keys", account.User{Rights: rights(account.Manager)}, access.DevicesRead, false},
		{"who may not edit policies", account.User{Rights: account.ManageKeys | account.ViewPolicies}, access.PoliciesWrite, false},
		{"who may edit policies", account.User{Rights: account.ManageKeys | account.EditPolicies}, access.PoliciesWrite, true},
		{"who may not provision", account.User{Rights: account.ManageKeys | account.EditPolicies}, access.Provisioning, false},
		{"provisions some policies only", account.User{Rights: account.ManageKeys | account.ProvisionDevices, Policies: []string{"p"}},
			access.Provisioning, false},
		{"provisions all policies", account.User{Rights: account.ManageKeys | account.ProvisionDevices}, access.Provisioning, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := test.user.MayGrant(test.wants); (err == nil) != test.may || err != nil && fault.CodeOf(err) != fault.Forbidden {
				t.Errorf("%s: %v", test.name, err)
			}
		})
	}
}

func TestPassword_MatchesOnlyItself(t *testing.T) {
	t.Parallel()
	passwords := account.NewPasswords(2)
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
		t.Run(test.hash, func(t *testing.T) {
			got, err := passwords.Matches(t.Context(), test.hash, test.password)
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("%q with %q: %v, %v", test.hash, test.password, got, err)
			}
		})
	}
}

func TestEmail_HasOneForm(t *testing.T) {
	t.Parallel()
	if got, err := account.NormalEmail("Ada@Example.com"); err != nil || got != "ada@example.com" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []string{"", "ada", "ada@", "Ada <ada@example.com>", "ada@example.com\n", "a b@example.com",
		"ad\u200ba@example.com", "ada\u202e@example.com", "ada@exa\u00admple.com"} {
		if _, err := account.NormalEmail(bad); fault.CodeOf(err) != fault.InvalidArguments {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// What each role may do, spelled out: operations by permission, and the rest.
func TestRole_Rights(t *testing.T) {
	t.Parallel()
	look := access.DevicesRead | access.PoliciesRead
	for role, want := range map[account.Role]struct {
		operations access.Permission
		rest       account.Right
	}{
		account.Admin:    {access.All, account.ManageKeys | account.ManageUsers | account.ManageCompany | account.ViewActivity},
		account.Manager:  {access.All, account.ViewActivity},
		account.Operator: {look | access.DevicesCommand, 0},
		account.Viewer:   {look, 0},
	} {
		t.Run(string(role), func(t *testing.T) {
			rights, known := role.Rights()
			if !known || rights.Permissions() != want.operations ||
				rights&(account.ManageKeys|account.ManageUsers|account.ManageCompany|account.ViewActivity) != want.rest {
				t.Errorf("%s: %v", role, rights.Names())
			}
			if back, err := account.ParseRights(rights.Names()); err != nil || back != rights {
				t.Errorf("%s reads back as %v, %v", role, back, err)
			}
		})
	}
	if _, known := account.Role("root").Rights(); known {
		t.Error("there is a role root")
	}
	if _, err := account.ParseRights([]string{"Edit-Policies"}); err == nil {
		t.Error("a right in another case was read")
	}
}

// Contract 5.3 and 5.4 for a person: what each single right amounts to, cut to
// the policies that the person may see, and bound by no setting for agents.
func TestUser_PrincipalHasTheRightsOfTheRole(t *testing.T) {
	t.Parallel()
	for right, want := range map[account.Right]access.Permission{
		account.ViewDevices: access.DevicesRead, account.CommandDevices: access.DevicesRead | access.DevicesCommand,
		account.DestroyDevices: access.DevicesRead | access.DevicesCommandDestructive, account.ViewPolicies: access.PoliciesRead,
		account.EditPolicies:     access.PoliciesRead | access.PoliciesWrite,
		account.ProvisionDevices: access.PoliciesRead | access.Provisioning,
		account.ManageKeys:       0, account.ManageUsers: 0, account.ManageCompany: 0, account.ViewActivity: 0,
	} {
		t.Run(right.Names()[0], func(t *testing.T) {
			person := account.User{ID: "u", CompanyID: "c", Rights: right, Policies: []string{"p"}}.Principal("acme", access.Settings{})
			if person.Permissions != want {
				t.Errorf("%v: permissions %v, want %v", right.Names(), person.Permissions, want)
			}
			if person.Kind != access.User || person.UserID != "u" {
				t.Errorf("%v: a principal of kind %v, user %q", right.Names(), person.Kind, person.UserID)
			}
			if !person.MaySee("p") || person.MaySee("q") {
				t.Errorf("%v: sees p %v, q %v, want p alone", right.Names(), person.MaySee("p"), person.MaySee("q"))
			}
			for _, gate := range []access.Gate{access.NoGate, access.DeviceCommands, access.DestructiveCommands, access.PolicyChanges,
				access.ProvisioningGate} {
				if err := access.Grant(person, want, gate); err != nil {
					t.Errorf("%v: a setting for agents binds a person: %v", right.Names(), err)
				}
			}
		})
	}
}

// A character that becomes an ASCII letter where case does not count makes no address:
// it would be that of another person.
func TestNormalEmail_NoCharacterBecomesASCII(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"mi\u212Ae@acme.test", "mike@ac\u212Ae.test", "\u0130da@acme.test", "ad\u017F@acme.test"} {
		if normal, err := account.NormalEmail(address); err == nil {
			t.Errorf("%q is taken for %q", address, normal)
		}
	}
	for address, want := range map[string]string{"Mike@Acme.test": "mike@acme.test", "\u00C9va@acme.test": "\u00E9va@acme.test"} {
		if normal, err := account.NormalEmail(address); err != nil || normal != want {
			t.Errorf("%q: %q, %v", address, normal, err)
		}
	}
}
