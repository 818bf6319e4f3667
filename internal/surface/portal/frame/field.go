package frame

import (
	"context"
	"io"
	"strings"

	"github.com/a-h/templ"
)

// described renders its child, in which the input has an id, with the attributes that connect
// the input to the text below it.
func described(id, help, wrong string) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		var input strings.Builder
		if err := templ.GetChildren(ctx).Render(templ.ClearChildren(ctx), &input); err != nil {
			return err
		}
		id, more := templ.EscapeString(id), ""
		switch {
		case wrong != "":
			more = ` aria-invalid="true" aria-describedby="` + id + `-wrong"`
		case help != "":
			more = ` aria-describedby="` + id + `-help"`
		}
		at := ` id="` + id + `"`
		_, err := io.WriteString(w, strings.Replace(input.String(), at, at+more, 1))
		return err
	})
}
