// Package phrase writes numbers with their nouns, durations and sentences in English.
package phrase

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// UpperFirst writes the first letter of ASCII text as a capital.
func UpperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// Sentence makes a phrase a sentence: with a capital, and a stop at its end. An e-mail address
// at its beginning stays as it is.
func Sentence(phrase string) string {
	first, size := utf8.DecodeRuneInString(phrase)
	if size == 0 {
		return ""
	}
	if word, _, _ := strings.Cut(phrase, " "); !strings.Contains(word, "@") {
		phrase = string(unicode.ToUpper(first)) + phrase[size:]
	}
	if !strings.ContainsRune(".!?", rune(phrase[len(phrase)-1])) {
		phrase += "."
	}
	return phrase
}

// Count is a number and its noun, such as 1 entry or 3 entries.
func Count[N int | int64](n N, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(int64(n), 10) + " " + more
}

// List lists words as a sentence does: a, b and c.
func List(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// First returns the texts of the first entries, at most most of them, and a last text that counts the others.
func First[T any](all []T, most int, text func(T) string) []string {
	var texts []string
	for _, one := range all[:min(len(all), most)] {
		texts = append(texts, text(one))
	}
	if more := len(all) - most; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return texts
}

// Either is yes if the condition holds, else no. Both are evaluated.
func Either[T any](holds bool, yes, no T) T {
	if holds {
		return yes
	}
	return no
}

// InWords is a duration in its largest whole unit, such as 30 days or 90 minutes.
func InWords(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if n := d / unit.length; n != 0 && d%unit.length == 0 {
			return Count(int64(n), unit.name, unit.name+"s")
		}
	}
	return d.String()
}

// Span shows a duration with days of 24 hours and without units that are zero: 30d, 1d12h,
// 90s as 1m30s. ParseDuration of the command line reads it.
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	days, rest := d/day, d%day
	if days == 0 {
		return trimmed(rest)
	}
	text := strconv.FormatInt(int64(days), 10) + "d"
	if rest != 0 {
		text += trimmed(rest.Abs())
	}
	return text
}

var dayUnit = regexp.MustCompile(`(\d+(?:\.\d+)?)d`)

// ParseDuration is time.ParseDuration with days of 24 hours.
func ParseDuration(text string) (time.Duration, error) {
	inHours := dayUnit.ReplaceAllStringFunc(text, func(days string) string {
		n, _ := strconv.ParseFloat(days[:len(days)-1], 64) // the expression lets only numbers pass
		return strconv.FormatFloat(24*n, 'f', -1, 64) + "h"
	})
	d, err := time.ParseDuration(inHours)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 30d, 12h or 90m", text)
	}
	return d, nil
}

func trimmed(d time.Duration) string {
	text := d.String()
	if d%time.Minute == 0 && d != 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	if d%time.Hour == 0 && d != 0 {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
