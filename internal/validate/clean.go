package validate

import (
	"strings"
	"unicode"
)

// Clean makes text that a device or a vendor supplied fit to be kept and
// shown: valid UTF-8, white space as single spaces, no control, format or
// bidirectional characters, no outer spaces, at most limit characters.
func Clean(text string, limit int) string {
	var out strings.Builder
	kept, space := 0, false
	for _, r := range text {
		if unicode.IsSpace(r) {
			space = true
			continue
		}
		if !unicode.IsPrint(r) { // U+FFFD for broken bytes prints
			continue
		}
		if space && kept > 0 {
			if kept+1 >= limit {
				break
			}
			out.WriteByte(' ')
			kept++
		}
		if kept >= limit {
			break
		}
		space = false
		out.WriteRune(r)
		kept++
	}
	return out.String()
}
