package command_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/resource"
)

// intent is a lock of an asset that was begun and not sent.
func (f *fixture) intent(a asset.Asset) command.Command {
	return command.Command{ID: resource.NewID(), CompanyID: a.CompanyID, AssetID: a.ID, Epoch: a.Device.Epoch, Type: command.Lock,
		State: command.Prepared, CreatedAt: f.clock.Now()}
}

// dies runs one command in a process that ends at a step of it, and reports
// whether it came that far.
func (f *fixture) dies(step string, call operation.Call, a asset.Asset, t command.Type) bool {
	died := false
	service := f.newService(f.db)
	service.Crash = func(at string) {
		if at == step {
			died = true
			runtime.Goexit()
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = f.executeAs(service, call, a, t)
	}()
	<-ended
	return died
}

// TestExecute_CrashAtEveryStep: nothing accepted is lost, nothing is sent twice, and
// everything ends final or UNCONFIRMED.
func TestExecute_CrashAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, v := range []outcome.Code{outcome.Accepted, outcome.Done, outcome.Unknown, outcome.Refused} {
		for step, want := range map[string]struct {
			rows, sends int
			swept       bool // the row must be found by the sweeper
		}{
			command.BeforeIntent: {0, 0, false},
			command.AfterIntent:  {1, 0, true},
			command.AfterSend:    {1, 1, true},
			command.AfterAnswer:  {1, 1, false},
		} {
			f := newFixture(t)
			f.channel.answers(command.Receipt{Code: v, Ref: "op-1"})
			a := f.enroll(fullyManaged)
			call := operation.Call{Principal: f.caller(), IdempotencyRef: "request-1"}
			if !f.dies(step, call, a, command.Lock) {
				t.Fatalf("it did not die %s", step)
			}
			rows := f.history(a)
			if sends, _ := f.channel.sends(); len(rows) != want.rows || sends != want.sends {
				t.Errorf("%s, %s: %d rows, %d sends", v, step, len(rows), sends)
			}
			if want.rows == 1 && (rows[0].State == command.Prepared) != want.swept {
				t.Errorf("%s, %s: the row is %s", v, step, rows[0].State)
			}
			f.checkRestart(v, step, call, a, want.sends)
		}
	}
}

// checkRestart repeats the request in a new process, then sweeps.
func (f *fixture) checkRestart(v outcome.Code, step string, call operation.Call, a asset.Asset, sends int) {
	f.Helper()
	got, err := f.execute2(call, a)
	after, _ := f.channel.sends()
	switch {
	case step == command.BeforeIntent: // the repetition is the first to be sent
		sends = 1
	case step == command.AfterAnswer && v == outcome.Refused:
		if fault.CodeOf(err) != fault.Refused {
			f.Errorf("%s, %s: repeated, it ends %+v, %v", v, step, got, err)
		}
	case step == command.AfterAnswer && v == outcome.Accepted:
		if got.Status != "IN_PROGRESS" || got.CreatedAt == nil {
			f.Errorf("%s, %s: repeated, it ends %+v, %v", v, step, got, err)
		}
	case step == command.AfterAnswer && v == outcome.Done:
		if got.Status != "SUCCESS" {
			f.Errorf("%s, %s: repeated, it ends %+v, %v", v, step, got, err)
		}
	default:
		if got.Status != "UNCONFIRMED" || got.Detail == "" {
			f.Errorf("%s, %s: repeated, it ends %+v, %v", v, step, got, err)
		}
	}
	if after != sends {
		f.Errorf("%s, %s: sent %d times, want %d", v, step, after, sends)
	}
	f.clock.Advance(10 * time.Minute)
	f.ok(f.service.Sweep(f.ctx()))
	rows := f.history(a)
	if len(rows) != 1 || rows[0].State == command.Prepared {
		f.Errorf("%s, %s: in the end the rows are %+v", v, step, rows)
	}
}

func (f *fixture) execute2(call operation.Call, a asset.Asset) (command.Result, error) {
	return f.executeAs(f.service, call, a, command.Lock)
}

// TestExecute_RepetitionIgnoresTheDevicesState: the earlier command answers
// even where the device could not take it any more.
func TestExecute_RepetitionIgnoresTheDevicesState(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.enroll(fullyManaged)
	wipe := operation.Call{Principal: f.caller(), IdempotencyRef: "wipe"}
	move := operation.Call{Principal: f.caller(), IdempotencyRef: "move"}
	if _, err := f.executeAs(f.service, move, a, command.ChangePolicy); err != nil {
		t.Fatal(err)
	}
	if _, err := f.executeAs(f.service, wipe, a, command.WipeCompanyData); err != nil {
		t.Fatal(err)
	}
	f.ok(f.db.MarkDeleted(f.ctx(), a.ID, a.Device.Epoch, f.clock.Now()))
	gone := f.asset(a.ID)
	got, err := f.executeAs(f.service, wipe, gone, command.WipeCompanyData)
	if err != nil || got.Status != "SUCCESS" || got.CreatedAt != nil {
		t.Errorf("the wipe repeated: %+v, %v", got, err)
	}
	if _, err := f.executeAs(f.service, move, gone, command.ChangePolicy); fault.CodeOf(err) != fault.Refused {
		t.Errorf("the move repeated: %v", err)
	}
	if _, err := f.executeAs(f.service, wipe, gone, command.Lock); fault.CodeOf(err) != fault.KeyReused {
		t.Errorf("the key used for another command: %v", err)
	}
	if total, most := f.channel.sends(); total != 2 || most != 1 {
		t.Errorf("sent %d, at most %d times", total, most)
	}
}

// TestExecute_ConcurrentRepetitionsSendOnce: of many requests with one reference one sends.
func TestExecute_ConcurrentRepetitionsSendOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.enroll(fullyManaged)
	var repetitions sync.WaitGroup
	for range 20 {
		repetitions.Go(func() {
			got, err := f.execute2(operation.Call{Principal: f.caller(), IdempotencyRef: "one"}, a)
			if err != nil || got.Status != "IN_PROGRESS" && got.Status != "UNCONFIRMED" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	repetitions.Wait()
	if total, _ := f.channel.sends(); total != 1 || len(f.history(a)) != 1 {
		t.Errorf("sent %d times, %d rows", total, len(f.history(a)))
	}
}
