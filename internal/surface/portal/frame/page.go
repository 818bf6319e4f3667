package frame

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/account"
)

// ManageCompany is here for templates.
const ManageCompany = account.ManageCompany

// Initial is a name's first letter.
func Initial(text string) string {
	first, size := utf8.DecodeRuneInString(strings.TrimSpace(text))
	if size == 0 || !unicode.IsGraphic(first) {
		return "?"
	}
	return string(unicode.ToUpper(first))
}

// Shortcuts are the keys and what they do. None destroys anything.
func Shortcuts() [][2]string {
	keys := [][2]string{{"⌘ K", "Search and commands (Ctrl K elsewhere)"}, {"/", "To the page's search field"}}
	for _, s := range Sections() {
		keys = append(keys, [2]string{"g " + s.Key, s.Name})
	}
	return append(keys, [2]string{"j k", "Next and previous row"}, [2]string{"x", "Select the row"},
		[2]string{"Enter", "Open the row"}, [2]string{"Esc", "Close"}, [2]string{"?", "This list"})
}

// problemText says what is wrong and who can help.
func problemText(p Problem) string {
	switch {
	case p.Right != "":
		return missingText(p.Right, p.Granters)
	case p.Granters != "":
		return p.Text + " Ask " + p.Granters + "."
	case p.Text == "":
		return "Take another way there: the navigation, or the search."
	default:
		return p.Text
	}
}

func iconOf(tone Tone) string {
	return cmp.Or(map[Tone]string{OK: "circle-check", Warn: "triangle-alert", Bad: "circle-alert"}[tone], "info")
}

func roleOf(tone Tone) string {
	if tone == Bad {
		return "alert"
	}
	return "status"
}

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
