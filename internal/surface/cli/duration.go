package cli

import (
	"reflect"
	"time"

	"github.com/alecthomas/kong"

	"github.com/musterhq/muster/internal/phrase"
)

// Durations lets every flag and setting that takes a duration take days, too: 30d, or
// 1d12h.
func Durations() kong.Option {
	return kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
			return err
		}
		d, err := phrase.ParseDuration(text)
		if err != nil {
			return err
		}
		target.SetInt(int64(d))
		return nil
	}))
}
