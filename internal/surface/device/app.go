package device

import (
	"log/slog"
	"net/http"

	"github.com/musterhq/muster/internal/surface/web"
)

// NoApp answers for the device-owner app that a QR code would install: it is
// not part of this release.
func NoApp(log *slog.Logger) http.Handler {
	page := web.Notice("No device-owner app here", "This service does not ship the Android app that a QR code installs. "+
		"Devices whose system image holds muster-agent enrol with the token that is inside the code.", "")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
		if err := page.Render(r.Context(), w); err != nil {
			log.DebugContext(r.Context(), "page broke off", "error", err)
		}
	})
}
