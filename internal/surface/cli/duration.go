package cli

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
)

// Durations lets every flag and setting that takes a duration take days, too: 30d, or
// 1d12h.
func Durations() kong.Option {
	return kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
			return err
		}
		d, err := ParseDuration(text)
		if err != nil {
			return err
		}
		target.SetInt(int64(d))
		return nil
	}))
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
