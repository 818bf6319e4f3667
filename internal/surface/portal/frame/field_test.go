package frame_test

import (
	"strings"
	"testing"

	"github.com/a-h/templ"

	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// A screen reader says with an input what stands below it.
func TestField_DescribesItsInput(t *testing.T) {
	input := templ.Raw(`<input class="input" id="name" name="name"/>`)
	for _, row := range []struct{ name, help, wrong, want string }{
		{"nothing", "", "", ` id="name" name=`},
		{"help", "Any name.", "", ` id="name" aria-describedby="name-help" name=`},
		{"what is wrong", "Any name.", "is taken", ` id="name" aria-invalid="true" aria-describedby="name-wrong" name=`},
	} {
		t.Run(row.name, func(t *testing.T) {
			var page strings.Builder
			ctx := templ.WithChildren(t.Context(), input)
			if err := frame.Field("name", "Name", row.help, row.wrong).Render(ctx, &page); err != nil {
				t.Fatal(err)
			}
			if got := page.String(); !strings.Contains(got, row.want) {
				t.Errorf("the page is %s, want %s in it", got, row.want)
			}
		})
	}
}
