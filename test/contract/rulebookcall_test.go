package contract_test

import (
	"strconv"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/servertest/rulebook"
)

// set gives the company the settings of a world.
func (b *book) set(w rulebook.World) {
	limit := "off"
	if w.Limit > 0 {
		limit = strconv.Itoa(w.Limit) + "/60m"
	}
	approval := map[bool]string{false: "off", true: "on"}[w.Approval]
	args := []string{"company", "set", "acme", "--destructive-limit", limit, "--destructive-approval", approval, "--require-reason", map[string]string{"OFF": "off", "DESTRUCTIVE": "destructive", "ALL": "all"}[w.RequireReason]}
	for name, on := range map[string]bool{"device-commands": w.DeviceCommands, "destructive-commands": w.DestructiveCommands} {
		if on {
			args = append(args, "--enable", name)
		} else {
			args = append(args, "--disable", name)
		}
	}
	b.tenant.CLI(new(any), args...)
	if w.Stopped {
		b.tenant.CLI(new(any), "company", "stop", "--company", "acme", "--reason", "a test")
	} else {
		b.tenant.CLI(new(any), "company", "resume", "--company", "acme")
	}
}

// client is a new key's.
func (b *book) client(key apikey.Request) servertest.Client {
	key.CompanyID = b.tenant.Company.ID
	_, text, err := apikey.Keys{Store: b.tenant.Admin().Keys, Now: b.tenant.Now}.CreateForOperator(b.t.Context(), key)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.replica.As(text)
}

// decider is the person who authorizes, signed in with both factors.
func (b *book) decider() decider {
	d := decider{b.replica.SignedOut(b.t), b.passkey}
	second := d.Post("/signin", "email", b.user.Email, "password", servertest.Password)
	d.Post("/signin/second", "token", second.Field(b.t, "token"), "answer", d.key.Get(second.Options(b.t))).Want(b.t, 200)
	return d
}

// call has one call explained, makes it, and compares both with the rules.
func (b *book) call(r *rapid.T, client servertest.Client, w *rulebook.World, c rulebook.Call, arguments map[string]any) {
	left, room := 10-w.Spent, max(0, w.Limit-len(w.Counts))
	before := w.Asked[c.Asks()]
	want := w.Predict(c)
	arguments["assetId"] = c.Device
	if c.Malformed {
		arguments["nonsense"] = 1
	}
	var headers []string
	if c.Reason {
		headers = []string{"X-Muster-Reason", "a test"}
	}
	var said explained
	client.Post("/explain", map[string]any{"operation": c.Tool, "arguments": arguments}, headers...).Want(b.t, 200).JSON(b.t, &said)
	code := ""
	if said.Answer.Code != nil {
		code = *said.Answer.Code
	}
	if got := (rulebook.Answer{Status: said.Answer.Status, Code: code, Person: want.Person}); got != want || want.Person && said.Approval == nil || said.Allowed != (want.Status == 200) {
		r.Errorf("%+v is explained as %+v, want %+v", c, said, want)
	}
	if said.Budget.Remaining != left || (said.Destructive == nil) != (w.Limit == 0) || said.Destructive != nil && said.Destructive.Remaining != room {
		r.Errorf("%+v: budget %+v, destructive %+v; want %d and %d left", c, said.Budget, said.Destructive, left, room)
	}
	path := commandPaths()[c.Tool]
	delete(arguments, "assetId")
	var body any
	if len(arguments) > 0 {
		body = arguments
	}
	answer := client.Post("/assets/"+c.Device+"/commands/"+path, body, headers...)
	if answer.Status != want.Status {
		r.Fatalf("%+v in %+v is answered %d %s, want %+v", c, *w, answer.Status, answer.Body, want)
	}
	if answer.Status != 403 {
		return
	}
	address, _ := answer.Members(b.t)["approvalUrl"].(string)
	if (address != "") != (want.Person && w.Asked[c.Asks()] != rulebook.None) {
		r.Fatalf("%+v in %+v is answered %s, want %+v", c, *w, answer.Body, want)
	}
	if address != "" && before != rulebook.Declined && rapid.Bool().Draw(r, "a person decides") {
		decline := rapid.IntRange(0, 3).Draw(r, "declines") == 0
		b.decider().decide(b.t, address, decline)
		w.Asked[c.Asks()] = map[bool]rulebook.Decision{false: rulebook.Authorized, true: rulebook.Declined}[decline]
	}
}

// commandPaths are the last segments of the commands' addresses, by tool.
func commandPaths() map[string]string {
	return map[string]string{"lock_device": "lock", "start_lost_mode": "lost-mode", "stop_lost_mode": "found", "send_message": "message",
		"request_status_report": "status-report", "request_location_update": "location-update", "sync_policy": "sync-policy", "reboot_device": "reboot",
		"shutdown_device": "shutdown", "launch_app": "launch-app", "clear_app_data": "clear-app-data", "wipe_device": "wipe", "reset_screen_lock": "reset-screen-lock",
		"change_screen_lock_password": "change-screen-lock-password", "relinquish_ownership": "relinquish-ownership"}
}
