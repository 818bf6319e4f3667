package ops

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/musterhq/muster/internal/apk"
	"github.com/musterhq/muster/internal/config"
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

// OpenApp returns the Android app that the service hands out: the operator's own,
// or that of a release; nil: none.
func OpenApp(settings config.Service) (*apk.App, error) {
	if settings.AgentAPK == "" {
		return apk.Embedded()
	}
	app, err := apk.Open(settings.AgentAPK)
	if err != nil {
		return nil, fmt.Errorf("cannot serve the app of MUSTER_AGENT_APK: %w", err)
	}
	return app, nil
}

// app checks the Android app. The service does not start with one that it cannot use.
func (d *doctor) app() {
	const check = "Android app"
	switch app, err := OpenApp(d.settings); {
	case err != nil:
		d.note(check, Failed, err.Error(), "name an app that apksigner signed and this user may read (make app), or leave "+
			"MUSTER_AGENT_APK empty")
	case app == nil:
		d.note(check, Fine, "none: the QR codes of own-agent policies install nothing", "")
	default:
		d.note(check, Fine, "signed by "+app.Signer, "")
	}
}
