//go:build !muster_app

package apk

// Embedded returns the app that this program holds; nil: none, as in every build
// but releases.
func Embedded() (*App, error) { return nil, nil }
