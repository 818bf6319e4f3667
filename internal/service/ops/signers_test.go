package ops_test

import (
	"bytes"
	"testing"

	"github.com/musterhq/muster/internal/service/ops"
)

// The P-256 command key of a key file is the same on every replica and in every
// version: the devices that were given it know no other.
func TestES256CommandKey_IsTheSameForever(t *testing.T) {
	t.Parallel()
	got, err := ops.ES256CommandKey(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	if want := "8fb536ecad8c69b9"; got != want {
		t.Errorf("the key's id is %s, want %s", got, want)
	}
	if other, err := ops.ES256CommandKey(bytes.Repeat([]byte{8}, 32)); err != nil || other == got {
		t.Errorf("another secret gives the key %s, %v", other, err)
	}
}
