package policy

import (
	"encoding/json"
	"fmt"
)

// App is an entry of a PLATFORM document's apps, for people to look at. Values
// are the vendor's; the document has the rest.
type App struct {
	PackageName             string `json:"packageName"`
	InstallType             string `json:"installType"`             // such as FORCE_INSTALLED, AVAILABLE, BLOCKED
	DefaultPermissionPolicy string `json:"defaultPermissionPolicy"` // empty: the policy's
	AutoUpdateMode          string `json:"autoUpdateMode"`
	Disabled                bool   `json:"disabled"`
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
