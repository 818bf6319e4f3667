package frame

import (
	"fmt"
	"strings"
	"time"
)

// left is what remains until an instant.
func left(now, to time.Time, over string) string {
	d := to.Sub(now)
	if d <= 0 {
		return over
	}
	if d >= time.Hour {
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

func ariaSort(l List, field string) string {
	switch {
	case l.Sort != field:
		return "none"
	case l.Descending:
		return "descending"
	default:
		return "ascending"
	}
}

// CurlText is a call of the API for a shell.
func CurlText(publicURL, method, path, body string) string {
	var b strings.Builder
	b.WriteString(`curl -H "X-API-Key: $MUSTER_API_KEY"`)
	if method != "GET" {
		b.WriteString(" -X " + method)
	}
	if body != "" {
		b.WriteString(" -H 'Content-Type: application/json' -d " + shellQuote(body))
	}
	return b.String() + " " + shellQuote(publicURL+"/api/v1"+path)
}

func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
