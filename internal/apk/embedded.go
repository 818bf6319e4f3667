//go:build muster_app

package apk

import _ "embed"

// embedded is the app that scripts/release.sh built before this program.
//
//go:embed muster-agent.apk
var embedded []byte

// Embedded returns the app that this program holds.
func Embedded() (*App, error) { return whole(embedded) }
