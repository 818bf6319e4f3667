package policy_test

import (
	"testing"

	"github.com/musterhq/muster/internal/policy"
)

// The warning before data is lost belongs to the setting, whatever its label.
func TestLost(t *testing.T) {
	t.Parallel()
	for id, value := range map[string]string{"VENDOR_STORE_MODE": "WHITELIST", "CONFIGURE_WIFI": "BLOCK"} {
		t.Run(id, func(t *testing.T) {
			s, known := policy.Lookup(id)
			if !known || policy.Lost(s.Label, value) == "" {
				t.Errorf("%s = %s (%q) is not said to lose anything", id, value, s.Label)
			}
		})
	}
	for _, s := range policy.Catalog() {
		for _, value := range append(s.Allowed, "", policy.Custom) {
			lossy := s.ID == "VENDOR_STORE_MODE" && value == "WHITELIST" || s.ID == "CONFIGURE_WIFI" && value == "BLOCK"
			if (policy.Lost(s.Label, value) != "") != lossy {
				t.Errorf("%s = %q loses %q", s.ID, value, policy.Lost(s.Label, value))
			}
		}
	}
}
