package frame

import (
	"cmp"
	"strings"
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
		return "It takes the permission to " + p.Right + ", which you do not have. " + p.Granters + " can grant it."
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
