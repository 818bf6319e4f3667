package discovery

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"time"
)

var (
	durationForm = regexp.MustCompile(`^-?[0-9]{1,12}(\.[0-9]{1,9})?s$`)
	maskForm     = regexp.MustCompile(`^([a-z][A-Za-z0-9]*(\.[a-z][A-Za-z0-9]*)*(,|$))*$`)
)

// maxDurationSeconds is what the vendor's duration type can hold: 10,000 years.
const maxDurationSeconds = 315_576_000_000

// checkFormat checks text against a discovery format. It gives the vendor's
// reason where the vendor gives one.
func checkFormat(text, format string) (why string, ok bool) {
	switch format {
	case "int64":
		_, err := strconv.ParseInt(text, 10, 64)
		return "", err == nil
	case "uint64":
		_, err := strconv.ParseUint(text, 10, 64)
		return "", err == nil
	case "google-duration":
		if _, err := ParseDuration(text); err != nil {
			return err.Error(), false
		}
		return "", true
	case "google-datetime":
		_, err := time.Parse(time.RFC3339Nano, text)
		return "Illegal timestamp format; timestamps must be RFC 3339", err == nil
	case "google-fieldmask":
		return "", maskForm.MatchString(text)
	case "byte":
		return "Base64 decoding failed", isBase64(text)
	default:
		return "", true
	}
}

// ParseDuration reads the vendor's form of a duration: seconds with at most nine
// decimals and the suffix "s", as in "86400s" or "0.5s". Durations beyond what
// [time.Duration] can hold (about 292 years) are cut down to it: the vendor
// allows 10,000 years.
func ParseDuration(text string) (time.Duration, error) {
	if text == "" || text[len(text)-1] != 's' {
		return 0, fmt.Errorf("Illegal duration format; duration must end with 's'") //nolint:staticcheck // the vendor's words
	}
	if !durationForm.MatchString(text) {
		return 0, fmt.Errorf("Illegal duration format; not a decimal number of seconds") //nolint:staticcheck // the vendor's words
	}
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	seconds, err := strconv.ParseFloat(text[:len(text)-1], 64)
	switch {
	case err != nil || math.Abs(seconds) > maxDurationSeconds:
		return 0, fmt.Errorf("Duration value exceeds limits") //nolint:staticcheck // the vendor's words
	case seconds < 0:
		return math.MinInt64, nil
	}
	return math.MaxInt64, nil
}

// FormatDuration writes a duration in the vendor's form.
func FormatDuration(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
}

// canonical returns the usual spelling of a value that the vendor's parser (proto3's JSON
// mapping) also accepts in another one:
//   - a number written as text;
//   - a 64-bit integer written as a number;
//   - an integer with an exponent or a fraction of zero;
//   - an enum's value written as its number. The document does not list the numbers: they are
//     assumed to follow its order.
//
// Every other value is returned as it is.
func (s *schema) canonical(value any) any {
	text, isText := value.(string)
	number, isNumber := value.(json.Number)
	switch {
	case s.Type == "integer" && isText && json.Valid([]byte(text)):
		return integer(json.Number(text))
	case s.Type == "integer" && isNumber:
		return integer(number)
	case s.Type == "number" && isText:
		if n, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) && json.Valid([]byte(text)) {
			return json.Number(text)
		}
	case s.Type == "string" && isNumber && (s.Format == "int64" || s.Format == "uint64"):
		return string(integer(number))
	case s.Type == "string" && isNumber && len(s.Enum) > 0:
		if n, err := strconv.Atoi(string(integer(number))); err == nil && n >= 0 && n < len(s.Enum) {
			return s.Enum[n]
		}
	}
	return value
}

// maxNumberText is the longest number, in characters, that integer converts.
const maxNumberText = 40

// integer writes a whole number without exponent and fraction. Other numbers, and those beyond
// 64 bits, are returned as they are.
func integer(number json.Number) json.Number {
	if len(number) > maxNumberText {
		return number
	}
	if f, err := number.Float64(); err != nil || math.Abs(f) > math.MaxUint64 {
		return number
	}
	if exact, ok := new(big.Rat).SetString(string(number)); ok && exact.IsInt() {
		return json.Number(exact.Num().String())
	}
	return number
}
