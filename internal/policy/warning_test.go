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
		for _, value := range s.Allowed {
			text := policy.Warning(s.ID, value)
			if text != "" {
				warned = append(warned, s.ID+"="+value)
			}
			if policy.Lost(s.Label, value) != "" && text == "" {
				t.Errorf("%s=%s loses something and has no warning", s.ID, value)
			}
		}
		if policy.Warning(s.ID, policy.NotSet) != "" || policy.Warning(s.ID, policy.Custom) != "" {
			t.Errorf("%s warns of no value", s.ID)
		}
	}
	if want := []string{"VENDOR_STORE_MODE=WHITELIST", "DATA_ROAMING=BLOCK", "CONFIGURE_WIFI=BLOCK", "WIFI_STATE=DISABLED",
		"MINIMUM_WIFI_SECURITY=PERSONAL_NETWORK"}; !slices.Equal(warned, want) {
		t.Errorf("got %v, want %v", warned, want)
	}
	if got := policy.Warning("NO_SUCH", "X"); got != "" {
		t.Error(got)
	}
}
