package ops_test

import (
	"testing"

	"github.com/musterhq/muster/internal/service/ops"
)

func TestOpenFiles_Share(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ limit, cpus, streams, requests int }{
		{200, 2, 72, 72}, {1024, 2, 484, 484}, {20_000, 2, 19_432, 512}, {1 << 20, 64, 100_000, 948_272}, {10, 2, 1, 1},
	} {
		want := ops.Shares{OpenFiles: test.limit, Streams: test.streams, Requests: test.requests}
		if got := ops.ShareFiles(test.limit, test.cpus); got != want {
			t.Errorf("%d CPUs: %+v, want %+v", test.cpus, got, want)
		}
	}
}
