package proposal_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/approval/approvaltest"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/signature"
	"github.com/musterhq/muster/test/replica"
)

// appliesOn makes this test program a replica that decides and applies what it is
// asked to, until it is killed.
const appliesOn = "MUSTER_TEST_APPLIES_ON"

func TestMain(m *testing.M) {
	if url, child := os.LookupEnv(appliesOn); child {
		fmt.Fprintln(os.Stderr, applyUntilKilled(url))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// applyOrder asks a replica to apply a proposal, or for a person's decision about it.
type applyOrder struct {
	At              time.Time // the replicas' clock
	Vendor          string    // the address of the vendor for this replica
	ID              string
	Wants           signature.Decision // empty: apply
	User, PasskeyID string
	Signed          signature.Signed
}

type applyAnswer struct {
	Code   fault.Code // empty: done
	Detail string
}

type applier = replica.Replica[applyOrder, applyAnswer]

func applyUntilKilled(url string) error {
	now := &clock{}
	db, err := database.Open(context.Background(), database.Options{URL: url, Now: now.Now})
	if err != nil {
		return err
	}
	r := &fixture{clock: now, db: db, vendor: &vendor{}}
	if r.company, err = db.CompanyBySlug(context.Background(), "acme"); err != nil {
		return err
	}
	return replica.Serve(func(o applyOrder) applyAnswer {
		now.set(o.At)
		err := r.obey(o)
		if err == nil {
			return applyAnswer{}
		}
		return applyAnswer{Code: fault.CodeOf(err), Detail: err.Error()}
	})
}

func (r *fixture) obey(o applyOrder) error {
	service, _ := r.replica(r.db)
	service.Publisher, service.Verifier, service.LeaseWait = distant(o.Vendor), approvaltest.Verifier(), 20*time.Second
	if o.Wants == "" {
		_, err := service.Apply(context.Background(), r.key("k"), o.ID, "")
		return err
	}
	return r.db.Decide(context.Background(), approval.Decision{CompanyID: r.company.ID, Kind: approval.ChangeKind, ID: o.ID, UserID: o.User,
		PasskeyID: o.PasskeyID, Signed: o.Signed, Verifier: approvaltest.Verifier()})
}

// distant is a vendor at an address.
type distant string

// pushed is a push to it, and taken its answer.
type pushed struct {
	ID       string
	Version  int
	Document json.RawMessage
}

type taken struct {
	Code    outcome.Code
	Version int64
}

func (d distant) PushUnsaved(ctx context.Context, _ company.Company, p policy.Policy) (policy.PushResult, int64) {
	lost := policy.PushResult{Code: outcome.Unknown, Detail: "no answer"}
	body, _ := json.Marshal(pushed{p.ID, p.Version, p.Document})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, string(d), bytes.NewReader(body))
	if err != nil {
		return lost, 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return lost, 0
	}
	defer response.Body.Close()
	var t taken
	if err := json.NewDecoder(response.Body).Decode(&t); err != nil {
		return lost, 0
	}
	return policy.PushResult{Code: t.Code}, t.Version
}

func (distant) ReadCopy(context.Context, company.Company, policy.Policy) (policy.Copy, error) {
	return policy.Copy{}, errors.New("a replica that applies does not read copies")
}

// attempt is what is done with a proposal, and attempted its outcome.
type attempt struct {
	id   string
	does string
}

type attempted struct {
	code fault.Code
	at   stage // of what reads
	lost bool
}

const (
	approving = string(signature.Approve)
	declining = string(signature.Decline)
	applying  = "APPLY"
	reading   = "READ"
)

// stage is how far a proposal is. What was claimed is never applied again.
type stage string

const (
	waiting    stage = "WAITING"
	isApproved stage = "APPROVED"
	isDeclined stage = "DECLINED"
	claimed    stage = "CLAIMED"
)

func (s stage) after(does string) (stage, fault.Code) {
	switch {
	case does == reading:
		return s, ""
	case does == approving && s == waiting:
		return isApproved, ""
	case does == declining && s == waiting:
		return isDeclined, ""
	case does == applying && s == waiting:
		return s, fault.ConfirmationRequired
	case does == applying && s == isApproved:
		return claimed, ""
	default:
		return s, fault.NotPending
	}
}

func stageOf(p proposal.Proposal) stage {
	switch {
	case p.Approval.State == proposal.Declined:
		return isDeclined
	case p.Status != proposal.Pending:
		return claimed
	case p.Approval.State == proposal.Approved:
		return isApproved
	default:
		return waiting
	}
}

func approvals() porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			parts := map[string][]porcupine.Operation{}
			for _, o := range history {
				id := o.Input.(attempt).id
				parts[id] = append(parts[id], o)
			}
			return slices.Collect(maps.Values(parts))
		},
		Init: func() []any { return []any{waiting} },
		Step: func(state, input, output any) []any {
			next, code := state.(stage).after(input.(attempt).does)
			switch got := output.(attempted); {
			case got.lost:
				return []any{state, next}
			case got.code == code && (got.at == "" || got.at == next):
				return []any{next}
			default:
				return nil
			}
		},
	}).ToModel()
}

// killing is a history over two replicas that are killed, with two policies that each
// have one proposal in a round.
type killing struct {
	*fixture
	ada, bob *approver
	policies [2]policy.Policy
	address  string // of the vendor

	taking   sync.RWMutex // for reading while the vendor takes a push
	mu       sync.Mutex
	replicas [2]*applier
	made     [2]proposal.Proposal
	sent     map[string]int                 // pushes of a proposal
	dies     func(pushing int) (drops bool) // of this round, at a push
	history  []porcupine.Operation
	tick     int64
	lost     int
}

// ServeHTTP takes a push of a replica over HTTP. It looks whether an approval stands.
func (k *killing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.taking.RLock()
	defer k.taking.RUnlock()
	var p pushed
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		return // cut off
	}
	for _, made := range k.made {
		if made.PolicyID != p.ID {
			continue
		}
		if now := k.proposal(made.ID); now.Status != proposal.Executing || now.Approval.State != proposal.Approved {
			k.Errorf("sent while it is %s, %+v", now.Status, now.Approval)
		}
		k.mu.Lock()
		k.sent[made.ID]++
		k.mu.Unlock()
	}
	pusher, _ := strconv.Atoi(path.Base(r.URL.Path))
	if k.dies(pusher) {
		return
	}
	result, version := k.vendor.PushUnsaved(context.Background(), k.company,
		policy.Policy{ID: p.ID, Version: p.Version, Document: p.Document})
	_ = json.NewEncoder(w).Encode(taken{result.Code, version})
}

// does has a replica do something with a proposal, and notes its outcome.
func (k *killing) does(client, to int, what attempt, o applyOrder) {
	k.mu.Lock()
	if k.replicas[to].Ended() {
		to = 1 - to
	}
	of := k.replicas[to]
	k.tick++
	called := k.tick
	k.mu.Unlock()
	o.At, o.ID, o.Vendor = k.clock.Now(), what.id, fmt.Sprint(k.address, "/", to)
	a, answered := of.Ask(o)
	if answered && a.Code != "" && a.Code != fault.NotPending && a.Code != fault.ConfirmationRequired {
		k.Errorf("%s ends with %s %s", what.does, a.Code, a.Detail)
	}
	k.record(client, called, what, attempted{code: a.Code, lost: !answered})
}

func (k *killing) record(client int, called int64, what attempt, out attempted) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tick++
	returned := k.tick
	if out.lost {
		k.lost++
		returned = 1 << 40 // its effect may come at any time from now on
	}
	k.history = append(k.history, porcupine.Operation{ClientId: client, Input: what, Output: out, Call: called, Return: returned})
}

func decision(p *approver, want signature.Decision, s signature.Signed) applyOrder {
	return applyOrder{Wants: want, User: p.User.ID, PasskeyID: p.Passkey.ID, Signed: s}
}

func (k *killing) start() *applier {
	return replica.Start[applyOrder, applyAnswer](k.TB, appliesOn+"="+k.url)
}

// between changes what the vendor looks at while it takes nothing.
func (k *killing) between(change func()) {
	k.taking.Lock()
	defer k.taking.Unlock()
	change()
}

func (k *killing) sentTimes(id string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sent[id]
}

// round lets two persons decide and four callers apply while a replica is killed: as it
// sends to the vendor, before or after that has it, or whenever.
func (k *killing) round(n int) {
	var orders [2][2]applyOrder // of each proposal: approve, decline
	for i, p := range k.policies {
		to := map[string]string{"BLOCK": "ALLOW"}[value(k, k.policy(p.ID).Document, "CAMERA")]
		made := k.propose(k.policy(p.ID), "CAMERA", cmp.Or(to, "BLOCK"))
		k.between(func() { k.made[i] = made })
		id := made.ID
		orders[i] = [2]applyOrder{decision(k.ada, signature.Approve, k.sign(k.ada, id, signature.Approve, nil)),
			decision(k.bob, signature.Decline, k.sign(k.bob, id, signature.Decline, nil))}
	}
	var once sync.Once
	killed := -1
	kill := func(which int) { once.Do(func() { killed = which; k.replicas[which].Kill(k) }) }
	k.between(func() {
		k.dies = func(pusher int) bool {
			if n%3 < 2 {
				kill(pusher)
			}
			return n%3 == 0 && killed == pusher
		}
	})
	var clients sync.WaitGroup
	for client := range 6 {
		random := rand.New(rand.NewPCG(uint64(n), uint64(client)))
		clients.Go(func() {
			for range 4 {
				i, to := random.IntN(2), random.IntN(2)
				switch id := k.made[i].ID; {
				case client == 0:
					k.does(client, to, attempt{id, approving}, orders[i][0])
				case client == 1 && random.IntN(4) == 0:
					k.does(client, to, attempt{id, declining}, orders[i][1])
				default:
					k.does(client, to, attempt{id, applying}, applyOrder{})
				}
			}
		})
	}
	if n%3 == 2 {
		time.Sleep(time.Duration(rand.N(20000)) * time.Microsecond) // in the midst of it
		kill(n / 3 % 2)
	}
	clients.Wait()
	kill(n % 2)
	k.between(func() { k.dies = func(int) bool { return false } })
	k.replicas[killed] = k.start()
	k.bury()
}

// bury lets the keepers of two replicas settle what the killed one left behind, has
// another replica apply what was approved, and checks what became of each proposal.
func (k *killing) bury() {
	other := *k.reconciler
	for range 3 {
		k.clock.Advance(13 * time.Second)
		var keepers sync.WaitGroup
		for _, keeper := range []*proposal.Reconciler{k.reconciler, &other} {
			keepers.Go(func() {
				if err := keeper.Settle(k.Context()); err != nil {
					k.Error(err)
				}
			})
		}
		keepers.Wait()
	}
	k.push()
	for _, made := range k.made {
		if stageOf(k.proposal(made.ID)) == isApproved {
			k.does(0, 0, attempt{made.ID, applying}, applyOrder{})
		}
		k.does(0, 1, attempt{made.ID, applying}, applyOrder{}) // never again
		p := k.proposal(made.ID)
		k.record(0, k.tick, attempt{made.ID, reading}, attempted{at: stageOf(p)})
		saved := 0
		for _, r := range k.revisions(made.PolicyID) {
			if r.ProposalID == made.ID {
				saved++
			}
		}
		if want := map[proposal.Status]int{proposal.Succeeded: 1}[p.Status]; p.Status == proposal.Executing || saved != want ||
			k.sentTimes(made.ID) > 1 {
			k.Errorf("%s: saved %d times, sent %d times", p.Status, saved, k.sentTimes(made.ID))
		}
		if (saved > 0 || k.sentTimes(made.ID) > 0) && p.Approval.State != proposal.Approved {
			k.Errorf("applied without an approval: %s, %+v", p.Status, p.Approval)
		}
	}
}

// Over two replicas that are killed with SIGKILL while persons decide and callers
// apply, a proposal is applied at most once, and only by an approval that stands, and
// everything that they were answered has one order. What was left behind EXECUTING ends.
func TestApply_ApprovalIsLinearizableWithKills(t *testing.T) {
	each(t, func(t *testing.T, r *fixture) {
		p, ada := approvable(r)
		k := &killing{fixture: r, ada: ada, bob: r.approver(account.Manager), policies: [2]policy.Policy{p, r.newPolicy("Office", 1)},
			sent: map[string]int{}}
		server := httptest.NewServer(k)
		defer server.Close()
		k.address = server.URL
		k.replicas = [2]*applier{k.start(), k.start()}
		for n := range 9 {
			k.round(n)
		}
		for _, of := range k.replicas {
			of.Kill(t)
		}
		if result := porcupine.CheckOperationsTimeout(approvals(), k.history, time.Minute); result != porcupine.Ok {
			t.Errorf("%s: there is no order of %d attempts", result, len(k.history))
		}
		r.settle(k.policies[0].ID, k.policies[1].ID)
		ends := map[proposal.Status]int{}
		for id := range k.sent {
			ends[k.proposal(id).Status]++
		}
		if ends[proposal.Succeeded] == 0 {
			t.Error("nothing was applied")
		}
		t.Logf("%d attempts, %d lost; what was sent ended %v", len(k.history), k.lost, ends)
	})
}
