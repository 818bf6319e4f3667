package contract_test

import (
	"testing"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
)

// newSpare makes an asset that is not enrolled.
func newSpare(t *testing.T, env *servertest.Env, c company.Company) string {
	t.Helper()
	spare := asset.Asset{ID: resource.NewID(), CompanyID: c.ID, CompanySlug: c.Slug, Identification: "Spare", Status: asset.Pending,
		CreatedAt: env.Now()}
	if err := env.Admin().Assets.ImportAssets(t.Context(), []asset.Asset{spare}); err != nil {
		t.Fatal(err)
	}
	return spare.ID
}
