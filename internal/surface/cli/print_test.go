package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/surface/cli"
)

// What devices and callers of the API wrote gives a terminal no orders, and programs get it as it is.
func TestPrint_IsVisible(t *testing.T) {
	t.Parallel()
	const name = "Ada\x1b]0;title\a\u009b31m\u202e\rLovelace é👍"
	print := func(form string) string {
		var out strings.Builder
		if err := cli.Print(&out, form, name, func(w io.Writer) {
			fmt.Fprintf(w, "name\tuser\nPhone\t%s\n", name)
		}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	const want = "name   user\nPhone  Ada\ufffd]0;title\ufffd\ufffd31m\ufffd\ufffdLovelace é👍\n"
	if got := print("table"); got != want {
		t.Errorf("the table is %q, want %q", got, want)
	}
	var got string
	if text := print("json"); json.Unmarshal([]byte(text), &got) != nil || got != name || strings.ContainsAny(text, "\x1b\a\r") {
		t.Errorf("JSON is %q", text)
	}
}
