package servertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/resource"
)

// UniqueSlug is a slug that no other company has.
func UniqueSlug() string { return "c-" + strings.ToLower(resource.NewID()[:12]) }

// LockPath is the path that locks a device.
func LockPath(d Device) string { return "/assets/" + d.AssetID + "/commands/lock" }

// AwaitStatus waits until an asset has a status.
func AwaitStatus(t *testing.T, tenant *Tenant, client Client, assetID, status string) {
	t.Helper()
	tenant.Eventually("asset "+assetID+" becomes "+status, func() error {
		var asset struct{ Status string }
		client.Get("/assets/"+assetID).Want(t, 200).JSON(t, &asset)
		if asset.Status != status {
			return fmt.Errorf("it is %s", asset.Status)
		}
		return nil
	})
}

// FiveMembers checks that an entry of the history always has its five members, and says
// nothing of who sent the command (contract 1.6, 2.3).
func FiveMembers(t *testing.T, client Client, assetID string) {
	t.Helper()
	var page struct{ Content []map[string]json.RawMessage }
	client.Get("/assets/"+assetID+"/commands").Want(t, 200).JSON(t, &page)
	for _, entry := range page.Content {
		if got := slices.Sorted(maps.Keys(entry)); strings.Join(got, " ") != "createdAt feedbackAt outcome status type" {
			t.Errorf("an entry of the history has %v", got)
		}
	}
}

// Sorted sorts words that spaces separate.
func Sorted(words string) string {
	all := strings.Fields(words)
	slices.Sort(all)
	return strings.Join(all, " ")
}

// Fetch gets a page without credentials, and returns its status and body.
func Fetch(t *testing.T, url string) (int, string) {
	t.Helper()
	answer := Send(t, http.MethodGet, url, "")
	return answer.Status, string(answer.Body)
}

// Send makes a request without cookies. Headers are names and values in turn.
func Send(tb testing.TB, method, url, body string, headers ...string) Answer {
	tb.Helper()
	return answered(tb, func() client.Page {
		return client.NewBrowser("").Send(tb.Context(), method, url, strings.NewReader(body), headers...)
	})
}
