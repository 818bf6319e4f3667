package drill

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/wait"
)

// losing is a connection that loses the answer to the next request, once.
type losing struct {
	armed atomic.Bool
	// cut ends the connection when the request was written, instead of after the
	// service has answered.
	cut bool
}

var errLost = errors.New("the answer was lost")

// RoundTrip implements http.RoundTripper.
func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	if !l.armed.CompareAndSwap(true, false) {
		return http.DefaultTransport.RoundTrip(r)
	}
	ctx, hangUp := context.WithCancel(r.Context())
	defer hangUp()
	if l.cut {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { hangUp() }})
	}
	// On a connection of its own: the transport would itself repeat a request
	// with an Idempotency-Key if a used connection broke.
	own := &http.Transport{DisableKeepAlives: true}
	response, err := own.RoundTrip(r.WithContext(ctx))
	if err == nil {
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
	return nil, errLost
}

// confused is a client that repeats every call once.
type confused struct {
	*drill
	key     string
	devices []asset.Asset
	used    map[string]bool // devices that got a destructive command
	turn    int
	// accepted are the operations that had an effect.
	accepted map[string]bool
}

// confusedRetry makes every call that changes something twice, under one
// idempotency key, because its answer was lost.
func confusedRetry(ctx context.Context, d *drill) {
	_, devices := d.look(ctx)
	c := &confused{drill: d, key: d.Key, devices: devices, used: map[string]bool{}, accepted: map[string]bool{}}
	c.repeat(ctx, "REST", d.row("prepare a revision"), false, "apply_policy_proposal")
	for _, surface := range []string{"REST", "MCP over HTTP", "muster mcp"} {
		row := d.row("repeat each call, " + surface)
		for _, cut := range []bool{false, true} {
			for _, o := range d.Service.Registry().All() {
				if o.Effect != operation.Reading {
					script.Within(o.Name+" over "+surface, func() { c.repeat(ctx, surface, row, cut, o.Name) })
				}
			}
		}
	}
	for _, o := range d.Service.Registry().All() {
		if o.Effect != operation.Reading && !c.accepted[o.Name] {
			d.fact("%s was refused each time", o.Name)
		}
	}
}

// commandOf is the type of the command that an operation sends.
func commandOf(name string) (command.Type, map[string]any, bool) {
	all := command.Catalog()
	at := slices.IndexFunc(all, func(r *command.Row) bool { return r.Operation == name })
	if at < 0 {
		return "", nil, false
	}
	args := map[string]map[string]any{
		"start_lost_mode": {"message": "Please call us"}, "send_message": {"title": "Hello", "body": "Please charge me"},
		"launch_app": {"packageName": "com.example.app"}, "clear_app_data": {"packageNames": []string{"com.example.app"}},
		"change_screen_lock_password": {"newPassword": "246813579"},
	}[name]
	if args == nil {
		args = map[string]any{}
	}
	return all[at].Type, args, true
}

// device is one that can take a command, for a destructive one a device that
// got none before.
func (c *confused) device(kind command.Type) asset.Asset {
	c.turn++
	for i := range c.devices {
		a := c.devices[(i+c.turn)%len(c.devices)]
		if kind == command.ChangePolicy && a.Device.Management != asset.Platform {
			continue // there is no other policy for agents
		}
		if !c.used[a.ID] && command.Eligible(kind, a, false) == nil {
			c.used[a.ID] = kind.Destructive()
			return a
		}
	}
	return c.devices[0] // refused: the device cannot do it
}

// args are arguments with which the operation has an effect, and the device that
// it is for.
func (c *confused) args(ctx context.Context, name string) (args map[string]any, device string) {
	if kind, args, ok := commandOf(name); ok {
		a := c.device(kind)
		args["assetId"] = a.ID
		if kind == command.ChangePolicy {
			args["policyId"] = c.otherPolicy(ctx, a)
		}
		return args, a.ID
	}
	p := c.policyNamed(ctx, "Meeting rooms")
	change := []map[string]any{{"setting": "SCREEN_CAPTURE", "value": []string{"BLOCK", "ALLOW"}[p.Version%2]}}
	switch name {
	case "update_policy_settings":
		return map[string]any{"policyId": p.ID, "changes": change}, ""
	case "create_policy":
		c.turn++
		return map[string]any{"fromPolicyId": p.ID, "displayName": "Copy " + strconv.Itoa(c.turn)}, ""
	case "rollback_policy":
		return map[string]any{"policyId": p.ID, "revision": max(1, p.Version-1)}, ""
	case "update_asset":
		c.turn++
		return map[string]any{"assetId": c.devices[0].ID, "tags": []string{"turn " + strconv.Itoa(c.turn)}}, c.devices[0].ID
	case "create_provisioning_qr_code":
		return map[string]any{"policyId": p.ID, "personalUsage": "DISALLOWED"}, ""
	case "apply_policy_proposal":
		got := c.patient(ctx, c.rest(c.key, nil), "update_policy_settings", map[string]any{"policyId": p.ID, "changes": change}, "")
		if got.code != "" {
			script.Fail("nothing to apply: %s", got.detail)
		}
		return map[string]any{"proposalId": got.result["proposalId"], "confirmation": p.Name}, ""
	}
	script.Fail("the drill does not know %s", name)
	return nil, ""
}

// otherPolicy is a policy that the device could be moved to.
func (c *confused) otherPolicy(ctx context.Context, a asset.Asset) string {
	now := script.Must(c.db.Asset(ctx, c.Company.ID, a.ID))
	for _, p := range script.Must(c.Policies(ctx)) {
		if p.Type == policy.Platform && p.ID != now.Device.PolicyID {
			return p.ID
		}
	}
	script.Fail("there is no other policy")
	return ""
}

// effects counts what calls have done: commands of a device, proposals, and saves of policies.
func (c *confused) effects(ctx context.Context, device string) (n [3]int) {
	if device != "" {
		n[0] = len(c.history(ctx, device))
	}
	n[1] = len(script.Must(c.db.CompanyProposals(ctx, proposal.Query{CompanyID: c.Company.ID, Limit: pageOfAll})))
	for _, p := range script.Must(c.Policies(ctx)) {
		n[2] += p.Version
	}
	return n
}

// repeat makes one call, whose answer is lost, and makes it again.
func (c *confused) repeat(ctx context.Context, surface string, row *Attack, cut bool, name string) {
	args, device := c.args(ctx, name)
	before := c.effects(ctx, device)
	c.turn++
	lost, once := &losing{cut: cut}, "call-"+strconv.Itoa(c.turn)
	c.with(ctx, surface, lost, func(on caller) {
		lost.armed.Store(true)
		var got answer
		if err := script.Attempt(func() { got = on.call(ctx, name, args, once) }); err == nil && got.code == "" {
			script.Fail("an answer that was to be lost arrived")
		}
	})
	row.Calls++
	c.with(ctx, surface, nil, func(on caller) {
		got := c.patient(ctx, on, name, args, once)
		row.note(got)
		if got.code == string(fault.Internal) {
			c.harm("%s over %s, made again, was answered %s", name, surface, got.code)
		}
		c.accepted[name] = c.accepted[name] || got.code == ""
	})
	after := c.effects(ctx, device)
	for i, what := range []string{"a command was recorded", "a change was proposed", "a proposal was applied"} {
		if n := after[i] - before[i]; n > 1 {
			c.harm("%s over %s: %s %d times", name, surface, what, n)
		}
	}
	c.enough(ctx, nil)
}

// with calls use with a connection on a surface.
func (c *confused) with(ctx context.Context, surface string, via http.RoundTripper, use func(caller)) {
	switch surface {
	case "REST":
		use(c.rest(c.key, via))
	case "muster mcp":
		c.bridged(ctx, c.key, via, use)
	default:
		on := c.tools(ctx, "X-API-Key", c.key, via)
		defer func() { _ = on.session.Close() }() // its connection may have been cut
		use(on)
	}
}

// patient makes a call again while the service asks for time: while the first
// call is under way, and while the budget is used up.
func (d *drill) patient(ctx context.Context, on caller, name string, args map[string]any, once string) answer {
	const tries, pause = 200, 20 * time.Millisecond
	for n := 0; ; n++ {
		got := on.call(ctx, name, args, once)
		switch {
		case n == tries:
			return got
		case got.code == string(fault.InFlight):
			wait.For(ctx, pause)
		case got.control() == "budget":
			d.clock.advance(max(got.retryAfter, time.Second))
		default:
			return got
		}
	}
}
