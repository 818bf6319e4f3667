package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/test/expect"
	"github.com/musterhq/muster/test/spec"
)

// end is what contract 7.1 promises for an outcome.
type end struct {
	status    string // of the result; empty: an error
	code      fault.Code
	retryable bool
	state     command.State // of the row
	deleted   bool
}

// ends spells contract 7.1 out.
func ends(v outcome.Code, t command.Type) end {
	switch v {
	case outcome.Accepted:
		if t == command.NotificationMessage {
			return end{status: "SUCCESS", state: command.Succeeded}
		}
		return end{status: "IN_PROGRESS", state: command.Sent}
	case outcome.Done:
		return end{status: "SUCCESS", state: command.Succeeded}
	case outcome.NotSent:
		return end{code: fault.Unavailable, retryable: true, state: command.Failed}
	case outcome.Unknown:
		return end{status: "UNCONFIRMED", state: command.Unconfirmed}
	case outcome.Gone:
		return end{code: fault.Unsupported, state: command.Failed, deleted: true}
	case outcome.Unreachable:
		return end{code: fault.Unsupported, state: command.Failed}
	case outcome.Refused:
		return end{code: fault.Refused, state: command.Failed}
	case outcome.Missing, outcome.Throttled, outcome.Conflict, outcome.Denied:
		if t == command.NotificationMessage { // messages never return 502
			return end{code: fault.Unavailable, retryable: true, state: command.Failed}
		}
		return end{code: fault.Provider, retryable: v != outcome.Denied, state: command.Failed}
	default:
		return end{code: fault.Internal, state: command.Unconfirmed}
	}
}

// says reports whether a result of the type carries createdAt (contract 7.1).
func says(status string, t command.Type, m asset.Management) bool {
	older := spec.CommandOf(string(t)).Family == spec.FirstFour
	silent := t == command.Reboot || t == command.WipeCompanyData || t == command.RelinquishOwnership
	if status == "UNCONFIRMED" {
		return older
	}
	return m == asset.Agent || !silent
}

func TestExecute_EveryOutcomeOfEveryCommand(t *testing.T) {
	t.Parallel()
	for _, k := range sorts() {
		t.Run(k.String(), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			for _, c := range spec.Commands {
				if !c.Takes(k.spec()) {
					continue
				}
				for _, v := range append(outcome.Codes(), "of another version") {
					f.checkOutcome(k, command.Type(c.Type), v)
				}
			}
		})
	}
}

func (f *fixture) checkOutcome(k kind, t command.Type, v outcome.Code) {
	f.Helper()
	r := command.Receipt{Code: v, Detail: "told to callers", Cause: errors.New("internals")}
	f.channel.answers(r)
	f.push.answers(r)
	a := f.enroll(k)
	want := ends(v, t)
	got, err := f.execute(a, t)
	where := k.String() + " " + string(t) + " " + string(v)

	row := f.latest(a)
	stored := row
	stored.State, stored.Type, stored.Actor.ID, stored.Actor.Prefix = want.state, t, "key-1", "abcdefgh"
	if diff := cmp.Diff(stored, row); diff != "" {
		f.Errorf("%s: the row (-want +got):\n%s", where, diff)
	}
	if row.State.Final() && v != outcome.Done && t != command.NotificationMessage && row.Outcome == "" {
		f.Errorf("%s: the history does not say why", where)
	}
	if err != nil {
		refused := fault.From(err)
		if refused.Code != want.code || refused.Retryable != want.retryable {
			f.Errorf("%s: code %s, retryable %v; want %s, %v", where, refused.Code, refused.Retryable, want.code, want.retryable)
		}
		if refused.Detail == "" || strings.Contains(refused.Detail, "internals") {
			f.Errorf("%s: detail %q", where, refused.Detail)
		}
	}
	if (err == nil) != (want.code == "") {
		f.Errorf("%s: %+v, %v", where, got, err)
	}
	if err == nil {
		created := got.CreatedAt != nil
		answered := got
		answered.Status, answered.AssetID, answered.Type = want.status, a.PathName(), t
		if diff := cmp.Diff(answered, got); diff != "" {
			f.Errorf("%s (-want +got):\n%s", where, diff)
		}
		if created != says(want.status, t, k.management) || (got.Detail != "") != (want.status == "UNCONFIRMED") {
			f.Errorf("%s: %+v", where, got)
		}
		if created && !got.CreatedAt.Equal(row.CreatedAt) {
			f.Errorf("%s: createdAt %s is not the history's %s", where, got.CreatedAt, row.CreatedAt)
		}
		if got.Unconfirmed() != (want.status == "UNCONFIRMED") {
			f.Errorf("%s: Unconfirmed is %v", where, got.Unconfirmed())
		}
	}
	after := f.asset(a.ID)
	ended := want.deleted || want.status == "SUCCESS" && (t == command.WipeCompanyData || t == command.RelinquishOwnership)
	if (after.Status == asset.Deleted) != ended || (after.Device == nil) != ended {
		f.Errorf("%s: the asset is %s", where, after.Status)
	}
	if lost := want.status == "SUCCESS" && t == command.StartLostMode; after.Device != nil && after.Device.LostMode != lost {
		f.Errorf("%s: lost mode is %v", where, after.Device.LostMode)
	}
}

func TestExecute_DeviceGoneEndsOpenCommands(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.enroll(fullyManaged)
	for _, kindOf := range []command.Type{command.Lock, command.WipeCompanyData} {
		if _, err := f.execute(a, kindOf); err != nil {
			t.Fatal(err)
		}
	}
	f.channel.answers(command.Receipt{Code: outcome.Gone})
	if _, err := f.execute(a, command.Reboot); fault.CodeOf(err) != fault.Unsupported {
		t.Fatal(err)
	}
	want := map[command.Type]command.State{command.Lock: command.Failed, command.Reboot: command.Failed,
		command.WipeCompanyData: command.Succeeded}
	for _, c := range f.history(a) {
		if c.State != want[c.Type] {
			t.Errorf("%s ended %s", c.Type, c.State)
		}
	}
}

func TestExecute_PanicInChannelIsUnknown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.channel.answer = func(context.Context, command.Order) command.Receipt { panic("boom") }
	a := f.enroll(fullyManaged)
	_, err := f.execute(a, command.Lock)
	if fault.CodeOf(err) != fault.Internal || fault.From(err).Retryable || f.latest(a).State != command.Unconfirmed {
		t.Errorf("%v, %+v", err, f.latest(a))
	}
}

func TestExecute_NoChannelIsNotSent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.service.Channels = nil
	a := f.enroll(agentManaged)
	_, err := f.execute(a, command.Shutdown)
	row := f.latest(a)
	if fault.CodeOf(err) != fault.Unavailable || row.State != command.Failed ||
		row.Outcome != "not sent: this server has no connection to devices with Muster's own agent" {
		t.Errorf("%v, %+v", err, row)
	}
}

// TestExecute_ChoosesChannel: messages, locations and reports go by push where there is
// one, a report without push to the platform.
func TestExecute_ChoosesChannel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		t      command.Type
		k      kind
		noPush bool
		pushed bool
	}{
		{command.NotificationMessage, fullyManaged, false, true},
		{command.LocationUpdate, fullyManaged, false, true},
		{command.StatusReport, fullyManaged, false, true},
		{command.StatusReport, fullyManaged, true, false},
		{command.StatusReport, kind{asset.Platform, asset.CompanyOwned, asset.FullyManaged, false}, false, false},
		{command.Lock, fullyManaged, false, false},
		{command.NotificationMessage, agentManaged, false, false},
		{command.LocationUpdate, agentManaged, true, false},
	} {
		t.Run(string(c.t)+" on "+c.k.String(), func(t *testing.T) {
			f := newFixture(t)
			if c.noPush {
				f.service.Push = nil
			}
			if _, err := f.execute(f.enroll(c.k), c.t); err != nil {
				t.Errorf("%s on %s: %v", c.t, c.k, err)
			}
			byPush, _ := f.push.sends()
			byChannel, _ := f.channel.sends()
			if (byPush == 1) != c.pushed || (byChannel == 1) == c.pushed {
				t.Errorf("%s on %s: %d by push, %d by channel", c.t, c.k, byPush, byChannel)
			}
		})
	}
}

// TestExecute_RefusedBeforeDispatch: the order of checks, and no trace in the history.
func TestExecute_RefusedBeforeDispatch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	device, agent := f.enroll(fullyManaged), f.enroll(agentManaged)
	imported := asset.Asset{ID: "imported", CompanyID: f.company.ID, CompanySlug: "acme", Identification: "spare", Status: asset.Pending,
		CreatedAt: f.clock.Now()}
	f.ok(f.db.ImportAssets(f.ctx(), []asset.Asset{imported}))
	office, field, kiosk := f.policies["Office"], f.policies["Field"], f.policies["Kiosk"]
	_, err := f.db.DeletePolicy(f.ctx(), f.company.ID, f.policies["Lobby"].ID, f.clock.Now())
	f.ok(err)
	for _, c := range []struct {
		name   string
		t      command.Type
		asset  string
		policy string
		change func(*access.Principal)
		want   fault.Code
	}{
		{"no such asset", command.Lock, "nothing", "", nil, fault.NotFound},
		{"another company's name", command.Lock, "enterprises/other/assets/" + device.ID, "", nil, fault.NotFound},
		{"another company", command.Lock, device.ID, "", func(p *access.Principal) { p.CompanyID = "other" }, fault.NotFound},
		{"a policy's name", command.Lock, office.PathName(), "", nil, fault.NotFound},
		{"beyond the user's policies", command.Lock, device.ID, "", func(p *access.Principal) { p.Policies = []string{field.ID} },
			fault.NotFound},
		{"never enrolled", command.Lock, imported.ID, "", nil, fault.Unsupported},
		{"unknown policy", command.ChangePolicy, device.ID, "nothing", nil, fault.NotFound},
		{"unknown policy for what is not enrolled", command.ChangePolicy, imported.ID, "nothing", nil, fault.NotFound},
		{"unknown asset and policy", command.ChangePolicy, "nothing", "nothing", nil, fault.NotFound},
		{"policy of another company", command.ChangePolicy, device.ID, "enterprises/other/policies/" + field.ID, nil, fault.NotFound},
		{"deleted policy", command.ChangePolicy, agent.ID, f.policies["Lobby"].PathName(), nil, fault.NotFound},
		{"policy beyond the user's", command.ChangePolicy, device.ID, field.ID, func(p *access.Principal) {
			p.Policies = []string{office.ID}
		}, fault.NotFound},
		{"policy in use already", command.ChangePolicy, device.ID, office.PathName(), nil, fault.Unsupported},
		{"policy of the other type", command.ChangePolicy, device.ID, kiosk.PathName(), nil, fault.Unsupported},
		{"policy of the other type", command.ChangePolicy, agent.ID, field.ID, nil, fault.Unsupported},
		{"wrong device", command.Shutdown, device.ID, "", nil, fault.Unsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := f.caller()
			if c.change != nil {
				c.change(&p)
			}
			body := any(nil)
			if c.policy != "" {
				body = command.PolicyRef(c.policy)
			}
			_, err := f.service.Execute(f.ctx(), operation.Call{Principal: p}, command.Request{Type: c.t, AssetID: c.asset, Body: body})
			if fault.CodeOf(err) != c.want {
				t.Errorf("%s: %v, want %s", c.name, err, c.want)
			}
		})
	}
	if total, _ := f.channel.sends(); total != 0 || len(f.history(device))+len(f.history(agent)) != 0 {
		t.Error("something was sent or recorded")
	}
}

// brokenStore fails where it is told to.
type brokenStore struct {
	command.Store
	begin error
	take  bool
}

var errDown = errors.New("the database is down: host=db.internal")

func (b *brokenStore) Begin(ctx context.Context, c command.Command, held *agentdevice.Delivery) (command.Command, bool, error) {
	if b.begin != nil {
		return command.Command{}, false, b.begin
	}
	return b.Store.Begin(ctx, c, held)
}

func (b *brokenStore) Advance(ctx context.Context, id string, s command.Transition) (command.Command, bool, error) {
	if b.take {
		return command.Command{}, false, errDown
	}
	return b.Store.Advance(ctx, id, s)
}

func TestExecute_StoreFailsBeforeIntent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.enroll(fullyManaged)
	_, err := f.executeAs(f.newService(&brokenStore{Store: f.db, begin: errDown}), operation.Call{Principal: f.caller()}, a, command.Lock)
	texts := fault.From(err)
	if texts.Code != fault.Unavailable || !texts.Retryable || strings.Contains(texts.Detail, "db.internal") {
		t.Errorf("%+v", texts)
	}
	if total, _ := f.channel.sends(); total != 0 {
		t.Error("it was sent")
	}
}

func TestExecute_StoreFailsAfterSend(t *testing.T) {
	t.Parallel()
	for _, v := range outcome.Codes() {
		f := newFixture(t)
		f.channel.answers(command.Receipt{Code: v})
		a := f.enroll(fullyManaged)
		broken := &brokenStore{Store: f.db, take: true}
		got, err := f.executeAs(f.newService(broken), operation.Call{Principal: f.caller()}, a, command.Reboot)
		if v == outcome.NotSent && fault.CodeOf(err) != fault.Unavailable || v != outcome.NotSent && got.Status != "UNCONFIRMED" {
			t.Errorf("%s: %+v, %v", v, got, err)
		}
		if v == outcome.Gone { // the asset could be marked all the same, which ended the command
			continue
		}
		if row := f.latest(a); row.State != command.Prepared || row.State.Status() != "IN_PROGRESS" {
			t.Errorf("%s: the row is %s", v, row.State)
		}
		f.ok(f.service.Sweep(f.ctx()))
		if row := f.latest(a); row.State != command.Prepared {
			t.Errorf("%s: swept too early", v)
		}
		f.clock.Advance(2*command.SendLimit + time.Second)
		f.ok(f.service.Sweep(f.ctx()))
		if row := f.latest(a); row.State != command.Unconfirmed || row.Outcome == "" {
			t.Errorf("%s: after the sweep the row is %+v", v, row)
		}
		if total, _ := f.channel.sends(); total != 1 {
			t.Errorf("%s: sent %d times", v, total)
		}
	}
}

func TestExecute_CallerMayDisconnect(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.enroll(fullyManaged)
	ctx, leave := context.WithCancel(f.ctx())
	f.channel.answer = func(inner context.Context, _ command.Order) command.Receipt {
		leave()
		if inner.Err() != nil {
			t.Error("the attempt ended with its caller")
		}
		if _, bounded := inner.Deadline(); !bounded {
			t.Error("the attempt has no end")
		}
		return command.Receipt{Code: outcome.Accepted, Ref: "op-1"}
	}
	got, err := f.service.Execute(ctx, operation.Call{Principal: f.caller()}, command.Request{Type: command.Lock, AssetID: a.ID})
	if err != nil || got.Status != "IN_PROGRESS" || f.latest(a).Ref != "op-1" {
		t.Errorf("%+v, %v, %+v", got, err, f.latest(a))
	}
	_, err = f.service.Execute(ctx, operation.Call{Principal: f.caller()}, command.Request{Type: command.Lock, AssetID: a.ID})
	if fault.CodeOf(err) != fault.Unavailable || len(f.history(a)) != 1 {
		t.Errorf("a caller who has gone before: %v", err)
	}
}

// TestExecute_PasswordIsNotKept sends a marker, which the vendor even quotes.
func TestExecute_PasswordIsNotKept(t *testing.T) {
	t.Parallel()
	const marker = "m4rker-pa55word"
	f := newFixture(t)
	a := f.enroll(fullyManaged)
	var texts []string
	for _, v := range outcome.Codes() {
		if v == outcome.Gone {
			continue
		}
		f.channel.answers(command.Receipt{Code: v, Detail: `Invalid value "` + marker + `"`, Outcome: marker,
			Cause: errors.New("body: " + marker)})
		result, failure := f.run(f.service, "change_screen_lock_password", map[string]any{"assetId": a.ID, "newPassword": marker})
		text, err := json.Marshal(result)
		f.ok(err)
		texts = append(texts, string(text))
		if failure != nil {
			texts = append(texts, failure.Error())
		}
		if f.channel.last.Body.(command.PasswordBody).NewPassword != marker {
			t.Fatal("the device was not told the password")
		}
	}
	f.channel.answer = func(context.Context, command.Order) command.Receipt { panic(marker) }
	_, failure := f.run(f.service, "change_screen_lock_password", map[string]any{"assetId": a.ID, "newPassword": marker})
	texts = append(texts, failure.Error(), f.log.String())
	for _, text := range texts {
		if strings.Contains(text, marker) {
			t.Errorf("the password is in: %s", text)
		}
	}
	f.ok(f.db.Close())
	files, err := filepath.Glob(f.file + "*")
	f.ok(err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		f.ok(err)
		if bytes.Contains(data, []byte(marker)) {
			t.Errorf("%s holds the password", file)
		}
	}
	if len(files) == 0 {
		t.Error("no file was looked at")
	}
}

func TestArguments_AreChecked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.enroll(fullyManaged)
	long := strings.Repeat("ä", 4097)
	for _, c := range []struct {
		tool  string
		args  map[string]any
		field string // empty: accepted
	}{
		{"lock_device", nil, ""},
		{"lock_device", map[string]any{"x": 1}, "x"},
		{"start_lost_mode", map[string]any{"message": "lost"}, ""},
		{"start_lost_mode", map[string]any{"message": " "}, "message"},
		{"start_lost_mode", map[string]any{}, "message"},
		{"start_lost_mode", map[string]any{"message": long}, "message"},
		{"start_lost_mode", map[string]any{"message": long[2:], "phoneNumber": "", "streetAddress": long[2:], "organization": "Acme",
			"email": "a@b.example"}, ""},
		{"start_lost_mode", map[string]any{"message": "x", "phoneNumber": long}, "phoneNumber"},
		{"start_lost_mode", map[string]any{"message": "x", "streetAddress": long}, "streetAddress"},
		{"start_lost_mode", map[string]any{"message": "x", "organization": long}, "organization"},
		{"start_lost_mode", map[string]any{"message": "x", "email": "name"}, "email"},
		{"start_lost_mode", map[string]any{"message": "x", "email": ""}, "email"},
		{"start_lost_mode", map[string]any{"message": "x", "email": nil, "phoneNumber": nil, "streetAddress": nil, "organization": nil},
			""},
		{"start_lost_mode", map[string]any{"message": nil}, "message"},
		{"start_lost_mode", map[string]any{"message": "one\r\ntwo"}, ""},
		{"start_lost_mode", map[string]any{"message": "a\x00b"}, "message"},
		{"start_lost_mode", map[string]any{"message": "x", "phoneNumber": "1\n2"}, "phoneNumber"},
		{"start_lost_mode", map[string]any{"message": "x", "streetAddress": "a\x1bb"}, "streetAddress"},
		{"start_lost_mode", map[string]any{"message": "x", "organization": "a\u0085b"}, "organization"},
		{"send_message", map[string]any{"title": "a\nb", "body": "x"}, "title"},
		{"send_message", map[string]any{"title": "x", "body": "a\nb"}, ""},
		{"send_message", map[string]any{"title": "x", "body": "a\tb"}, "body"},
		{"change_screen_lock_password", map[string]any{"newPassword": "12\x0034"}, "newPassword"},
		{"send_message", map[string]any{"title": strings.Repeat("ä", 60), "body": strings.Repeat("ä", 500)}, ""},
		{"send_message", map[string]any{"title": strings.Repeat("ä", 61), "body": "b"}, "title"},
		{"send_message", map[string]any{"title": "t", "body": strings.Repeat("ä", 501)}, "body"},
		{"send_message", map[string]any{"title": "t"}, "body"},
		{"clear_app_data", map[string]any{"packageNames": []string{"com.example.app"}}, ""},
		{"clear_app_data", map[string]any{"packageNames": []string{}}, "packageNames"},
		{"clear_app_data", map[string]any{"packageNames": packages(20)}, ""},
		{"clear_app_data", map[string]any{"packageNames": packages(21)}, "packageNames"},
		{"clear_app_data", map[string]any{"packageNames": []string{"com.example.app", "nope"}}, "packageNames[1]"},
		{"change_device_policy", map[string]any{"policyId": ""}, "policyId"},
		{"change_screen_lock_password", map[string]any{"newPassword": "1234"}, ""},
		{"change_screen_lock_password", map[string]any{"newPassword": "123"}, "newPassword"},
		{"change_screen_lock_password", map[string]any{"newPassword": strings.Repeat("ä", 128)}, ""},
		{"change_screen_lock_password", map[string]any{"newPassword": strings.Repeat("ä", 129)}, "newPassword"},
		{"change_screen_lock_password", map[string]any{"newPassword": " 12345"}, "newPassword"},
		{"change_screen_lock_password", map[string]any{"newPassword": "12345 "}, "newPassword"},
		{"change_screen_lock_password", map[string]any{"newPassword": "12 345"}, ""},
	} {
		t.Run(c.field, func(t *testing.T) {
			args := map[string]any{"assetId": a.ID}
			for key, value := range c.args {
				args[key] = value
			}
			_, failure := f.run(f.service, c.tool, args)
			if c.field == "" {
				if failure != nil {
					t.Errorf("%s %v: %v", c.tool, c.args, failure)
				}
				return
			}
			if failure == nil || failure.Code != fault.InvalidArguments {
				t.Fatalf("%s %v: %+v, want invalid arguments", c.tool, c.args, failure)
			}
			if len(failure.Fields) == 0 || failure.Fields[0].Field != c.field {
				t.Errorf("%s %v: %+v, want %s", c.tool, c.args, failure, c.field)
			}
		})
	}
}

func packages(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "com.example.app" + strings.Repeat("x", i)
	}
	return names
}

func TestHistory(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.enroll(fullyManaged)
	for range 3 {
		f.clock.Advance(time.Second)
		if _, err := f.execute(a, command.Lock); err != nil {
			t.Fatal(err)
		}
	}
	newest := f.latest(a)
	at := f.clock.Now().Add(time.Second)
	_, _, err := f.service.Settle(f.ctx(), command.Feedback{CommandID: newest.ID, Succeeded: true, Outcome: "locked", At: at})
	f.ok(err)
	result, failure := f.run(f.service, "list_device_commands", map[string]any{"assetId": a.PathName(), "size": 2})
	if failure != nil {
		t.Fatal(failure)
	}
	text, err := json.Marshal(result)
	f.ok(err)
	var page struct {
		Content       []map[string]any `json:"content"`
		TotalElements int              `json:"totalElements"`
	}
	f.ok(json.Unmarshal(text, &page))
	if page.TotalElements != 3 || len(page.Content) != 2 {
		t.Fatalf("%s", text)
	}
	first, second := page.Content[0], page.Content[1]
	want := map[string]any{"type": "LOCK", "status": "SUCCESS", "createdAt": "2026-11-21T09:00:03.000Z",
		"feedbackAt": "2026-11-21T09:00:04.000Z", "outcome": "locked"}
	for key, value := range want {
		t.Run(key, func(t *testing.T) {
			if first[key] != value {
				t.Errorf("%s is %v, want %v", key, first[key], value)
			}
		})
	}
	expect.Equal(t, "entries", expect.Values{"members of the first": {len(first), 5}, "members of the second": {len(second), 5},
		"feedbackAt": {second["feedbackAt"], nil}, "outcome": {second["outcome"], nil}, "status": {second["status"], "IN_PROGRESS"}})
	for _, c := range []struct {
		args map[string]any
		want fault.Code
	}{
		{map[string]any{"assetId": "nothing"}, fault.NotFound},
		{map[string]any{"assetId": a.ID, "sort": "type,asc"}, fault.InvalidArguments},
		{map[string]any{"assetId": a.ID, "sort": "createdAt,desc"}, ""},
		{map[string]any{"assetId": a.ID, "size": 101}, fault.InvalidArguments},
	} {
		_, failure := f.run(f.service, "list_device_commands", c.args)
		if (failure == nil) != (c.want == "") || failure != nil && failure.Code != c.want {
			t.Errorf("%v: %v", c.args, failure)
		}
	}
}
