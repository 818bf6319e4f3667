package contract_test

import (
	"crypto/sha256"
	"encoding/hex"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/signature"
)

// The pages on which a person decides about a policy, and the policy's own, show its
// document in the form that is hashed: who copies the text can compute the hash.
func TestDecisionPages_ShowWhatIsHashed(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	tenant, replica := authorizing(t, env)
	env.CLI(new(any), "company", "set", "acme", "--apply-approval", "all")
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	client, ada := tenant.Client(replica, access.All), newDecider(t, env, replica, tenant.Company, account.Manager)
	servertest.AwaitStatus(t, tenant, client, device.AssetID, "ACTIVE")
	office, err := env.Admin().Policies.Create(t.Context(), policy.New{CompanyID: tenant.Company.ID, CompanySlug: "acme", Name: "Office",
		Type:    policy.Platform,
		Changes: []policy.Change{{Setting: "CONFIGURE_WIFI", Value: "BLOCK"}, {Setting: "CAMERA", Value: "BLOCK"}}},
		policy.Author{Kind: string(access.System), ID: "test", Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if signature.IsCanonical(office.Document) {
		t.Fatal("the document is stored in the form that is hashed: this test shows nothing")
	}
	proposed := client.Post("/policies/"+tenant.Policy.ID+"/changes", map[string]any{"changes": change("CAMERA", "BLOCK")}).Want(t, 201).
		Members(t)
	moved := awaitsPerson(t, client.Post("/assets/"+device.AssetID+"/commands/change-policy", map[string]any{"policyId": office.ID}))
	for address, hashes := range map[string]int{proposed["approval"].(map[string]any)["url"].(string): 1, moved: 2} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		page := ada.Get(u.Path).Want(t, 200).Body
		shown := regexp.MustCompile(`<code>(.*?)</code></pre>`).FindAllStringSubmatch(page, -1)
		if len(shown) != hashes {
			t.Errorf("%s shows %d documents, want %d", u.Path, len(shown), hashes)
		}
		for _, text := range shown {
			sum := sha256.Sum256([]byte(html.UnescapeString(text[1])))
			if !strings.Contains(page, hex.EncodeToString(sum[:])) {
				t.Errorf("%s does not have the hash of the document that it shows: %s", u.Path, text[1])
			}
		}
	}
	page := ada.Get("/policies/"+office.ID+"/json").Want(t, 200).Body
	if signed := ada.Get(strings.TrimPrefix(moved, replica.PublicURL())).Body; !strings.Contains(signed, hashOf.FindString(page)) {
		t.Errorf("the policy's page has the hash %s, the decision another", hashOf.FindString(page))
	}
}

var hashOf = regexp.MustCompile(`[0-9a-f]{64}`)
