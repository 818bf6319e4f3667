package policy_test

import (
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/policy"
)

// TestWarning_IsDeclared: warnings name values that exist, and what is lost for good
// has one.
func TestWarning_IsDeclared(t *testing.T) {
	t.Parallel()
	var warned []string
	for _, s := range policy.Catalog() {
		for _, value := range append(slices.Clone(s.Allowed), policy.NotSet, policy.Custom) {
			text := policy.Warning(s.ID, value)
			if text != "" {
				warned = append(warned, s.ID+"="+value)
			}
			if policy.Lost(s.Label, value) != "" && text == "" {
				t.Errorf("%s=%s loses something and has no warning", s.ID, value)
			}
		}
	}
	if want := []string{"VENDOR_STORE_MODE=WHITELIST", "VENDOR_STORE_MODE=NOT_SET", "DATA_ROAMING=BLOCK", "CONFIGURE_WIFI=BLOCK",
		"WIFI_STATE=DISABLED", "MINIMUM_WIFI_SECURITY=PERSONAL_NETWORK", "MINIMUM_WIFI_SECURITY=CUSTOM"}; !slices.Equal(warned, want) {
		t.Errorf("got %v, want %v", warned, want)
	}
	if got := policy.Warning("NO_SUCH", "X"); got != "" {
		t.Error(got)
	}
}

// A store mode that is left out is the list of allowed apps for the platform: to leave it out uninstalls the others.
func TestWarning_StoreModeLeftOut(t *testing.T) {
	t.Parallel()
	d, err := policy.CompareDocuments(policy.Platform, []byte(`{"playStoreMode":"BLACKLIST"}`), []byte(`{}`))
	if err != nil || !d.Risky() || len(policy.Warnings(d.Moves)) != 1 || policy.Lost("Store mode", policy.NotSet) == "" {
		t.Errorf("%+v, %v: want a risk, a warning and a loss", d, err)
	}
}
