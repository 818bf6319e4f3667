package command_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/test/expect"
)

// stopped is a store whose companies were stopped, and a channel that takes commands back.
type stopped struct {
	*channel
	withdrawn []command.Type
	due       []command.Command
	fails     error
	canceled  []string
}

// Withdraw implements command.Cancels.
func (s *stopped) Withdraw(context.Context, string, int) ([]command.Type, error) {
	return s.withdrawn, s.fails
}

// ToCancel implements command.Cancels.
func (s *stopped) ToCancel(context.Context, time.Duration, int) ([]command.Command, error) {
	return s.due, nil
}

// Cancel implements command.Canceler.
func (s *stopped) Cancel(_ context.Context, c command.Command) error {
	s.canceled = append(s.canceled, c.ID)
	if c.ID == "bad" {
		return errors.New("it was sent long ago")
	}
	return nil
}

func TestCancelStopped(t *testing.T) {
	t.Parallel()
	away := errors.New("the database is away")
	for name, c := range map[string]struct {
		fails    error
		canceler bool
		canceled string
		warned   bool
	}{
		"the channel takes back":        {nil, true, "[good bad]", true},
		"the channel takes back none":   {nil, false, "[]", false},
		"the store fails":               {away, true, "[]", false},
		"the store fails, none is sent": {away, false, "[]", false},
	} {
		f := newFixture(t)
		s := &stopped{channel: f.channel, fails: c.fails, withdrawn: []command.Type{command.Lock},
			due: []command.Command{{ID: "good"}, {ID: "bad", Type: command.Reboot}}}
		f.service.Cancels = s
		if c.canceler {
			f.service.Channels[asset.Platform] = s
		}
		err := f.service.CancelStopped(f.ctx())
		expect.Equal(t, name, expect.Values{"error": {err, c.fails}, "canceled": {fmt.Sprint(s.canceled), c.canceled},
			"counted": {f.counter.finished["LOCK error"], 1},
			"warned":  {strings.Contains(f.log.String(), "cannot cancel a command"), c.warned}})
	}
}

func TestCommand_Expired(t *testing.T) {
	t.Parallel()
	deadline := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		deadline, now time.Time
		want          bool
	}{
		"before":               {deadline, deadline, false},
		"in the last moment":   {deadline, deadline.Add(command.ExpiryGrace - 1), false},
		"with its grace":       {deadline, deadline.Add(command.ExpiryGrace), true},
		"without any deadline": {time.Time{}, deadline, false},
	} {
		if got := (command.Command{Deadline: c.deadline}).Expired(c.now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if at := (command.Command{}).ExpiresAt(); !at.IsZero() {
		t.Errorf("without a deadline it ends at %s", at)
	}
}

func TestDestructiveActions(t *testing.T) {
	t.Parallel()
	var want []activity.Action
	for _, one := range command.Types() {
		if one.Destructive() {
			want = append(want, activity.Command(string(one)))
		}
	}
	if got := command.DestructiveActions(); len(want) != 4 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// logs keep one log, "l1".
type logs struct{ agentdevice.LogStore }

// Log implements agentdevice.LogStore.
func (logs) Log(_ context.Context, _, _, id string) (agentdevice.Log, error) {
	switch id {
	case "l1":
		return agentdevice.Log{ID: id, Text: "one\ntwo"}, nil
	case "away":
		return agentdevice.Log{}, fault.New(fault.Unavailable, "the database is away")
	}
	return agentdevice.Log{}, fault.New(fault.NotFound, "no row")
}

func TestReadLog(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.service.Logs = logs{}
	a := f.enroll(agentManaged)
	for id, want := range map[string]string{"l1": "[one two]", "l2": "this device has no log with this id",
		"away": "the database is away"} {
		result, failed := f.run(f.service, "get_log", map[string]any{"assetId": a.PathName(), "logId": id})
		got := fmt.Sprint(failed)
		if text, ok := result.(command.LogText); ok && failed == nil {
			got = fmt.Sprint(text.Lines)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}
