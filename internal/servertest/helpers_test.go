package servertest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/surface/rest/resttest"
)

// bodies is a valid body of each command, by the last segment of its path.
func bodies() map[string]any {
	return map[string]any{
		"lock": nil, "found": nil, "status-report": nil, "location-update": nil, "sync-policy": nil, "reboot": nil,
		"shutdown": nil, "wipe": nil, "reset-screen-lock": nil, "relinquish-ownership": nil,
		"lost-mode":                   map[string]string{"message": "Please call"},
		"message":                     map[string]string{"title": "Hello", "body": "World"},
		"launch-app":                  map[string]string{"packageName": "com.example.app"},
		"clear-app-data":              map[string]any{"packageNames": []string{"com.example.app"}},
		"change-policy":               map[string]string{"policyId": "none"},
		"change-screen-lock-password": map[string]string{"newPassword": "correct horse 42"},
	}
}

func familyOf(path string) resttest.Family {
	if slices.Contains([]string{"lock", "lost-mode", "found", "message"}, path) {
		return resttest.FirstFour
	}
	return resttest.Commands
}

// newSpare makes an asset that is not enrolled.
func newSpare(t *testing.T, env *servertest.Env, c company.Company) string {
	t.Helper()
	spare := asset.Asset{ID: resource.NewID(), CompanyID: c.ID, CompanySlug: c.Slug, Identification: "Spare", Status: asset.Pending, CreatedAt: env.Now()}
	if err := env.Desk().Assets.ImportAssets(t.Context(), []asset.Asset{spare}); err != nil {
		t.Fatal(err)
	}
	return spare.ID
}

func sorted(words string) string {
	all := strings.Fields(words)
	slices.Sort(all)
	return strings.Join(all, " ")
}

func errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }
