package contract_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/servertest/rulebook"
	"github.com/musterhq/muster/test/spec"
)

// What the rules predict of random calls whose bodies arrive after the caller lost or got
// rights, or the company other settings, is what they are answered: like new calls.
func TestRulebook_PredictsCallsHeldOpen(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		seed(t)
		b := newBook(t, env)
		rapid.Check(t, b.playHeld)
	})
}

// heldCall is a call whose arguments are still to come.
type heldCall struct {
	rulebook.Call
	opened [2]time.Time // the caller was let in between
	finish func() received
}

// mostHeld bounds the calls that are open at one time.
const mostHeld = 6

// playHeld opens calls of a new caller, changes what the caller may do, and finishes them.
func (b *book) playHeld(r *rapid.T) {
	if b.plays++; b.plays > 2**mostPlays && !b.failed {
		return
	}
	defer b.begin(r)()
	w := b.world(r)
	by := b.caller(r, &w, access.DevicesRead|access.PoliciesRead|drawRights(r))
	if w.Elsewhere || w.Barred {
		return // nothing can be held
	}
	calls := exampleCalls("", "", "", "")
	tools := slices.DeleteFunc(slices.Sorted(maps.Keys(calls)), func(tool string) bool { return spec.Find(tool).Effect == spec.Reading })
	for range rapid.IntRange(0, 2).Draw(r, "calls before") {
		c := b.draw(r, &w, tools)
		b.call(r, by, &w, c, b.arguments(&w, c, calls[c.Tool]))
	}
	var held []heldCall
	for range rapid.IntRange(1, mostHeld).Draw(r, "calls held") {
		c := b.draw(r, &w, tools)
		if spec.Find(c.Tool).Effect == spec.Reading {
			continue
		}
		if c.Proposal >= len(w.Proposals) { // another caller's, also after this one has proposed more
			c.Proposal = 1 << 20
		}
		h := heldCall{Call: c}
		h.opened[0] = b.tenant.Now()
		h.finish = by.hold(b.t, b.replica, c, b.arguments(&w, c, calls[c.Tool]))
		h.opened[1] = b.tenant.Now()
		held = append(held, h)
	}
	letIn := w
	w.Rights = maps.Clone(w.Rights)
	what := b.move(r, by, &w)
	if rapid.Bool().Draw(r, "late") {
		b.tenant.Advance(2 * time.Second)
	}
	for _, h := range held {
		asks := w.Asks(h.Call)
		late, got := b.tenant.Now().Sub(h.opened[1]) >= time.Second, h.finish()
		if b.late() || !late && b.tenant.Now().Sub(h.opened[0]) >= time.Second {
			return // on a slow machine it cannot be said
		}
		want := w.Finish(h.Call, letIn, late)
		if got.proposal != "" {
			b.proposals = append(b.proposals, got.proposal)
		}
		person := want.Person && (h.Tool == "apply_policy_proposal" || w.Asked[asks] != rulebook.None)
		if got.status != want.Status || got.code != "" && got.code != want.Code || (got.address != "") != person {
			r.Fatalf("%s, late %t: %+v is answered %+v, want %+v; let in in %s, now %s", what, late, h.Call, got, want,
				dump(letIn), dump(w))
		}
	}
	if c := b.draw(r, &w, tools); !w.Ended {
		b.call(r, by, &w, c, b.arguments(&w, c, calls[c.Tool]))
	}
}

// move changes what the caller may do at random, in the company and in the world.
func (b *book) move(r *rapid.T, by rulebookCaller, w *rulebook.World) string {
	kinds := []string{"end", "stop", "gates", "rules"}
	if by.connection != nil {
		kinds = append(kinds, "disable", "freeze", "narrow", "rights")
	}
	what := rapid.SampledFrom(kinds).Draw(r, "move")
	switch what {
	case "end":
		w.Ended = true
		if by.connection == nil {
			_, err := b.tenant.Admin().Keys.RevokeKey(b.t.Context(), b.tenant.Company.ID, by.keyID, b.tenant.Now())
			b.check(err)
			break
		}
		b.connection(by, func(c *oauth.Connection) { c.RevokedAt = b.tenant.Now() })
	case "stop":
		w.Stopped = !w.Stopped
		b.set(*w)
	case "gates":
		drawGates(r, w)
		w.Provisioning = w.Provisioning || by.connection == nil // the setting binds connections alone
		b.set(*w)
	case "rules":
		drawRules(r, w)
		b.set(*w)
	case "disable":
		w.Ended = true
		by.person.Change(func(u *account.User) { u.Disabled = true })
	case "freeze":
		w.Barred = true
		b.connection(by, func(c *oauth.Connection) { c.Frozen = true })
	case "narrow":
		less := rapid.SampledFrom([]access.Permission{access.DevicesCommand, access.DevicesCommandDestructive, access.PoliciesWrite,
			access.Provisioning}).Draw(r, "less")
		b.connection(by, func(c *oauth.Connection) {
			c.Scopes &^= less
			w.Rights = map[string]bool{}
			for _, name := range ofScopes(c.Scopes).Names() {
				w.Rights[name] = true
			}
		})
	case "rights":
		by.person.Change(func(u *account.User) { u.Role = account.Viewer; u.Rights, _ = account.Viewer.Rights() })
		for _, name := range []string{"DEVICES_COMMAND", "DEVICES_COMMAND_DESTRUCTIVE", "POLICIES_WRITE", "PROVISIONING"} {
			delete(w.Rights, name)
		}
	}
	return what
}

func (b *book) check(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// connection changes the caller's connection.
func (b *book) connection(by rulebookCaller, change func(*oauth.Connection)) {
	b.t.Helper()
	id := b.tenant.ConnectionOf(by.token).ID
	_, err := b.tenant.DB().UpdateConnection(b.t.Context(), b.tenant.Company.ID, id, func(c *oauth.Connection) error {
		change(c)
		return nil
	})
	b.check(err)
}

// hold sends a call up to its body, on the surface of its caller.
func (by rulebookCaller) hold(t *testing.T, replica *servertest.Replica, c rulebook.Call, arguments map[string]any) func() received {
	t.Helper()
	if by.connection == nil {
		header := http.Header{"X-Api-Key": {by.key.Key}}
		if c.Reason {
			header.Set("X-Muster-Reason", "a test")
		}
		method, path, body := rulebookRequest(c, arguments)
		finish := hold(t, method, replica.PublicURL()+"/api/v1"+path, header, body)
		return func() received { return ofPost(t, method, finish()) }
	}
	header := http.Header{"Authorization": {"Bearer " + by.token}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {servertest.LegacyProtocol}}
	params := map[string]any{"name": c.Tool, "arguments": arguments}
	if c.Reason {
		params["_meta"] = map[string]any{"muster/reason": "a test"}
	}
	finish := hold(t, http.MethodPost, replica.PublicURL()+"/mcp", header,
		map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
	return func() received {
		answer := finish()
		if answer.Status != http.StatusOK {
			return received{status: answer.Status}
		}
		result := servertest.ToolResult{Reply: servertest.Reply{Answer: answer}}
		answer.JSON(t, &result.Reply)
		if err := json.Unmarshal(result.Result, &result); err != nil {
			t.Fatal(err)
		}
		return ofToolCall(t, c, result)
	}
}
