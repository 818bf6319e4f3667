package frame

import (
	"fmt"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/validate"
)

// Sentence makes a fault's detail a sentence.
func Sentence(detail string) string { return phrase.Sentence(detail) }

// maxPlain bounds a name on a page, in characters.
const maxPlain = 300

// Plain is a text of a device, a person or a vendor without control, format and
// bidirectional characters: it cannot change the order of what is around it.
func Plain(text string) string { return validate.Clean(text, maxPlain) }

// Count is a number and its noun.
func Count[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Number(n) + " " + many
}

// AnyOf names the first three people of a list as a sentence does: "Ada, Bea or Cem".
func AnyOf[T any](people []T, name func(T) string) string {
	var names []string
	for _, one := range people[:min(3, len(people))] {
		names = append(names, Plain(name(one)))
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// Word is a value of the API for people: ENABLED_WITH_PASSWORD is Enabled with password.
func Word(value string) string {
	text := strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(value, "_", " ")), "wifi", "Wi-Fi")
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// SettingWord is a value of the setting with a label for people: a name stays as it is.
func SettingWord(label, value string) string {
	if label == "Name" {
		return Plain(value)
	}
	return Word(value)
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
