package ops

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// Build is what is known of the program that runs.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// ReadBuild reads what the go command stamped. linked is a version that the linker set,
// where the stamp says less; empty: none.
func ReadBuild(linked string) Build {
	b := Build{Version: cmp.Or(linked, "(devel)"), Revision: "unknown", Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = cmp.Or(linked, info.Main.Version, b.Version)
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Revision = setting.Value
		case "vcs.modified":
			b.Modified = setting.Value == "true"
		}
	}
	return b
}
