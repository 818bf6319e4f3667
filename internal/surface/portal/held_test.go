package portal_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
)

// desk is an office in which each form of the portal can be sent so that it changes
// something.
type desk struct {
	*office
	*testing.T
	plain, signer, colleague  *servertest.Browser // administrators; the signer has a passkey
	key                       *servertest.Authenticator
	phone, duplicate, headset asset.Asset // the headset has our own agent
	client                    servertest.Client
}

func newDesk(t *testing.T, env *servertest.Env) *desk {
	t.Helper()
	d := &desk{office: &office{Tenant: env.NewTenant("acme"), replica: env.Start(servertest.OnLocalhost(t))}, T: t}
	d.base = d.replica.PublicURL()
	d.CLI(new(any), "company", "set", "--company", "acme", "--approver-age", "0s", "--destructive-approval", "on",
		"--apply-approval", "all")
	for _, who := range []**servertest.Browser{&d.plain, &d.signer, &d.colleague} {
		*who = d.Browser(d.Company, account.Admin)
		(*who).CheapPassword()
		(*who).SignIn(d.base)
	}
	d.key = servertest.NewAuthenticator(t, d.base)
	page := d.page(d.signer, "/account/passkeys/new")
	d.signer.Send(d.base+"/account/passkeys",
		url.Values{"token": {page.Field(t, "token")}, "name": {"Key"}, "answer": {d.key.Create(page.Options(t))}}).Want(t, 200)
	d.phone, d.duplicate = d.device(t, "d1", "SN1", "Phone", d.Policy), d.device(t, "d2", "SN2", "Phone", d.Policy)
	d.headset = d.agentDevice()
	d.client = d.Client(d.replica, access.All)
	d.changed(func(c *company.Company) {
		c.UpgradeNotice, c.Settings.Controls.DestructiveLimit = true, access.DestructiveLimit{Devices: 10, Window: time.Hour}
	})
	d.Advance(30 * time.Second) // so that a proof of identity is a newer one
	return d
}

// agentDevice is the asset of a device with our own agent.
func (d *desk) agentDevice() asset.Asset {
	d.Helper()
	now, p := d.Now(), d.AgentPolicy(d.Company, "Kiosk")
	change, err := d.DB().Observe(d.Context(), enrollment.Observation{CompanyID: d.Company.ID, Device: resource.NewID(),
		Management: asset.Agent,
		Ownership:  asset.CompanyOwned, Mode: asset.FullyManaged, SerialNumber: "SN3", Brand: "Headset", Model: "Headset", Enrolling: true,
		EnrolledAt: now, ReportedAt: now, ObservedAt: now, PolicyID: p.ID, AppliedPolicy: p.ID, AppliedVersion: 1})
	d.check(err)
	a, err := d.DB().Asset(d.Context(), d.Company.ID, change.AssetID)
	d.check(err)
	return a
}

// lostDevice is the request of a device that asks to be enrolled again as the headset.
func (d *desk) lostDevice() string {
	d.Helper()
	waiting := func() []agentdevice.Request {
		all, err := d.DB().EnrollmentRequests(d.Context(), d.Company.ID, d.headset.ID)
		d.check(err)
		return all
	}
	if all := waiting(); len(all) > 0 {
		return all[0].ID
	}
	now, hash := d.Now(), sha256.Sum256([]byte(resource.NewID()))
	d.check(d.DB().CreateAgentToken(d.Context(), agentdevice.Token{Hash: hash, CompanyID: d.Company.ID, PolicyID: d.headset.Device.PolicyID,
		ExpiresAt: now.Add(time.Hour)}))
	_, err := d.DB().EnrollAgent(d.Context(), agentdevice.Enrollment{Hash: hash, Lost: true, Again: now,
		Device: agentdevice.Device{ID: resource.NewID(), Role: protocol.Manager, State: agentdevice.Active, EnrolledAt: now, SeenAt: now}},
		enrollment.Observation{CompanyID: d.Company.ID, Device: resource.NewID(), Management: asset.Agent, SerialNumber: "SN3",
			Brand: "Headset", Enrolling: true})
	if !errors.Is(err, agentdevice.ErrWaiting) {
		d.Fatal(err)
	}
	return waiting()[0].ID
}

func (d *desk) page(who *servertest.Browser, path string) servertest.Page {
	d.Helper()
	return servertest.Page{Path: path, Body: d.get(d.T, who, path, 200)}
}

func (d *desk) changed(change func(*company.Company)) {
	d.Helper()
	_, err := d.DB().UpdateCompany(d.Context(), d.Company.ID, company.Change(change))
	d.check(err)
}

func (d *desk) check(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// signs is the answer to the question of a page, or of the part of it after a mark.
func (d *desk) signs(path, mark string) url.Values {
	d.Helper()
	page := d.page(d.signer, path)
	_, after, found := strings.Cut(page.Body, mark)
	if !found {
		d.Fatalf("%s has no %s", path, mark)
	}
	page.Body = after
	return url.Values{"token": {page.Field(d.T, "token")}, "answer": {d.key.Get(page.Options(d.T))}}
}

func (d *desk) newPolicy() policy.Policy {
	return d.Env.Policy(d.Company, resource.NewID(), policy.Platform)
}

// proposed is a proposal of the key.
func (d *desk) proposed() string {
	d.Helper()
	d.client = d.Client(d.replica, access.All)
	return d.client.Post("/policies/"+d.newPolicy().ID+"/changes", map[string]any{"changes": []any{map[string]string{"setting": "CAMERA",
		"value": "BLOCK"}}}).
		Want(d.T, 201).Members(d.T)["proposalId"].(string)
}

// waits is a change of a control that another administrator asked for.
func (d *desk) waits(change func(*access.Settings)) string {
	d.Helper()
	all, err := d.DB().ChangeControls(d.Context(), d.Company.ID, d.colleague.User, func(c *company.Company) { change(&c.Settings) })
	d.check(err)
	if len(all) != 1 {
		d.Fatalf("%+v waits", all)
	}
	return all[0].ID
}

func (d *desk) other() *servertest.Browser { return d.Browser(d.Company, account.Viewer) }

func (d *desk) connection() string {
	d.Helper()
	d.colleague.Connect(d.base, "mcp:devices:read", "mcp:devices:command")
	all, err := d.DB().Connections(d.Context(), d.Company.ID)
	d.check(err)
	return all[0].ID
}

// unbound are the tables of what goes on by itself, and of what counts calls.
var unbound = []string{"replicas", "leases", "budgets", "hints", "throttle", "sqlite_stat1", "sqlite_stat4",
	"activity_heads", "event_heads", "event_history", "retentions", "webhooks"}

// quiet waits until the platform has every policy.
func (d *desk) quiet() {
	d.Helper()
	d.Eventually("the platform has every policy", func() error {
		left, err := d.DB().PoliciesToPush(d.Context(), d.Company.ID, d.Now(), 1)
		if err == nil && len(left) > 0 {
			err = errors.New("one is missing")
		}
		return err
	})
}

// written is what is recorded, and how often the platform was asked to change something.
func (d *desk) written() string {
	tables := pgtest.Dump(d.T, d.Database)
	for _, name := range unbound {
		delete(tables, name)
	}
	for table, rows := range tables {
		for i, row := range rows {
			switch fields := strings.Fields(row); table { // proofs and times of use are added later
			case "activity", "api_keys":
				rows[i] = strings.Join(fields[:2], " ")
			case "events": // positions are given later
				rows[i] = fields[0]
			case "sessions":
				rows[i] = strings.Join(slices.Delete(fields, 5, 6), " ")
			}
		}
		slices.Sort(rows)
	}
	calls := map[string]int{}
	for _, method := range []string{"policies.patch", "policies.delete", "enrollmentTokens.create", "signupUrls.create",
		"devices.issueCommand"} {
		calls[method] = d.Calls(method)
	}
	text, err := json.MarshalIndent([]any{tables, calls}, "", " ")
	d.check(err)
	return string(text)
}

// differs is the first line in which two texts differ.
func differs(before, after string) string {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "-" + a[i] + "\n+" + b[i]
		}
	}
	return ""
}

func (d *desk) by(f form) *servertest.Browser {
	if f.signer {
		return d.signer
	}
	return d.plain
}

// Each form of the portal is in the table, and changes something when nothing prevents it.
func TestHeldForms_ChangeSomething(t *testing.T) {
	t.Parallel()
	d := newDesk(t, servertest.New(t))
	listed := map[string]bool{}
	for _, f := range forms() {
		listed[f.pattern] = true
		path, fields := f.ready(d)
		d.quiet()
		send := func() (servertest.Answer, string) {
			before := d.written()
			answer := d.by(f).Send(d.base+path, fields)
			return answer, differs(before, d.written())
		}
		answer, changed := send()
		for again := 0; f.inert && changed != "" && again < 3; again++ { // what goes on by itself can write, too
			answer, changed = send()
		}
		if (changed == "") != f.inert || answer.Status >= 500 {
			t.Errorf("%s: changed %q, answered %d %s %.1500s", f.pattern, changed, answer.Status,
				answer.Header.Get("Location"), answer.Body)
		}
	}
	for _, route := range d.replica.Pages() {
		if path, post := strings.CutPrefix(route.Pattern, "POST "); post && !listed[path] {
			t.Errorf("%s is not in the table", path)
		}
	}
}

// Each form of the portal is held between the admission of its person and its body, while
// something is taken from them. Nothing is recorded, and the answer is that of a new form,
// but for what goes on.
func TestHeldForms_OutliveNoPermission(t *testing.T) {
	t.Parallel()
	none := func(form) bool { return false }
	people := func(d *desk, take func(*servertest.Browser)) { take(d.plain); take(d.signer) }
	for name, move := range map[string]struct {
		by   func(d *desk)
		goes func(form) bool
	}{
		"stop": {func(d *desk) {
			d.CLI(new(any), "company", "stop", "--company", "acme", "--reason", "because",
				"--all")
		}, func(f form) bool { return f.goesOn }},
		"disable": {func(d *desk) {
			people(d, func(p *servertest.Browser) { p.Change(func(u *account.User) { u.Disabled = true }) })
		}, none},
		"session": {func(d *desk) {
			people(d, func(p *servertest.Browser) {
				all, err := d.DB().Sessions(d.Context(), p.User.ID)
				d.check(err)
				for _, session := range all {
					d.check(d.DB().EndSession(d.Context(), p.User.ID, session.ID))
				}
			})
		}, none},
		"rights": {func(d *desk) {
			people(d, func(p *servertest.Browser) { p.Change(func(u *account.User) { u.Role, u.Rights = account.Viewer, 0 }) })
		}, func(f form) bool { return f.own }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if newDesk(t, servertest.New(t)).outliveNothing(move.by, move.goes, 1); name == "stop" { // of PostgreSQL some are enough
				newDesk(t, servertest.NewPostgres(t)).outliveNothing(move.by, move.goes, 6)
			}
		})
	}
}

// outliveNothing holds every form, or every n-th, while something moves. goes says which are
// carried out.
func (d *desk) outliveNothing(move func(*desk), goes func(form) bool, n int) {
	type held struct {
		form
		path   string
		fields url.Values
		finish func() servertest.Answer
	}
	var all []held
	for i, f := range forms() {
		if i%n != 0 {
			continue
		}
		path, fields := f.ready(d)
		all = append(all, held{f, path, fields, nil})
	}
	d.quiet()
	for i, h := range all {
		all[i].finish = d.by(h.form).Hold(d.base+h.path, h.fields.Encode())
	}
	move(d)
	before := d.written()
	step := func() (changed string) { // since the last step
		after := d.written()
		defer func() { before = after }()
		return differs(before, after)
	}
	// The refused ones together: the service reads no body for longer than 30 seconds.
	answers := map[int]servertest.Answer{}
	for i, h := range all {
		if !goes(h.form) {
			answers[i] = h.finish()
		}
	}
	if changed := step(); changed != "" {
		d.Errorf("a form that is not to be carried out changed something:\n%s", changed)
	}
	for i, h := range all {
		answer, refused := answers[i]
		if !refused {
			continue
		}
		want := d.by(h.form).Send(d.base+h.path, h.fields)
		if to, wanted := answer.Header.Get("Location"), want.Header.Get("Location"); answer.Status != want.Status || to != wanted {
			d.Errorf("%s is answered %d %s, a new form %d %s", h.pattern, answer.Status, to, want.Status, wanted)
		}
	}
	step()
	for _, h := range all {
		if !goes(h.form) {
			continue
		}
		answer := h.finish()
		if gone := step() != ""; gone == h.inert || answer.Status >= 400 && !h.inert {
			d.Errorf("%s is not carried out: changed %t, answered %d %.600s", h.pattern, gone, answer.Status, answer.Body)
		}
	}
}

// A form that is held while the portal is stopped asks nothing of the platform.
func TestHeldForms_AskNothingOfThePlatform(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	replica, beta := env.Start(), env.Company("beta", servertest.Everything())
	admin := env.Browser(beta, account.Admin)
	admin.SignIn(replica.PublicURL())
	finish := admin.Hold(replica.PublicURL()+"/settings/platform", "")
	env.CLI(new(any), "company", "stop", "--company", "beta", "--reason", "because", "--all")
	if finish().Want(t, 403); env.Calls("signupUrls.create") != 0 {
		t.Error("a sign-up was begun at the vendor")
	}
	env.CLI(new(any), "company", "resume", "--company", "beta")
	if admin.Send(replica.PublicURL()+"/settings/platform", url.Values{}).Want(t, 303); env.Calls("signupUrls.create") != 1 {
		t.Error("no sign-up was begun at the vendor")
	}
}
