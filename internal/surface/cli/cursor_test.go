package cli_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/surface/cli"
)

func TestJoinCursors(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"replay w1 --after -29sE5eJva5DAg -o json": "replay w1 --after=-29sE5eJva5DAg -o json",
		"replay w1 --after 29sE5eJva5DAg":          "replay w1 --after 29sE5eJva5DAg",
		"replay w1 --after --company acme":         "replay w1 --after --company acme",
		"events --after -o json":                   "events --after -o json",
		"events --after":                           "events --after",
	} {
		if got := cli.JoinCursors(strings.Fields(given)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s becomes %q, want %s", given, got, want)
		}
	}
}
