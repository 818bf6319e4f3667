package policy_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/dbtest"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
)

// office is a company whose people change policies, on a real database.
type office struct {
	*testing.T
	policy.Service
	company company.Company
}

func newOffice(t *testing.T) *office {
	t.Helper()
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	clock := func() time.Time { now = now.Add(time.Second); return now }
	db, err := database.Open(t.Context(), database.Options{URL: dbtest.SQLite(t, filepath.Join(t.TempDir(), "muster.db")), Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	o := &office{T: t, Service: policy.Service{Store: db, Checker: vendor(t), Now: clock},
		company: company.Company{ID: resource.NewID(), Slug: "acme", Name: "Acme", InactiveAfter: time.Hour, CreatedAt: now}}
	o.ok(db.CreateCompany(t.Context(), o.company))
	return o
}

func (o *office) ok(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

func (o *office) code(want fault.Code, err error) {
	o.Helper()
	if got := fault.CodeOf(err); got != want {
		o.Fatalf("code = %q (%v), want %q", got, err, want)
	}
}

// person is a user of the company with a role's rights, limited to some
// policies or not.
func (o *office) person(name string, role account.Role, only ...string) access.Principal {
	rights, _ := role.Rights()
	return account.User{ID: "id of " + name, CompanyID: o.company.ID, Name: name, Rights: rights, Policies: only}.
		Principal(o.company.Slug, access.Settings{})
}

func (o *office) warehouse(by access.Principal) policy.Policy {
	o.Helper()
	p, err := o.CreateBy(o.Context(), by, policy.New{Name: "Warehouse", Type: policy.Platform, Labels: []string{"a"}, Description: "d",
		Document: []byte(`{"applications":[{"packageName":"com.example.app","installType":"FORCE_INSTALLED"}]}`)})
	o.ok(err)
	return p
}

func set(setting, value string) []policy.Change {
	return []policy.Change{{Setting: setting, Value: value}}
}

func TestSave_ByPeople(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	ada := o.person("Ada", account.Manager)
	p := o.warehouse(ada)
	preview, err := o.Preview(t.Context(), ada, p.ID, 1, policy.Edit{Changes: set("CAMERA", "block")})
	if o.ok(err); len(preview.Moves) != 1 || preview.Moves[0].To != "BLOCK" {
		t.Errorf("preview %+v", preview)
	}
	saved, err := o.SaveBy(t.Context(), ada, p.PathName(), 1, policy.Edit{Changes: set("CAMERA", "block")})
	if o.ok(err); saved.Version != 2 || read(t, policy.Platform, string(saved.Document), "CAMERA") != "BLOCK" || !saved.Behind() {
		t.Errorf("saved %+v", saved)
	}
	all, err := o.Revisions(t.Context(), o.person("Vic", account.Viewer), p.ID, 10)
	if o.ok(err); len(all) != 2 {
		t.Fatalf("revisions %+v", all)
	}
	if all[0].SavedBy != (policy.Author{Kind: "USER", ID: "id of Ada", Name: "Ada"}) || all[0].SavedAt.IsZero() {
		t.Errorf("saved by %+v at %s", all[0].SavedBy, all[0].SavedAt)
	}
	if all[0].Origin != policy.FromPortal || all[1].Origin != policy.FromCreate {
		t.Errorf("origins %v and %v", all[0].Origin, all[1].Origin)
	}
	d, err := o.Compare(t.Context(), ada, p.ID, 1, 2)
	if o.ok(err); len(d.Moves) != 1 || d.Name != nil || len(d.Others) != 0 {
		t.Errorf("diff %+v", d)
	}
	_, err = o.SaveBy(t.Context(), ada, p.ID, 2, policy.Edit{Changes: set("CAMERA", "NOT_SET")})
	o.code(fault.InvalidArguments, err)
	_, err = o.SaveBy(t.Context(), ada, p.ID, 2, policy.Edit{Document: []byte(`{"noSuchMember":1}`)})
	o.code(fault.Refused, err)
}

func TestRestore_ByPeople(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	ada := o.person("Ada", account.Admin)
	p := o.warehouse(ada)
	newName, newText := "Warehouse 2", "new"
	_, err := o.SaveBy(t.Context(), ada, p.ID, 1, policy.Edit{Name: &newName, Description: &newText, Changes: set("SMS", "BLOCK"),
		Document: []byte(`{"applications":[]}`)})
	o.ok(err)
	back, err := o.Restore(t.Context(), ada, p.ID, 2, 1)
	o.ok(err)
	want := back
	want.Version, want.Name, want.Description, want.Document = 3, "Warehouse", "new", p.Document
	if diff := cmp.Diff(want, back); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
	newest, err := o.Revision(t.Context(), ada, p.ID, 3)
	if o.ok(err); newest.Origin != policy.FromRollback || newest.SavedBy.Name != "Ada" {
		t.Errorf("revision %+v", newest)
	}
	again, err := o.Restore(t.Context(), ada, p.ID, 3, 1)
	if o.ok(err); again.Version != 3 {
		t.Errorf("restored what is: %+v", again)
	}
	_, err = o.Restore(t.Context(), ada, p.ID, 3, 9)
	o.code(fault.NotFound, err)
	_, err = o.Restore(t.Context(), ada, p.ID, 2, 2)
	o.code(fault.StaleProposal, err)
	apps, err := policy.Apps(back.Document)
	if o.ok(err); len(apps) != 1 || apps[0] != (policy.App{PackageName: "com.example.app", InstallType: "FORCE_INSTALLED"}) {
		t.Errorf("apps %+v", apps)
	}
}

// What a person is told who changed a version that is not current any more.
func TestSave_Conflict(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	ada, bob := o.person("Ada", account.Admin), o.person("Bob", account.Manager)
	p := o.warehouse(ada)
	if c, err := o.Conflict(t.Context(), ada, p.ID, 1); c != nil || err != nil {
		t.Fatalf("a conflict with what is current: %v, %v", c, err)
	}
	_, err := o.SaveBy(t.Context(), bob, p.ID, 1, policy.Edit{Changes: append(set("CAMERA", "BLOCK"), set("SMS", "BLOCK")...)})
	o.ok(err)
	mine := policy.Edit{Changes: append(set("CAMERA", "ALLOW"), set("BLUETOOTH", "BLOCK")...)}
	check := func(err error) {
		t.Helper()
		o.code(fault.StaleProposal, err)
		c, ok := errors.AsType[*policy.Conflict](err)
		if !ok {
			t.Fatalf("%v is no conflict", err)
		}
		both := c.Both(mine.Changes)
		if c.Expected != 1 || c.Current.Version != 2 || len(c.Since.Moves) != 2 {
			t.Errorf("expected version %d, current %d, since then %+v", c.Expected, c.Current.Version, c.Since.Moves)
		}
		if c.Saved.SavedBy.Name != "Bob" || c.Saved.SavedAt.IsZero() {
			t.Errorf("saved by %q at %s", c.Saved.SavedBy.Name, c.Saved.SavedAt)
		}
		if len(both) != 1 || both[0].Setting.ID != "CAMERA" || both[0].To != "BLOCK" {
			t.Errorf("both changed %+v", both)
		}
	}
	_, err = o.SaveBy(t.Context(), ada, p.ID, 1, mine)
	check(err)
	_, err = o.Preview(t.Context(), ada, p.ID, 1, mine)
	check(err)
	_, err = o.Restore(t.Context(), ada, p.ID, 1, 1)
	check(err)
	c, err := o.Conflict(t.Context(), ada, p.ID, 1)
	o.ok(err)
	check(c)
	rebased, err := o.SaveBy(t.Context(), ada, p.ID, c.Current.Version, mine)
	if o.ok(err); rebased.Version != 3 || read(t, policy.Platform, string(rebased.Document), "SMS") != "BLOCK" ||
		read(t, policy.Platform, string(rebased.Document), "CAMERA") != "ALLOW" {
		t.Errorf("rebased %+v", rebased)
	}
	if c, err := o.Conflict(t.Context(), ada, p.ID, 99); err != nil || c == nil || len(c.Since.Moves) != 0 {
		t.Errorf("a version that never was: %+v, %v", c, err)
	}
}

// Each method keeps to the person's rights and limits.
func TestSave_RightsOfPeople(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	ada := o.person("Ada", account.Admin)
	p := o.warehouse(ada)
	other, err := o.CreateBy(t.Context(), ada, policy.New{Name: "Shop", Type: policy.Agent})
	o.ok(err)
	viewer, limited := o.person("Vic", account.Viewer), o.person("Lim", account.Manager, other.ID)
	stranger := o.person("Eve", account.Admin)
	stranger.CompanyID = "another"
	nobody := access.Principal{Kind: access.User, CompanyID: o.company.ID, CompanySlug: "acme"}
	reads := map[string]func(who access.Principal) error{
		"open":      func(who access.Principal) error { _, err := o.Open(t.Context(), who, p.ID); return err },
		"revisions": func(who access.Principal) error { _, err := o.Revisions(t.Context(), who, p.ID, 1); return err },
		"revision":  func(who access.Principal) error { _, err := o.Revision(t.Context(), who, p.ID, 1); return err },
		"compare":   func(who access.Principal) error { _, err := o.Compare(t.Context(), who, p.ID, 1, 0); return err },
		"conflict":  func(who access.Principal) error { _, err := o.Conflict(t.Context(), who, p.ID, 1); return err },
	}
	writes := map[string]func(who access.Principal) error{
		"save": func(who access.Principal) error {
			_, err := o.SaveBy(t.Context(), who, p.ID, 1, policy.Edit{Changes: set("SMS", "BLOCK")})
			return err
		},
		"preview": func(who access.Principal) error {
			_, err := o.Preview(t.Context(), who, p.ID, 1, policy.Edit{})
			return err
		},
		"restore": func(who access.Principal) error { _, err := o.Restore(t.Context(), who, p.ID, 1, 1); return err },
		"delete": func(who access.Principal) error {
			_, err := o.DeleteBy(t.Context(), who, p.ID)
			return err
		},
	}
	for what, read := range reads {
		t.Run(what, func(t *testing.T) {
			for who, want := range map[*access.Principal]fault.Code{&ada: "", &viewer: "", &limited: fault.NotFound,
				&stranger: fault.NotFound, &nobody: fault.Forbidden} {
				if got := fault.CodeOf(read(*who)); got != want {
					t.Errorf("%s %s: %q, want %q", who.Name, what, got, want)
				}
			}
		})
	}
	for what, write := range writes {
		t.Run(what, func(t *testing.T) {
			for who, want := range map[*access.Principal]fault.Code{&viewer: fault.Forbidden, &limited: fault.NotFound,
				&stranger: fault.NotFound, &nobody: fault.Forbidden} {
				if got := fault.CodeOf(write(*who)); got != want {
					t.Errorf("%s %s: %q, want %q", who.Name, what, got, want)
				}
			}
		})
	}
	for who, want := range map[*access.Principal]int{&ada: 2, &viewer: 2, &limited: 1, &stranger: 0} {
		page, total, err := o.List(t.Context(), *who, policy.Query{Limit: 10, CompanyID: o.company.ID})
		if err != nil || len(page) != want || int(total) != want {
			t.Errorf("%s lists %d of %d, %v", who.Name, len(page), total, err)
		}
	}
	_, _, err = o.List(t.Context(), nobody, policy.Query{Limit: 10})
	o.code(fault.Forbidden, err)
	for _, who := range []access.Principal{limited, viewer, nobody} {
		_, err := o.CreateBy(t.Context(), who, policy.New{Name: "New " + who.Name, Type: policy.Platform})
		o.code(fault.Forbidden, err)
	}
	_, err = o.SaveBy(t.Context(), limited, other.ID, 1, policy.Edit{Changes: set("SMS", "BLOCK")})
	o.ok(err)
	_, err = o.DeleteBy(t.Context(), ada, p.ID)
	o.ok(err)
	_, err = o.Open(t.Context(), ada, p.ID)
	o.code(fault.NotFound, err)
}
