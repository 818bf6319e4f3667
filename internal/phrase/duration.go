package phrase

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

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
