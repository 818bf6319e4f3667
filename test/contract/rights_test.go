package contract_test

import (
	"net/http"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
)

// A person who is limited to some policies makes keys that are limited to the
// same, and none for provisioning (contract 5.3).
func TestKeys_OfALimitedUser(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		replica := env.Start()
		acme := env.Company("acme", servertest.Everything())
		mine, other := env.Policy(acme, "Mine", policy.Platform), env.Policy(acme, "Other", policy.Platform)
		ada := env.Browser(acme, account.Admin, mine.ID)
		keys := apikey.Keys{Store: env.Admin().Keys, Now: env.Now}
		if _, _, err := keys.CreateForUser(t.Context(), ada.User,
			apikey.Request{Name: "qr", Permissions: access.Provisioning | access.PoliciesRead}); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("a key for provisioning: %v", err)
		}
		_, text, err := keys.CreateForUser(t.Context(), ada.User,
			apikey.Request{Name: "changes", Permissions: access.PoliciesWrite | access.PoliciesRead})
		if err != nil {
			t.Fatal(err)
		}
		client := replica.As(text)
		change := map[string]any{"changes": []any{map[string]string{"setting": "CAMERA", "value": "BLOCK"}}}
		client.Post("/policies/"+mine.ID+"/changes", change).Want(t, http.StatusCreated)
		client.Post("/policies/"+other.ID+"/changes", change).Want(t, http.StatusNotFound)
		client.Get("/policies/"+other.ID+"/settings").Want(t, http.StatusNotFound)
		var page struct{ TotalElements int }
		if client.Get("/policies").Want(t, http.StatusOK).JSON(t, &page); page.TotalElements != 1 {
			t.Errorf("%d policies are listed", page.TotalElements)
		}
		kept, err := env.Admin().Keys.Keys(t.Context(), acme.ID)
		if err != nil || len(kept) != 1 || len(kept[0].Policies) != 1 || kept[0].Policies[0] != mine.ID {
			t.Errorf("kept %+v, %v", kept, err)
		}
	})
}
