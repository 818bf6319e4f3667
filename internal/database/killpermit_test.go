package database_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/resource"
)

// credential lets a request in: the text of a key, or the token of a connection or session.
type credential struct {
	Request string // the id of what it will write
	Kind    access.Kind
	Key     string
	Token   [32]byte
}

// ended is the end of a request: its body has arrived.
type ended struct {
	Request string
	Type    command.Type // empty: a key is made
}

// control is what a person takes from callers.
type control struct {
	Stop    *access.Stop // zero: resume
	Revoke  string       // key
	Freeze  string       // connection
	Disable string       // user
}

// open are the requests of a replica that are open, by what they will write.
var open sync.Map

func (c *credential) admit(db *database.DB) wipeAnswer {
	again := func(ctx context.Context) (access.Principal, error) { return c.principal(ctx, db) }
	p, err := again(context.Background())
	if err == nil {
		err = mayCommand(p)
	}
	switch fault.CodeOf(err) {
	case "":
		open.Store(c.Request, access.NewPermit(p, again))
		return wipeAnswer{Done: true, Version: p.Version}
	case fault.Unauthorized, fault.Forbidden, fault.NotFound:
		return wipeAnswer{}
	default:
		return wipeAnswer{Error: err.Error()}
	}
}

func (c *credential) principal(ctx context.Context, db *database.DB) (p access.Principal, err error) {
	switch c.Kind {
	case access.APIKey:
		return apikey.Authenticator{Keys: db, Now: time.Now}.Authenticate(ctx, c.Key)
	case access.Connection:
		_, p, err = db.ConnectionByToken(ctx, c.Token)
	default:
		_, _, p, err = db.SessionByToken(ctx, c.Token)
	}
	return p, err
}

func mayCommand(p access.Principal) error {
	if err := access.Grant(p, access.DevicesCommand, access.DeviceCommands); err != nil {
		return err
	}
	return p.Settings.Stop.Refuses(p.Kind)
}

// write ends a request as the kernel does: where its permit moved, it is decided about once
// more.
func (e *ended) write(db *database.DB, o wipeOrder) (done bool, err error) {
	found, ok := open.LoadAndDelete(e.Request)
	if !ok {
		return false, fmt.Errorf("no open request %s", e.Request)
	}
	permit := found.(*access.Permit)
	ctx := access.WithPermit(context.Background(), permit)
	if done, err = e.once(ctx, db, o); err == nil || permit.Moves() == 0 {
		return done, err
	}
	p, err := permit.Again(ctx)
	if err == nil {
		err = mayCommand(p)
	}
	if err != nil {
		return false, err
	}
	return e.once(ctx, db, o)
}

func (e *ended) once(ctx context.Context, db *database.DB, o wipeOrder) (bool, error) {
	now := time.UnixMilli(o.At)
	if e.Type == "" {
		k, _ := apikey.New(o.Company, "made", "operator", access.DevicesRead, now, time.Time{})
		k.ID = e.Request
		err := db.CreateKey(ctx, k)
		return err == nil, err
	}
	c := intentAt(asset.Asset{ID: o.Asset, CompanyID: o.Company, Device: &asset.Device{Epoch: o.Epoch}}, e.Type, now)
	c.ID = e.Request
	_, begun, err := db.Begin(ctx, c, nil)
	return begun, err
}

func (c *control) apply(db *database.DB, o wipeOrder) (err error) {
	ctx, now := context.Background(), time.UnixMilli(o.At)
	switch {
	case c.Stop != nil:
		_, err = db.UpdateCompany(ctx, o.Company, company.Change(func(of *company.Company) { of.Settings.Stop = *c.Stop }))
	case c.Revoke != "":
		_, err = db.RevokeKey(ctx, o.Company, c.Revoke, now)
	case c.Freeze != "":
		_, err = db.UpdateConnection(ctx, o.Company, c.Freeze, freeze)
	case c.Disable != "":
		_, err = db.UpdateUser(ctx, o.Company, c.Disable, func(u *account.User) error { u.Disabled = true; return nil })
	}
	return err
}

func freeze(o *oauth.Connection) error { o.Frozen = true; return nil }

// The callers of one round.
const (
	firstKey = iota
	secondKey
	ofConnection
	ofSession
	callersOf
)

// held is the state of the controls: how often they moved, and who they refuse.
type held struct {
	version int64
	stop    access.Stop
	ended   [4]uint16 // the rounds in which each caller was revoked, frozen or disabled
}

func (h held) admits(who, round int) bool {
	kinds := [callersOf]access.Kind{access.APIKey, access.APIKey, access.Connection, access.User}
	ended := h.ended[who]
	if who == ofConnection { // of the user whose session it is
		ended |= h.ended[ofSession]
	}
	return ended&(1<<round) == 0 && h.stop.Refuses(kinds[who]) == nil
}

// admitting, writing and controlling are what is done, by or to a caller of a round.
type (
	admitting struct{ who, round int }
	writing   struct {
		who, round int
		id         string
		version    int64 // by which it was let in
	}
	controlling struct {
		who, round int
		stop       *access.Stop
	}
)

// after is the state after a control moved.
func (c controlling) after(h held) held {
	was, bit := h, uint16(1)<<c.round
	switch {
	case c.stop != nil:
		h.stop = *c.stop
	default:
		h.ended[c.who] |= bit
	}
	if h != was {
		h.version++
	}
	return h
}

// answered is what came of it.
type answered struct {
	done, lost bool
	version    int64
}

// permitted is the rule: nothing is written for a caller whom the controls refuse, and a
// caller is refused only if they are, or if the controls moved since they were let in.
func permitted(first int64) porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Init: func() []any { return []any{held{version: first}} },
		Step: func(state, input, output any) []any {
			now, out := state.(held), output.(answered)
			same, none := []any{now}, []any(nil)
			switch in := input.(type) {
			case controlling:
				if next := in.after(now); !out.lost {
					return []any{next}
				} else {
					return []any{now, next}
				}
			case admitting:
				if out.lost || out.done == now.admits(in.who, in.round) && (!out.done || out.version == now.version) {
					return same
				}
			case writing:
				switch refusable := !now.admits(in.who, in.round); {
				case out.lost, !out.done && (refusable || in.version != now.version), out.done && !refusable:
					return same
				}
			}
			return none
		},
	}).ToModel()
}

// crossing is a history of requests that are open while controls move.
type crossing struct {
	*killing
	phone asset.Asset
	round int
	now   [callersOf]credential
	ids   [callersOf]string // of keys, connection and user
	stops int64
}

// prepare makes the callers of the next round.
func (x *crossing) prepare() {
	x.round++
	x.clock.Advance(time.Second)
	for who := range []int{firstKey, secondKey} {
		k, text := x.newKey("k", access.All)
		x.now[who], x.ids[who] = credential{Kind: access.APIKey, Key: text}, k.ID
	}
	u := x.user(account.Admin)
	code := oauth.AuthorizationCode{Hash: access.HashSecret(u.ID), CompanyID: x.company.ID, UserID: u.ID, ClientID: "mc_1",
		ClientName: "Client",
		Scopes:     access.All, RedirectURI: "https://example.com/cb", CodeChallenge: "ch", Resource: "r",
		ExpiresAt: x.clock.Now().Add(time.Minute)}
	x.ok(x.db.SaveCode(x.Context(), code))
	tokens, _ := pair(x.engine)
	connection, err := x.db.RedeemCode(x.Context(), code.Hash, agree, tokens)
	x.ok(err)
	x.now[ofConnection], x.ids[ofConnection] = credential{Kind: access.Connection, Token: tokens.Access}, connection.ID
	token := access.HashSecret(u.ID)
	x.ok(x.db.CreateSession(x.Context(), account.Session{ID: resource.NewID(), TokenHash: token, UserID: u.ID, CompanyID: x.company.ID,
		CreatedAt: x.clock.Now(), SeenAt: x.clock.Now(), PasswordHash: u.PasswordHash}))
	x.now[ofSession], x.ids[ofSession] = credential{Kind: access.User, Token: token}, u.ID
}

func (x *crossing) order() wipeOrder {
	return wipeOrder{At: x.clock.Now().UnixMilli(), Company: x.company.ID, Asset: x.phone.ID, Epoch: x.phone.Device.Epoch}
}

func outputOf(got wipeAnswer, lost bool) any { return answered{got.Done, lost, got.Version} }

// act is a person's who moves controls, of the first caller, and requests of the others.
func (x *crossing) act(caller int, random *rand.Rand) {
	who := random.IntN(callersOf)
	if caller == 0 {
		x.move(random.IntN(2), []int{firstKey, ofConnection, ofSession, -1, -1, -1}[random.IntN(6)], random)
		return
	}
	types := []command.Type{command.Lock, command.WipeCompanyData, ""}
	at, requests := random.IntN(2), map[string]wipeAnswer{}
	for range 2 {
		o := x.order()
		c := x.now[who]
		c.Request = resource.NewID()
		o.Admits = &c
		if got := x.ask(caller, at, o, admitting{who, x.round}, outputOf); got.Done {
			requests[c.Request] = got
		}
	}
	for id, got := range requests {
		if x.replicas[at].Ended() { // the request was cut off
			return
		}
		o := x.order()
		o.Ends = &ended{id, types[random.IntN(len(types))]}
		x.ask(caller, at, o, writing{who, x.round, id, got.Version}, outputOf)
	}
}

// move moves one control: that of a caller, or the company's stop.
func (x *crossing) move(to, who int, random *rand.Rand) {
	o, in := x.order(), controlling{who: max(who, 0), round: x.round}
	switch who {
	case firstKey:
		o.Changes = &control{Revoke: x.ids[who]}
	case ofConnection:
		o.Changes = &control{Freeze: x.ids[who]}
	case ofSession:
		o.Changes = &control{Disable: x.ids[who]}
	default:
		in.stop = &access.Stop{}
		if random.IntN(2) == 0 {
			x.stops++
			*in.stop = access.Stop{At: time.UnixMilli(1_000_000 + x.stops).UTC(), Reason: "because", All: random.IntN(2) == 0}
		}
		o.Changes = &control{Stop: in.stop}
	}
	x.ask(0, to, o, in, outputOf)
}

// settle finds out what became of the writes that were cut off: one that is there was
// written until now.
func (x *crossing) settle() {
	all, err := x.db.Keys(x.Context(), x.company.ID)
	x.ok(err)
	written := map[string]bool{}
	for _, k := range all {
		written[k.ID] = true
	}
	for i, o := range x.history {
		if !o.Output.(answered).lost || o.Return != later {
			continue
		}
		x.history[i].Return = x.tick.Add(1) // its replica has ended: it comes no later
		in, ok := o.Input.(writing)
		if !ok {
			continue
		}
		_, err := x.db.Command(x.Context(), in.id)
		if err == nil || written[in.id] {
			x.history[i].Output, x.history[i].Return = answered{done: true}, x.tick.Add(1)
		}
	}
}

// After a stop, a revocation, a freeze or the end of a user was acknowledged, nothing is
// written for those whom it refuses, also by requests that were let in before, over two
// replicas that are killed.
func TestPermit_IsLinearizableWithKills(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.ok(f.settings(func(s *access.Settings) { s.DestructiveCommands, s.OAuthConnections = true, true }))
		x := &crossing{killing: &killing{fixture: f}, phone: f.fleet(1)[0], round: -1}
		k, _ := f.newKey("first", access.All)
		first := f.admitted(k).Version
		x.prepare()
		x.rounds(10, x.act, func() {
			x.settle()
			x.ask(0, 0, wipeOrder{Company: f.company.ID, Changes: &control{Stop: &access.Stop{}}},
				controlling{round: x.round, stop: &access.Stop{}}, outputOf)
			x.prepare()
		})
		x.settle()
		if x.never(); !f.Failed() {
			x.linearizable(permitted(first))
		}
	})
}

// never checks each write that was made: its request had not ended before something began
// that gave back what an acknowledged control took from its caller.
func (x *crossing) never() {
	x.Helper()
	wrote, refused := 0, 0
	for _, w := range x.history {
		in, ok := w.Input.(writing)
		if out, _ := w.Output.(answered); !ok || out.lost {
			continue
		} else if !out.done {
			refused++
			continue
		}
		wrote++
		for _, c := range x.history {
			by, ok := c.Input.(controlling)
			if !ok || c.Output.(answered).lost || c.Return > w.Call || by.after(held{}).admits(in.who, in.round) {
				continue
			}
			if by.stop == nil || !x.lifted(c, w, in) {
				x.Errorf("%s was written by caller %d of round %d after %+v was acknowledged", in.id, in.who, in.round, by)
			}
		}
	}
	if x.Logf("%d open requests wrote, %d were refused", wrote, refused); wrote == 0 || refused == 0 {
		x.Error("want some of both")
	}
}

// lifted reports whether a stop may have ended for the caller before the end of a write.
func (x *crossing) lifted(stop, write porcupine.Operation, in writing) bool {
	return slices.ContainsFunc(x.history, func(o porcupine.Operation) bool {
		by, ok := o.Input.(controlling)
		return ok && by.stop != nil && by.after(held{}).admits(in.who, in.round) && o.Return > stop.Call && o.Call < write.Return
	})
}
