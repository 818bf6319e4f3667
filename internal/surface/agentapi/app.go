package agentapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/surface/web"
)

// App serves the device-owner app that a QR code installs. Android's download asks
// without credentials and wants the length.
func App(data []byte) http.Handler {
	sum := sha256.Sum256(data)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.android.package-archive")
		w.Header().Set("Content-Disposition", `attachment; filename="muster-agent.apk"`)
		w.Header().Set("ETag", tag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	})
}

// NoApp answers in its place where the service has no app.
func NoApp(log *slog.Logger) http.Handler {
	page := web.Notice("No device-owner app here", "This service does not ship the Android app that a QR code installs: its operator sets MUSTER_AGENT_APK. "+
		"Devices whose system image holds muster-agent enroll with the token that is inside the code.", "")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		web.Answer(w, r, log, http.StatusNotFound, page)
	})
}
