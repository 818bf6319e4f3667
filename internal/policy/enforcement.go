package policy

import "encoding/json"

// EnforcementRule says after how many days of non-compliance the platform blocks a device,
// and after how many it erases it.
type EnforcementRule struct{ BlockAfterDays, WipeAfterDays int64 }

// Enforcement returns the enforcement rules of a PLATFORM policy's document; none if it has
// none or cannot be read.
func Enforcement(document json.RawMessage) []EnforcementRule {
	var d struct {
		Rules []struct {
			Block struct {
				Days int64 `json:"blockAfterDays"`
			} `json:"blockAction"`
			Wipe struct {
				Days int64 `json:"wipeAfterDays"`
			} `json:"wipeAction"`
		} `json:"policyEnforcementRules"`
	}
	if json.Unmarshal(document, &d) != nil {
		return nil
	}
	var rules []EnforcementRule
	for _, r := range d.Rules {
		rules = append(rules, EnforcementRule{r.Block.Days, r.Wipe.Days})
	}
	return rules
}
