package contract_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
)

// eventSite is a company in which everything happens that has an event, and the readers of its
// feed.
type eventSite struct {
	*testing.T
	*servertest.Tenant
	replica   *servertest.Replica
	other     *database.DB // another replica's, if the engine has several
	client    servertest.Client
	narrow    servertest.Client // whose key may send commands to one device a day
	ada       decider
	admin     *servertest.Browser
	qr        string
	readers   []*feedReader
	last      int64             // position of the newest event that was looked at
	phone     servertest.Device // that the occasions are about
	proposal  string
	requestID string // of the call that was made last; empty: the service's own act
}

// feedReader is a key and how far it has read.
type feedReader struct {
	name, after string
	servertest.Client
}

// occasion makes events; each is written as its type, its members and who reads it.
type occasion struct {
	name   string
	does   func(s *eventSite)
	events []string
}

func newEventSite(t *testing.T, env *servertest.Env) *eventSite {
	t.Helper()
	tenant, replica := authorizing(t, env)
	env.CLI(new(any), "company", "set", "--company", "acme", "--destructive-approval", "off", "--destructive-limit", "1/60m",
		"--inactive-after", "14d")
	s := &eventSite{T: t, Tenant: tenant, replica: replica, other: env.DB(), client: tenant.Client(replica, access.All)}
	var narrow struct{ Key string }
	env.CLI(&narrow, "key", "create", "narrow", "--company", "acme", "--preset", "automation", "--devices-per-day", "1")
	s.narrow = replica.As(narrow.Key)
	at := replica
	if _, embedded := env.Config().SQLitePath(); !embedded {
		at = env.Start()
		other, err := database.Open(t.Context(), database.Options{URL: env.Database, Now: env.Now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = other.Close() })
		s.other = other
	}
	s.ada = newDecider(t, env, replica, tenant.Company, account.Manager)
	s.ada.HTTP.CheckRedirect = func(next *http.Request, _ []*http.Request) error {
		s.requestID = next.Response.Header.Get("X-Request-Id")
		return nil
	}
	s.admin = env.Browser(tenant.Company, account.Admin)
	s.admin.SignIn(replica.PublicURL())
	s.qr = s.client.QRCode(s.Policy, map[string]any{"personalUsage": "DISALLOWED"})
	limited := func(p policy.Policy) servertest.Client {
		by := env.Browser(tenant.Company, account.Admin, p.ID).User
		_, key, err := apikey.Keys{Store: env.Admin().Keys, Now: env.Now}.CreateForUser(t.Context(), by, apikey.Request{
			CompanyID: tenant.Company.ID, Name: "limited", Permissions: access.DevicesRead | access.PoliciesRead})
		if err != nil {
			t.Fatal(err)
		}
		return at.As(key)
	}
	s.readers = []*feedReader{
		{name: "devices", Client: tenant.Client(at, access.DevicesRead)},
		{name: "policies", Client: tenant.Client(at, access.PoliciesRead)},
		{name: "owner", Client: s.client.As(at)},
		{name: "here", Client: limited(s.Policy)},
		{name: "elsewhere", Client: limited(env.Policy(tenant.Company, "Second", policy.Platform))},
		{name: "nothing", Client: tenant.Client(at, access.DevicesCommand)},
		{name: "stranger", Client: at.As(env.Key(env.Company("beta", servertest.Everything()), access.All))},
	}
	for _, r := range s.readers {
		r.after = "latest"
		r.read(t)
	}
	s.settle()
	return s
}

// read returns the ids of the events that the reader has not yet seen.
func (r *feedReader) read(t *testing.T) (ids []string) {
	t.Helper()
	var page feed
	r.Get("/events?limit=1000&after="+r.after).Want(t, 200).JSON(t, &page)
	r.after = page.Next
	for _, e := range page.Events {
		ids = append(ids, e.ID)
	}
	return ids
}

// fresh returns what happened since the last look, with all types.
func (s *eventSite) fresh() []event.Event {
	s.Helper()
	found, err := s.DB().Events(s.Context(), event.Query{CompanyID: s.Company.ID, After: s.last, Upto: 1 << 40, Limit: 1000,
		See: event.Sight{All: true}})
	if err != nil {
		s.Fatal(err)
	}
	return found
}

// settle passes over what happened until now.
func (s *eventSite) settle() {
	s.Helper()
	if _, err := s.DB().NumberRound(s.Context()); err != nil {
		s.Fatal(err)
	}
	for _, e := range s.fresh() {
		s.last = e.Position
	}
	for _, r := range s.readers {
		r.read(s.T)
	}
}

// check makes the occasion and wants its events and no others.
func (s *eventSite) check(o occasion) {
	s.Helper()
	s.Advance(time.Minute) // a budget of its own
	s.requestID = ""
	o.does(s)
	var all []event.Event
	want := slices.Sorted(slices.Values(o.events))
	s.Eventually(o.name+" has its events", func() error {
		if all = s.fresh(); len(all) < len(want) {
			return fmt.Errorf("%d events of %d: %v", len(all), len(want), all)
		}
		return nil
	})
	readers := map[string]string{}
	for _, r := range s.readers {
		for _, id := range r.read(s.T) {
			readers[id] += " " + r.name
		}
	}
	var got []string
	for _, e := range all {
		got = append(got, s.text(e)+" |"+readers[e.ID])
		s.last = e.Position
	}
	slices.Sort(got)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		s.Errorf("%s has the events\n%s\nwant\n%s", o.name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// text is an event with the names of its members, and the values that the occasion does
// not know.
func (s *eventSite) text(e event.Event) string {
	data := e.View(s.Company.Slug).Data
	text := string(e.Type)
	for _, m := range []struct{ name, value, known string }{
		{"assetId", data.AssetID, "enterprises/acme/assets/" + s.phone.AssetID},
		{"policyId", data.PolicyID, "enterprises/acme/policies/" + s.Policy.ID},
		{"proposalId", data.ProposalID, s.proposal},
		{"type", data.Type, ""}, {"status", data.Status, ""},
		{"requestId", data.RequestID, s.requestID},
	} {
		switch {
		case m.value == "":
		case m.value == m.known:
			text += " " + m.name
		default:
			text += " " + m.name + "=" + m.value
		}
	}
	return text
}

// post makes a call with an id of its own.
func (s *eventSite) post(path string, body any, status int) map[string]any {
	s.Helper()
	s.requestID = fmt.Sprintf("cause-%d", s.last)
	return s.client.Post(path, body, "X-Request-Id", s.requestID).Want(s.T, status).Members(s.T)
}

// send sends the device a command.
func (s *eventSite) send(command string, body any, status int) {
	s.Helper()
	s.post("/assets/"+s.phone.AssetID+"/commands/"+command, body, status)
}

// as sends the device a command with another key.
func (s *eventSite) as(c servertest.Client, command string, status int) {
	s.Helper()
	mine := s.client
	s.client = c
	s.send(command, nil, status)
	s.client = mine
}

// form sends a form of the portal.
func (s *eventSite) form(path string, form url.Values) servertest.Answer {
	s.Helper()
	answer := s.admin.Send(s.replica.PublicURL()+path, form)
	s.requestID = answer.Header.Get("X-Request-Id")
	return answer
}

// runs runs a command of the operator.
func runs(args ...string) func(*eventSite) {
	return func(s *eventSite) { s.CLI(new(any), append(args, "--company", "acme")...) }
}

// twice has two replicas do something at once.
func (s *eventSite) twice(does func(db *database.DB) error) {
	s.Helper()
	var both sync.WaitGroup
	for _, db := range []*database.DB{s.DB(), s.other} {
		both.Go(func() {
			if err := does(db); err != nil {
				s.Error(err)
			}
		})
	}
	both.Wait()
}

// due has two replicas at once tell what became true by time alone.
func (s *eventSite) due() {
	s.Helper()
	s.twice(func(db *database.DB) error { return db.TellDue(s.Context()) })
}

func (s *eventSite) propose(value string) {
	s.Helper()
	s.proposal = s.post("/policies/"+s.Policy.ID+"/changes", args{"changes": change("CAMERA", value)}, 201)["proposalId"].(string)
}

func (s *eventSite) apply() { s.post("/policy-proposals/"+s.proposal+"/apply", args{}, 200) }

// decides decides the proposal with a passkey.
func (s *eventSite) decides(what string) {
	s.Helper()
	page := s.ada.Get("/approvals/"+s.proposal).Want(s.T, 200)
	_, page.Body, _ = strings.Cut(page.Body, `action="/approvals/`+s.proposal+`/`+what+`"`)
	s.ada.Post("/approvals/"+s.proposal+"/"+what, "token", page.Field(s.T, "token"), "answer", s.ada.key.Get(page.Options(s.T))).Want(s.T,
		200)
}

func (s *eventSite) enroll() {
	s.Helper()
	s.phone = s.Enroll(s.Company, emulator.Enrollment{EnrollmentToken: s.qr, Count: 1})[0]
}

// Each type has an occasion, which makes its event once, with the members that apply and no
// others, for the keys that may see it. There are no other events.
func TestEventTypes(t *testing.T) {
	t.Parallel()
	covered := map[event.Type]bool{}
	for _, o := range occasions() {
		for _, text := range o.events {
			kind, _, _ := strings.Cut(text, " ")
			covered[event.Type(kind)] = true
		}
	}
	for _, kind := range event.Kinds() {
		if !covered[kind.Type] {
			t.Errorf("no occasion makes %s", kind.Type)
		}
	}
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		s := newEventSite(t, env)
		for _, o := range occasions() {
			s.check(o)
		}
	})
}

// occasions are in the order in which they happen.
func occasions() []occasion {
	return slices.Concat(deviceOccasions(), policyOccasions(), controlOccasions())
}

func deviceOccasions() []occasion {
	begins := func(s *eventSite) { s.send("lost-mode", args{"message": "Please call"}, 200) }
	return []occasion{
		{"an enrollment", (*eventSite).enroll, []string{"device.enrolled assetId policyId | devices owner here"}},
		{"a lock", func(s *eventSite) { s.send("lock", nil, 200) },
			[]string{"command.succeeded assetId policyId type=LOCK status=SUCCESS requestId | devices owner here"}},
		{"a command that the platform refuses", func(s *eventSite) {
			s.Fault(emulator.Fault{Method: "devices.issueCommand", Status: 400, Reason: "INVALID_ARGUMENT"})
			s.send("reboot", nil, 422)
		}, []string{"command.failed assetId policyId type=REBOOT status=ERROR requestId | devices owner here"}},
		{"a command without an answer", func(s *eventSite) {
			s.Fault(emulator.Fault{Method: "devices.issueCommand", Status: 503})
			s.requestID = "lock"
			s.client.Post(servertest.LockPath(s.phone), nil, "X-Request-Id", s.requestID).Want(s.T, 202)
		}, []string{"command.unconfirmed assetId policyId type=LOCK status=UNCONFIRMED requestId | devices owner here"}},
		{"lost mode", begins, []string{
			"command.succeeded assetId policyId type=START_LOST_MODE status=SUCCESS requestId | devices owner here",
			"device.lost_mode assetId policyId status=ON requestId | devices owner here"}},
		{"lost mode again", begins, []string{
			"command.failed assetId policyId type=START_LOST_MODE status=ERROR requestId | devices owner here"}},
		{"the end of lost mode", func(s *eventSite) { s.send("found", nil, 200) }, []string{
			"command.succeeded assetId policyId type=STOP_LOST_MODE status=SUCCESS requestId | devices owner here",
			"device.lost_mode assetId policyId status=OFF requestId | devices owner here"}},
		{"a command that was done in spite of a lost answer", func(s *eventSite) {
			s.Fault(emulator.Fault{Method: "devices.issueCommand", Status: 503, AfterEffect: true})
			s.send("reboot", nil, 202)
		}, []string{"command.unconfirmed assetId policyId type=REBOOT status=UNCONFIRMED requestId | devices owner here",
			"command.succeeded assetId policyId type=REBOOT status=SUCCESS requestId | devices owner here"}},
		{"the command of a narrow key", func(s *eventSite) { s.as(s.narrow, "lock", 200) }, []string{
			"command.succeeded assetId policyId type=LOCK status=SUCCESS requestId | devices owner here"}},
		{"an erasure", func(s *eventSite) { s.send("wipe", nil, 200) }, []string{
			"command.succeeded assetId policyId type=WIPE_COMPANY_DATA status=SUCCESS requestId | devices owner here",
			"device.unenrolled assetId policyId requestId | devices owner here",
			"command.failed assetId policyId type=LOCK status=ERROR requestId=lock | devices owner here"}}, // of which nothing was known
		{"another enrollment", (*eventSite).enroll, []string{"device.enrolled assetId policyId | devices owner here"}},
		{"the company's limit", func(s *eventSite) { s.send("wipe", nil, 429) }, []string{"limit.reached assetId policyId requestId |"}},
		{"a key's own limit", func(s *eventSite) { s.as(s.narrow, "lock", 429) }, []string{"limit.reached assetId policyId requestId |"}},
	}
}

func policyOccasions() []occasion {
	waits := []string{"proposal.waiting policyId proposalId requestId | owner"}
	return []occasion{
		{"a change by the operator", func(s *eventSite) {
			s.CLI(new(any), "policy", "set", s.Policy.ID, "--company", "acme", "--set", "CAMERA=ALLOW")
		}, []string{"policy.changed policyId | policies owner here"}},
		{"a proposal", func(s *eventSite) {
			runs("company", "set", "--apply-approval", "all")(s)
			s.Advance(2 * time.Second)
			s.propose("BLOCK")
		}, waits},
		{"an approval", func(s *eventSite) { s.decides("approve") }, []string{"proposal.approved policyId proposalId requestId | owner"}},
		{"an apply", (*eventSite).apply, []string{"policy.changed policyId requestId | policies owner here",
			"proposal.applied policyId proposalId requestId | owner"}},
		{"another proposal", func(s *eventSite) { s.propose("ALLOW") }, waits},
		{"a refusal", func(s *eventSite) { s.decides("decline") }, []string{"proposal.declined policyId proposalId requestId | owner"}},
		{"a third proposal", func(s *eventSite) { s.propose("ALLOW") }, waits},
		{"its expiry", func(s *eventSite) {
			s.Advance(25 * time.Hour)
			s.requestID = ""
			s.due()
		}, []string{"proposal.ended policyId proposalId status=EXPIRED | owner"}},
		{"a policy that the platform refuses", func(s *eventSite) {
			s.Fault(emulator.Fault{Method: "policies.patch", Status: 400, Reason: "INVALID_ARGUMENT"})
			s.CLI(new(any), "policy", "set", s.Policy.ID, "--company", "acme", "--set", "CAMERA=ALLOW")
		}, []string{"policy.changed policyId | policies owner here", "policy.failed policyId | policies owner here"}},
	}
}

func controlOccasions() []occasion {
	silence := func(s *eventSite) {
		s.Advance(15 * 24 * time.Hour)
		s.twice(func(db *database.DB) error {
			_, err := db.MarkInactive(s.Context(), s.Company.ID, s.Now().Add(-14*24*time.Hour), 100)
			return err
		})
	}
	silent := []string{"device.silent assetId policyId | devices owner here"}
	key := func(name, days string) func(*eventSite) {
		return func(s *eventSite) {
			s.admin.SignIn(s.replica.PublicURL())
			once := servertest.Page{Body: string(s.form("/access/keys/new", nil).Want(s.T, 200).Body)}.Field(s.T, "once")
			s.form("/access/keys", url.Values{"name": {name}, "permission": {"DEVICES_READ"}, "expires": {days}, "once": {once}})
		}
	}
	outage := func(s *eventSite) {
		s.twice(func(db *database.DB) error {
			return db.TellOutage(s.Context(), event.ManagementService, s.Now().Add(-5*time.Minute), s.Now())
		})
	}
	return []occasion{
		{"a key", key("lasting", "90"), []string{"key.created requestId |"}},
		{"a key for a week", key("short", "7"), []string{"key.created requestId |", "key.expiring |"}},
		{"a key that is revoked", runs("key", "revoke", "short"), []string{"key.revoked |"}},
		{"a key for longer", runs("key", "create", "long", "--preset", "read-only", "--expires-in", "8d"), []string{"key.created |"}},
		{"the days before its end", func(s *eventSite) {
			s.Advance(25 * time.Hour)
			s.due()
		}, []string{"key.expiring |"}},
		{"a connection", func(s *eventSite) {
			base := s.replica.PublicURL()
			s.admin.SignIn(base) // once more, after days
			client := s.admin.Register(base)
			code := s.admin.Consents(base, client.AuthorizationRequest(base, "mcp:devices:read"), "mcp:devices:read")
			s.admin.Redeem(base, client, code) // a call that has no id
		}, []string{"connection.created |"}},
		{"a stop", runs("company", "stop", "--reason", "because"), []string{"automation.stopped |"}},
		{"its end", runs("company", "resume"), []string{"automation.resumed |"}},
		{"a change that loosens", func(s *eventSite) {
			s.admin.SignIn(s.replica.PublicURL())
			s.form("/access/controls", url.Values{"limited": {"true"}, "limit": {"50"}, "minutes": {"60"}, "age": {"0"}})
		}, []string{"control.loosening requestId |"}},
		{"a silence", silence, silent},
		{"the same silence", silence, nil},
		{"a word of the device", func(s *eventSite) {
			for _, online := range []bool{false, true} { // it reports when it comes online
				s.Behave(s.phone, emulator.Behavior{Online: &online})
			}
			servertest.AwaitStatus(s.T, s.Tenant, s.client, s.phone.AssetID, "ACTIVE")
		}, nil},
		{"another silence", silence, silent},
		{"an outage", outage, []string{"platform.failing |"}},
		{"the same outage", outage, nil},
		{"a new key", key("new", "90"), []string{"key.created requestId |"}}, // and nothing else before it
	}
}
