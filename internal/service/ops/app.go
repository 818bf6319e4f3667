package ops

import (
	"fmt"

	"github.com/musterhq/muster/internal/apk"
	"github.com/musterhq/muster/internal/config"
)

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
