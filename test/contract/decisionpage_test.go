package contract_test

import (
	"errors"
	"html"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/poll"
)

// The page of a change shows how it went on after the decision, until each device has applied
// it; one that was declined is not said to have failed. Values are shown as words, with what
// is signed beside them, and a warning at its setting.
func TestDecisionPage_ShowsWhatHappened(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := authorizing(t, env)
		env.CLI(new(any), "company", "set", "acme", "--apply-approval", "all")
		tenant.Devices(replica, servertest.FullyManaged(), 2)
		client, ada := tenant.Client(replica, access.All), newDecider(t, env, replica, tenant.Company, account.Manager)
		propose := func(setting string) (apply, page string) {
			made := client.Post("/policies/"+tenant.Policy.ID+"/changes", map[string]any{"changes": change(setting, "BLOCK")}).Want(t, 201).
				Members(t)
			_, page, _ = strings.Cut(made["approval"].(map[string]any)["url"].(string), replica.PublicURL())
			return "/policy-proposals/" + made["proposalId"].(string) + "/apply", page
		}
		lacks := func(page string, wants ...string) error {
			body := html.UnescapeString(ada.Get(page).Want(t, 200).Body)
			for _, want := range wants {
				if !strings.Contains(body, want) {
					return errors.New(page + " does not say " + want)
				}
			}
			return nil
		}
		apply, page := propose("CAMERA")
		if err := lacks(page, "Needs approval", "2 devices have this policy", "Asked by", "Can be undone", ">Not set<", ">NOT_SET<",
			">Block<"); err != nil {
			t.Error(err)
		}
		ada.sends(ada.signs(t, page)).Want(t, 200)
		client.Post(apply, nil).Want(t, 200)
		poll.Until(t, "the devices apply the change", func() error {
			return lacks(page, ">Applied<", "Approved by ", "Applied as version 2", "2 of 2 devices have applied it")
		})
		_, page = propose("CONFIGURE_WIFI")
		body := ada.Get(page).Want(t, 200).Body
		if _, row, _ := strings.Cut(body, `<th scope="row">Configuring Wi-Fi networks`); !strings.Contains(row[:strings.Index(row,
			"</th>")], "cannot be reached") {
			t.Errorf("the warning is not at its setting: %.400s", row)
		}
		form := servertest.Page{Body: body[strings.LastIndex(body, "data-passkey"):]}
		ada.Post(page+"/decline", "token", form.Field(t, "token"), "answer", ada.key.Get(form.Options(t))).Want(t, 200)
		if err := lacks(page, ">Declined<", "Declined by "); err != nil {
			t.Error(err)
		}
		if err := lacks("/proposals", ">Declined<"); err != nil {
			t.Error(err)
		}
	})
}
