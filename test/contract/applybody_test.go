package contract_test

import (
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/servertest"
)

// All that apply may be given is optional: with no body at all it is as with
// an empty one (contract 4.3).
func TestApply_BodyIsOptional(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := env.NewTenant("acme"), env.Start()
		client := tenant.Client(replica, access.All)
		var made struct{ ProposalID string }
		client.Post("/policies/"+tenant.Policy.ID+"/changes",
			map[string]any{"changes": []any{map[string]any{"setting": "CAMERA", "value": "BLOCK"}}}).
			Want(t, 201).JSON(t, &made)
		client.Post("/policy-proposals/"+made.ProposalID+"/apply", nil).Want(t, 200)
	})
}
