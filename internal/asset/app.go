package asset

import "time"

// App is an app that a device reports, in its own words.
type App struct {
	Package string `json:"package"`
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	Source  string `json:"source,omitempty"` // such as INSTALLED_FROM_PLAY_STORE
	Removed bool   `json:"removed,omitempty"`
}

// MaxApps is how many apps of a device are kept.
const MaxApps = 1000

// Inventory is the apps of a device, by package, since they last changed. A
// device that does not report its apps has none, and no time.
type Inventory struct {
	Apps  []App
	Since time.Time
}
