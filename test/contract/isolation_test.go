package contract_test

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/surface/rest/resttest"
	"github.com/musterhq/muster/test/spec"
)

// tenant is a company with something of every kind.
type filledCompany struct {
	company company.Company
	asset   asset.Asset
	policy  policy.Policy
}

func newFilledCompany(t *testing.T, env *servertest.Env, slug string) filledCompany {
	t.Helper()
	made := filledCompany{company: env.Company(slug, servertest.Everything())}
	made.policy = env.Policy(made.company, "Policy of "+slug, policy.Platform)
	made.asset = asset.Asset{ID: resource.NewID(), CompanyID: made.company.ID, CompanySlug: slug,
		Identification: "Asset of " + slug, Status: asset.Pending, CreatedAt: env.Now()}
	if err := env.Admin().Assets.ImportAssets(t.Context(), []asset.Asset{made.asset}); err != nil {
		t.Fatal(err)
	}
	return made
}

// forms are all ways to name something of another company in a path: the short
// id, the path name escaped and as it is (contract 4.6), and the other
// company's id under one's own name.
func forms(mine, theirs company.Company, kind resource.Collection, id string) []string {
	full := resource.Of(theirs.Slug, kind, id)
	return []string{id, url.PathEscape(full), full, url.PathEscape(resource.Of(mine.Slug, kind, id)), resource.Of(mine.Slug, kind, id)}
}

// Every id of another company, on every operation, in all forms, is 404 of the
// operation's own shape: it cannot be distinguished from an id that does not exist.
func TestIsolation_ForeignIDsAreNotFound(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		replica := env.Start()
		mine, theirs := newFilledCompany(t, env, "mine"), newFilledCompany(t, env, "theirs")
		for _, o := range replica.Registry().All() {
			for _, path := range foreignPaths(o, mine, theirs) {
				_, body := o.Example()
				answer := replica.As(env.Key(mine.company, access.All)).Do(o.Method, path, payload(o, body))
				wantNotFound(t, o, path, answer)
			}
		}
		assertUntouched(t, env, replica, theirs)
	})
}

// foreignPaths are the operation's paths with another company's ids.
func foreignPaths(o *operation.Operation, mine, theirs filledCompany) (paths []string) {
	ids := map[string][]string{
		"assetId":  forms(mine.company, theirs.company, resource.Assets, theirs.asset.ID),
		"policyId": forms(mine.company, theirs.company, resource.Policies, theirs.policy.ID),
		// An asset's id where a policy's belongs, and the reverse, is not found either.
		"proposalId": {"prp_" + theirs.policy.ID, resource.NewProposalID()},
	}
	for _, argument := range o.PathArgs() {
		for _, id := range ids[argument] {
			paths = append(paths, strings.Replace(o.Path, "{"+argument+"}", id, 1))
		}
	}
	return paths
}

func payload(o *operation.Operation, example []byte) any {
	if !o.HasBody() {
		return nil
	}
	return string(example)
}

func wantNotFound(t *testing.T, o *operation.Operation, path string, got servertest.Answer) {
	t.Helper()
	want := spec.Answers[resttest.FamilyOf(o)]["not_found"]
	members := slices.Sorted(maps.Keys(got.Members(t)))
	wanted := strings.Fields(want.Members)
	slices.Sort(wanted)
	if got.Status != want.Status || !slices.Equal(members, wanted) {
		t.Errorf("%s %s: %d with %v, want %d with %v: %s", o.Method, path, got.Status, members, want.Status, wanted, got.Body)
	}
	for _, secret := range []string{"theirs"} {
		detail, _ := got.Members(t)["detail"].(string)
		if strings.Contains(detail, secret) {
			t.Errorf("%s %s tells about the other company: %s", o.Method, path, got.Body)
		}
	}
}

// Another company's policy in a body is not found, whatever its form.
func TestIsolation_ForeignPoliciesInBodies(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica := env.Start()
	mine, theirs := newFilledCompany(t, env, "mine"), newFilledCompany(t, env, "theirs")
	for _, id := range []string{theirs.policy.ID, theirs.policy.PathName(), resource.Of("mine", resource.Policies, theirs.policy.ID)} {
		client := replica.As(env.Key(mine.company, access.All))
		got := client.Post("/assets/"+mine.asset.ID+"/commands/change-policy", map[string]string{"policyId": id})
		if got.Status != 404 || got.Members(t)["code"] != "not_found" {
			t.Errorf("change-policy to %s: %d %s", id, got.Status, got.Body)
		}
	}
}

// Lists and counts hold one's own alone, whatever they are filtered by.
func TestIsolation_Lists(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		replica := env.Start()
		mine, theirs := newFilledCompany(t, env, "mine"), newFilledCompany(t, env, "theirs")
		client := replica.As(env.Key(mine.company, access.All))
		for path, want := range map[string]int{
			"/assets": 1, "/policies": 1, "/assets?status=PENDING": 1, "/assets?status=ACTIVE": 0,
			"/assets?policy=" + url.QueryEscape(theirs.policy.PathName()): 0,
			"/assets?policy=" + theirs.policy.ID:                          0,
		} {
			t.Run(path, func(t *testing.T) {
				var page struct {
					Content       []json.RawMessage
					TotalElements int
				}
				answer := client.Get(path).Want(t, 200)
				answer.JSON(t, &page)
				if len(page.Content) != want || page.TotalElements != want || strings.Contains(string(answer.Body), "theirs") {
					t.Errorf("%s holds %d of %d: %s", path, len(page.Content), page.TotalElements, answer.Body)
				}
			})
		}
	})
}

// assertUntouched makes sure that nothing of what was tried had an effect.
func assertUntouched(t *testing.T, env *servertest.Env, replica *servertest.Replica, of filledCompany) {
	t.Helper()
	client := replica.As(env.Key(of.company, access.All))
	var history struct{ TotalElements int }
	client.Get("/assets/"+of.asset.ID+"/commands").Want(t, 200).JSON(t, &history)
	if history.TotalElements != 0 {
		t.Errorf("the other company's asset has %d commands", history.TotalElements)
	}
	if n := env.Calls(""); n != 0 {
		t.Errorf("%d calls reached the platform", n)
	}
}
