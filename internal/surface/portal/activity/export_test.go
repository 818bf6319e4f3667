package activity

import (
	"io"
	"net/http"
	"time"
)

// ExportPause is for how long a browser may take nothing of an export.
const ExportPause = exportPause

// Renewing is what an export writes to.
func Renewing(to http.ResponseWriter, now func() time.Time) io.Writer {
	return renewing{to, http.NewResponseController(to), now}
}
