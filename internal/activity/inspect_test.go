package activity_test

import (
	"context"
	"errors"
	"testing"

	"github.com/musterhq/muster/internal/activity"
)

// unreachable is a store whose database does not answer.
type unreachable struct{ activity.ChainStore }

var errUnreachable = errors.New("the database does not answer")

func (unreachable) Heads(context.Context) ([]activity.Head, error) {
	return make([]activity.Head, 2), errUnreachable
}

// A database that does not answer is no broken chain.
func TestInspect_OfDatabaseThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	k := &activity.Sealer{Store: unreachable{}, Alarm: func(broken int) { t.Errorf("an alarm of %d broken chains", broken) }}
	if err := k.Inspect(t.Context()); !errors.Is(err, errUnreachable) {
		t.Errorf("error = %v", err)
	}
}
