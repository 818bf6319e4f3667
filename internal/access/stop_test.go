package access_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
)

func TestStop_Refuses(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		stop access.Stop
		want map[access.Kind]bool
	}{
		{access.Stop{}, nil},
		{access.Stop{Reason: "left over", All: true}, nil},
		{access.Stop{At: at, Reason: "a leak"}, map[access.Kind]bool{access.APIKey: true, access.Connection: true}},
		{access.Stop{At: at, Reason: "a leak", All: true}, map[access.Kind]bool{access.APIKey: true, access.Connection: true,
			access.User: true}},
	} {
		for _, kind := range []access.Kind{access.APIKey, access.Connection, access.User, access.System} {
			err := c.stop.Refuses(kind)
			if (err != nil) != c.want[kind] {
				t.Errorf("%+v refuses %s: %v", c.stop, kind, err)
			}
			if err != nil && (fault.CodeOf(err) != fault.Forbidden || !strings.Contains(err.Error(), "a leak")) {
				t.Errorf("%+v refuses %s with %v", c.stop, kind, err)
			}
		}
	}
}
