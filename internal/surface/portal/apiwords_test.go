package portal_test

import (
	"regexp"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/resource"
)

// What a device cannot take, and what is not found, is said without the API's words.
func TestPages_SayNoWordsOfTheAPI(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a, admin := o.device(t, "d1", "S1", "Phone", o.Policy), o.person(t, account.Admin)
	imported := asset.Asset{ID: resource.NewID(), CompanyID: o.Company.ID, CompanySlug: "acme", Identification: "Kept", CreatedAt: o.Now()}
	if err := o.Admin().Assets.ImportAssets(t.Context(), []asset.Asset{imported}); err != nil {
		t.Fatal(err)
	}
	apiWords := regexp.MustCompile(`pathName|list_logs|SYNCHRONIZING|LOCK_DEVICE|NOTIFICATION_MESSAGE`)
	for path, status := range map[string]int{"/devices/" + imported.ID: 200, "/devices/" + resource.NewID(): 404,
		"/policies/" + resource.NewID(): 404, "/devices/" + a.ID + "/logs/" + resource.NewID(): 404} {
		text := o.get(t, admin, path, status)
		if word := apiWords.FindString(text); word != "" {
			t.Errorf("%s says %s", path, word)
		}
	}
}
