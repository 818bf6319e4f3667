package database_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
)

// wipesOn makes this test program a replica that wipes what it is asked to wipe,
// until it is killed.
const wipesOn = "MUSTER_TEST_WIPES_ON"

// wipeOrder is one line to a replica, and wipeAnswer its answer.
type wipeOrder struct {
	N       int
	At      int64 // Unix milliseconds: the replicas' clock
	Company string
	Asset   string
	Epoch   int
}

type wipeAnswer struct {
	N     int
	Begun bool
	Error string
}

func wipeUntilKilled(url string) error {
	var clock atomic.Int64
	db, err := database.Open(context.Background(), database.Options{URL: url, Now: func() time.Time { return time.UnixMilli(clock.Load()) }})
	if err != nil {
		return err
	}
	answers, out := json.NewEncoder(os.Stdout), sync.Mutex{}
	if err := answers.Encode(wipeAnswer{}); err != nil { // it is ready
		return err
	}
	for in := json.NewDecoder(os.Stdin); ; {
		var o wipeOrder
		if err := in.Decode(&o); err != nil {
			return err
		}
		clock.Store(o.At)
		go func() {
			_, begun, err := db.Begin(context.Background(), command.Command{ID: resource.NewID(), CompanyID: o.Company, AssetID: o.Asset, Epoch: o.Epoch,
				Type: command.WipeCompanyData, State: command.Prepared, CreatedAt: time.UnixMilli(o.At),
				Actor: command.Actor{Kind: access.APIKey, ID: "k1", Prefix: "abc", Name: "ci"}}, nil)
			a := wipeAnswer{N: o.N, Begun: begun}
			if err != nil && fault.CodeOf(err) != fault.RateLimited {
				a.Error = err.Error()
			}
			out.Lock()
			defer out.Unlock()
			_ = answers.Encode(a) // an error: the test has gone
		}()
	}
}

// wiper is a replica in a process of its own.
type wiper struct {
	process *exec.Cmd
	in      io.WriteCloser
	mu      sync.Mutex
	waiting map[int]chan wipeAnswer
}

func startWiper(t *testing.T, url string) *wiper {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &wiper{process: exec.CommandContext(t.Context(), self), waiting: map[int]chan wipeAnswer{}}
	w.process.Env = append(os.Environ(), wipesOn+"="+url)
	w.process.Stderr = os.Stderr
	out, err := w.process.StdoutPipe()
	if err == nil {
		w.in, err = w.process.StdinPipe()
	}
	if err == nil {
		err = w.process.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	answers := json.NewDecoder(bufio.NewReader(out))
	if err := answers.Decode(&wipeAnswer{}); err != nil {
		t.Fatalf("the replica did not start: %v", err)
	}
	go w.read(answers)
	return w
}

// read passes answers on until the process has ended; what it did not answer is lost.
func (w *wiper) read(answers *json.Decoder) {
	for {
		var a wipeAnswer
		err := answers.Decode(&a)
		w.mu.Lock()
		if err != nil {
			for _, answer := range w.waiting {
				close(answer)
			}
			w.waiting = nil
			w.mu.Unlock()
			return
		}
		if answer := w.waiting[a.N]; answer != nil {
			answer <- a
			delete(w.waiting, a.N)
		}
		w.mu.Unlock()
	}
}

// wipe asks the replica; false: it was killed before it answered.
func (w *wiper) wipe(o wipeOrder) (wipeAnswer, bool) {
	answer := make(chan wipeAnswer, 1)
	w.mu.Lock()
	if w.waiting == nil {
		w.mu.Unlock()
		return wipeAnswer{}, false
	}
	w.waiting[o.N] = answer
	line, _ := json.Marshal(o)
	_, _ = w.in.Write(append(line, '\n')) // one that was killed answers nothing
	w.mu.Unlock()
	a, ok := <-answer
	return a, ok
}

func (w *wiper) kill(t *testing.T) {
	t.Helper()
	if err := w.process.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = w.process.Wait() // says that it was killed
}

// killing is a history of wipes over two replicas that are killed.
type killing struct {
	*fixture
	devices  []asset.Asset
	replicas [2]*wiper
	mu       sync.Mutex
	history  []porcupine.Operation
	tick     atomic.Int64
	lost     int
}

func (k *killing) wipe(caller, replica, device int) {
	in := wiping{device, k.clock.Now().UnixMilli()}
	a := k.devices[device]
	called := k.tick.Add(1)
	got, ok := k.replicas[replica].wipe(wipeOrder{N: int(called), At: in.at, Company: k.company.ID, Asset: a.ID, Epoch: a.Device.Epoch})
	out, returned := wiped{begun: got.Begun}, k.tick.Add(1)
	k.mu.Lock()
	defer k.mu.Unlock()
	if !ok || got.Error != "" {
		k.lost++
		out.lost, returned = true, 1<<40 // its effect may come at any time from now on
	}
	k.history = append(k.history, porcupine.Operation{ClientId: caller, Input: in, Output: out, Call: called, Return: returned})
}

// round lets six callers wipe, and kills a replica while they do. Another takes its place.
func (k *killing) round(round int) {
	var callers sync.WaitGroup
	for caller := range 6 {
		random := rand.New(rand.NewPCG(uint64(round), uint64(caller)))
		callers.Go(func() {
			for range 3 {
				k.wipe(caller, random.IntN(2), random.IntN(fleetOf))
			}
		})
	}
	killed := round % 2
	time.Sleep(time.Duration(rand.N(12000)) * time.Microsecond) // in the midst of it
	k.replicas[killed].kill(k.T)
	callers.Wait()
	k.replicas[killed] = startWiper(k.T, k.url)
	k.clock.Advance(2 * time.Minute)
}

// never checks what is in the database: no window has more devices than the limit.
func (k *killing) never() {
	k.Helper()
	var uses []wiping
	for i, a := range k.devices {
		commands, _, err := k.db.History(k.Context(), k.company.ID, a.ID, operation.PageRequest{Size: 1000})
		k.ok(err)
		for _, c := range commands {
			uses = append(uses, wiping{i, c.CreatedAt.UnixMilli()})
		}
	}
	for _, end := range uses {
		within := map[int]bool{}
		for _, u := range uses {
			if u.at <= end.at && u.at > end.at-limitWidth.Milliseconds() {
				within[u.device] = true
			}
		}
		if len(within) > limitOf {
			k.Errorf("%d devices in one window, the limit is %d", len(within), limitOf)
		}
	}
	if len(uses) == 0 {
		k.Error("nothing was wiped")
	}
}

// The limit holds, and is linearizable, over two replicas that are killed with
// SIGKILL while they decide.
func TestBegin_LimitIsLinearizableWithKills(t *testing.T) {
	withCompany(t, func(f *fixture) {
		k := &killing{fixture: f, devices: f.fleet(fleetOf)}
		f.setLimit(limitOf, int(limitWidth.Minutes()))
		for i := range k.replicas {
			k.replicas[i] = startWiper(f.T, f.url)
		}
		for round := range 10 {
			k.round(round)
		}
		for _, w := range k.replicas {
			w.kill(f.T)
		}
		if result := porcupine.CheckOperationsTimeout(wipes(), k.history, time.Minute); result != porcupine.Ok {
			f.Errorf("%s: there is no order of %d attempts", result, len(k.history))
		}
		k.never()
		f.Logf("%d attempts, %d lost", len(k.history), k.lost)
	})
}
