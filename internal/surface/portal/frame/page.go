package frame

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/slice"
	"github.com/musterhq/muster/internal/validate"
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

func roleOf(tone Tone) string { return Either(tone == Bad, "alert", "status") }

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

// Sentence makes a fault's detail a sentence.
func Sentence(detail string) string { return phrase.Sentence(detail) }

// maxPlain bounds a name on a page, in characters.
const maxPlain = 300

// Plain is a text of a device, a person or a vendor without control, format and
// bidirectional characters: it cannot change the order of what is around it.
func Plain(text string) string { return validate.Clean(text, maxPlain) }

// Either is yes if the condition holds, else no. Both are evaluated.
func Either[T any](holds bool, yes, no T) T { return phrase.Either(holds, yes, no) }

// Count is a number and its noun.
func Count[N int | int64](n N, one, many string) string {
	return Either(n == 1, "1 "+one, Number(n)+" "+many)
}

// Picture is the address of a PNG picture that holds the picture itself.
func Picture(png []byte) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(png)
}

// Joined joins the texts that are not empty.
func Joined(separator string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), separator)
}

// AnyOf names the first three people of a list as a sentence does: "Ada, Bea or Cem".
func AnyOf[T any](people []T, name func(T) string) string {
	names := slice.Map(people[:min(3, len(people))], func(one T) string { return Plain(name(one)) })
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// Word is a value of the API for people: ENABLED_WITH_PASSWORD is Enabled with password.
func Word(value string) string {
	text := strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(value, "_", " ")), "wifi", "Wi-Fi")
	return phrase.UpperFirst(text)
}

// SettingWord is a value of the setting with a label for people: a name stays as it is.
func SettingWord(label, value string) string {
	return Either(label == "Name", Plain(value), Word(value))
}

// Number groups digits: 1,204,881.
func Number[N int | int64](n N) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Since is how long ago an instant was, in a few letters.
func Since(now, at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	d := now.Sub(at)
	if d <= -time.Minute { // what begins in a day does not begin "in 23 h" a second later
		return "in " + span(-d+time.Minute-time.Second)
	}
	if d < 0 {
		return "in " + span(-d)
	}
	if d < 5*time.Second {
		return "just now"
	}
	return span(d) + " ago"
}

func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}

// Exact is an instant for people who need to know, in UTC.
func Exact(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 UTC") }

// Machine is an instant for scripts.
func Machine(at time.Time) string { return at.UTC().Format(time.RFC3339) }
