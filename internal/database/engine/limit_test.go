package engine_test

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/database/engine"
)

// An import may take ten minutes (docs/operating.md), another transaction one.
func TestLimitOf(t *testing.T) {
	if got := engine.LimitOf(t.Context()); got != time.Minute {
		t.Errorf("a transaction may take %s", got)
	}
	if got := engine.LimitOf(engine.Long(t.Context())); got != 10*time.Minute {
		t.Errorf("a long one may take %s", got)
	}
}
