package policy

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Empty is the document of a policy that sets nothing.
func Empty(t Type) json.RawMessage {
	if t == Agent {
		return json.RawMessage(`{"settings":{}}`)
	}
	return json.RawMessage(`{}`)
}

// CheckDocument says whether a document may be saved, in words for people. A
// PLATFORM document is checked against the vendor's schema; an AGENT document
// holds settings of the catalog with allowed values.
func CheckDocument(checker DocumentChecker, t Type, document json.RawMessage) error {
	if len(document) > MaxDocumentBytes {
		return fmt.Errorf("the document has %d bytes, at most %d are kept", len(document), MaxDocumentBytes)
	}
	o, err := parseObject(document)
	if err != nil {
		return fmt.Errorf("cannot read the document: %w", err)
	}
	if t == Platform {
		return checker.CheckDocument(document)
	}
	for _, m := range o.members {
		if m.name == systemUpdate {
			if _, err := ParseSystemUpdate(m.value); err != nil {
				return err
			}
			continue
		}
		if m.name != "settings" || m.open() == nil {
			return fmt.Errorf("the document of an AGENT policy holds the objects settings and systemUpdate, not %q", m.name)
		}
		for _, s := range m.open().members {
			r := find(s.name)
			if r == nil {
				return fmt.Errorf("there is no setting %q", s.name)
			}
			if r.readAgent(o) == Custom {
				return fmt.Errorf("setting %s must be one of %s", r.id, strings.Join(r.setting().Allowed, ", "))
			}
		}
	}
	return nil
}

// withReports turns on every report that a new PLATFORM document does not
// speak of.
func withReports(t Type, document json.RawMessage) (json.RawMessage, error) {
	if t != Platform {
		return document, nil
	}
	o, err := parseObject(document)
	if err != nil {
		return nil, err
	}
	for i := range catalog {
		r := &catalog[i]
		if r.group != "REPORTING" || read(o, t, r) != NotSet {
			continue
		}
		value := "ENABLED"
		if r.kind == reportLevel {
			value = "INSTALLED_APPS"
		}
		write(o, t, r, value)
	}
	return json.RawMessage(o.text()), nil
}

// App is an entry of a PLATFORM document's apps, for people to look at. Values
// are the vendor's; the document has the rest.
type App struct {
	PackageName             string `json:"packageName"`
	InstallType             string `json:"installType"`             // such as FORCE_INSTALLED, AVAILABLE, BLOCKED
	DefaultPermissionPolicy string `json:"defaultPermissionPolicy"` // empty: the policy's
}

// Apps returns the apps of a document in its order; an AGENT document has none.
func Apps(document json.RawMessage) ([]App, error) {
	var d struct {
		Applications []App `json:"applications"`
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, fmt.Errorf("cannot read the policy's apps: %w", err)
	}
	return d.Applications, nil
}

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
