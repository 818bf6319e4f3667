package mail_test

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/job"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service/mail"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/webhook"
)

// feed is a company with an administrator, who gets mail about what happens.
type feed struct{ *desk }

func onFeed(t *testing.T, test func(f feed)) {
	t.Helper()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		d := &desk{Tenant: env.NewTenant("acme"), T: t, server: newServer(t), counts: &counts{mail: map[mail.Outcome]int{}}}
		d.bea = env.Browser(d.Company, account.Admin).User
		d.sender = d.replica()
		f := feed{d}
		f.numbered()
		f.round(f.sender)
		f.Advance(mail.Settle)
		f.round(f.sender)
		f.Advance(mail.Pause)
		f.server.mu.Lock()
		f.server.mails = nil // of how the company was made
		f.server.mu.Unlock()
		test(f)
	})
}

// numbered gives what happened its positions, as every replica does.
func (f feed) numbered() {
	f.Helper()
	for n := 1; n > 0; {
		var err error
		n, err = f.DB().NumberRound(f.Context())
		f.ok(err)
	}
}

// sent is the mail until now, after rounds of a sender for a minute.
func (f feed) sent(senders ...*mail.Sender) []taken {
	f.Helper()
	f.numbered()
	for range int(time.Minute/mail.Every) - 1 {
		for _, s := range senders {
			f.round(s)
		}
		f.Advance(mail.Every)
	}
	return f.server.all()
}

func (f feed) enroll(device string) {
	if err := f.enrollNamed(device, "Phone 1"); err != nil {
		f.Error(err)
	}
}

// enrollNamed enrolls a device that reports a model.
func (f feed) enrollNamed(device, model string) error {
	now := f.Now()
	_, err := f.DB().Observe(f.Context(), enrollment.Observation{CompanyID: f.Company.ID, Device: device, Management: asset.Platform,
		ReportedAt: now, ObservedAt: now,
		Enrolling: true, EnrolledAt: now, SerialNumber: "SN-" + device, Brand: "Acme", Model: model, Ownership: asset.CompanyOwned,
		Mode: asset.FullyManaged})
	return err
}

// silent has all devices fall silent.
func (f feed) silent() {
	f.Helper()
	for n := 1; n > 0; {
		var err error
		n, err = f.DB().MarkInactive(f.Context(), f.Company.ID, f.Now().Add(time.Second), 500)
		f.ok(err)
	}
}

// silentDevices is how many devices fall silent. The proof is made with 10,000.
var silentDevices = flag.Int("silent", 1000, "devices that TestSender_ManySilent has fall silent")

// Thousands of devices that fall silent are one mail, which counts them and names a few.
func TestSender_ManySilent(t *testing.T) {
	t.Parallel()
	onFeed(t, func(f feed) {
		devices, workers := *silentDevices, 8
		var working sync.WaitGroup
		for w := range workers {
			working.Go(func() {
				for n := w; n < devices; n += workers {
					f.enroll(fmt.Sprint("d", n))
				}
			})
		}
		working.Wait()
		if got := f.sent(f.sender); len(got) != 1 {
			t.Fatalf("%d devices enrolled, and %d mails were sent", devices, len(got))
		}
		f.Advance(mail.Pause)
		f.silent()
		got := f.sent(f.sender, f.replica())
		if len(got) != 2 {
			t.Fatalf("%d devices fell silent, and %d mails were sent", devices, len(got)-1)
		}
		header, body := f.read(got[1])
		if !strings.Contains(header.Get("Subject"), "Devices went silent: "+frame.Number(devices)) ||
			!strings.Contains(body, "https://muster.test/devices?status=INACTIVE") {
			t.Errorf("the mail is %v %q", header, body)
		}
		if named := strings.Count(body, "Acme"); !strings.Contains(body, "For example: ") || named > 4 || len(body) > 1000 {
			t.Errorf("the mail names %d devices: %q", named, body)
		}
		f.Advance(time.Hour)
		if got = f.sent(f.replica()); len(got) != 2 {
			t.Errorf("nothing more happened, and there are %d mails", len(got))
		}
	})
}

// The first mail comes within a minute, the next after five, with all that happened
// since then; also from another replica, and after one that the server did not take.
func TestSender_EventsSumUp(t *testing.T) {
	t.Parallel()
	onFeed(t, func(f feed) {
		f.enroll("d1")
		got := f.sent(f.sender)
		if len(got) != 1 || !strings.Contains(got[0].to, f.bea.Email) {
			t.Fatalf("within a minute there is %q", got)
		}
		f.enroll("d2")
		f.enroll("d3")
		f.CLI(new(any), "company", "stop", "--company", "acme", "--reason", "drill")
		if got = f.sent(f.sender, f.replica()); len(got) != 1 {
			t.Fatalf("within five minutes there are %d mails", len(got))
		}
		f.silent()
		f.Advance(mail.Pause)
		f.answer("RCPT TO:<"+f.bea.Email+">", "450 later")
		if got = f.sent(f.sender); len(got) != 1 {
			t.Fatal("the server took what it refuses")
		}
		f.answer("RCPT TO:<"+f.bea.Email+">", "")
		f.Advance(2 * time.Minute)
		if got = f.sent(f.replica(), f.sender); len(got) != 2 {
			t.Fatalf("after five minutes there are %d mails", len(got))
		}
		header, body := f.read(got[1])
		for _, want := range []string{"Devices enrolled: 2", "Devices went silent: 3", "Changes by API keys and AI clients stopped: 1"} {
			if !strings.Contains(body, want) {
				t.Errorf("the mail lacks %q: %q", want, body)
			}
		}
		if !strings.Contains(header.Get("Subject"), "6 events") {
			t.Errorf("the subject is %q", header.Get("Subject"))
		}
	})
}

// Mail obeys choices, rights and policies as they are when it is sent. What a user was not
// sent is not made up for later.
func TestSender_EventsChoicesAndRights(t *testing.T) {
	t.Parallel()
	onFeed(t, func(f feed) {
		viewer := f.Browser(f.Company, account.Viewer).User
		limited := f.Browser(f.Company, account.Viewer).User
		_, err := f.DB().UpdateUser(f.Context(), f.Company.ID, limited.ID, func(u *account.User) error {
			u.Policies = []string{resource.NewID()}
			return nil
		})
		f.ok(err)
		choose := func(u account.User, args ...string) {
			f.CLI(new(any), append([]string{"user", "mail", "--company", "acme", u.Email}, args...)...)
		}
		to := func(want ...account.User) {
			f.Helper()
			f.Advance(mail.Pause)
			before := len(f.server.all())
			f.enroll(resource.NewID())
			got := f.sent(f.sender)[before:]
			for _, u := range want {
				found := false
				for _, m := range got {
					found = found || strings.Contains(m.to, u.Email)
				}
				if !found {
					f.Errorf("%s has no mail", u.Email)
				}
			}
			if len(got) != len(want) {
				f.Fatalf("%d mails, want %d", len(got), len(want))
			}
		}
		to(f.bea)
		choose(viewer, "--event", "device.enrolled", "--event", "key.created")
		choose(limited, "--event", "device.enrolled")
		to(f.bea, viewer)
		choose(f.bea, "--event", "device.silent")
		to(viewer)
		choose(f.bea, "--mute")
		to(viewer)
		choose(f.bea, "--event", "device.enrolled")
		to(f.bea, viewer)
		_, err = f.DB().UpdateUser(f.Context(), f.Company.ID, viewer.ID, func(u *account.User) error {
			u.Rights = account.ViewPolicies
			return nil
		})
		f.ok(err)
		to(f.bea)
		_, err = f.DB().UpdateUser(f.Context(), f.Company.ID, f.bea.ID, func(u *account.User) error { u.Disabled = true; return nil })
		f.ok(err)
		to()
		_, err = f.DB().UpdateUser(f.Context(), f.Company.ID, f.bea.ID, func(u *account.User) error { u.Disabled = false; return nil })
		f.ok(err)
		f.Advance(mail.Pause)
		before := len(f.server.all())
		if got := f.sent(f.sender); len(got) != before {
			t.Errorf("what happened while the user was disabled is mailed: %q", got[before:])
		}
	})
}

// A job that the service paused is mailed to its maker, also without the right to resume it, and to
// administrators, once for each time; one that a person paused to no user. A webhook that the service
// disabled is mailed to administrators.
func TestSender_StoppedByTheService(t *testing.T) {
	t.Parallel()
	onFeed(t, func(f feed) {
		maker, other := f.Browser(f.Company, account.Manager).User, f.Browser(f.Company, account.Manager).User
		mails := func(err error, says, link string, want ...account.User) {
			f.Helper()
			f.ok(err)
			before := len(f.server.all())
			f.Advance(mail.Pause)
			got := f.sent(f.sender, f.replica())[before:]
			if len(got) != len(want) {
				f.Fatalf("%q: %d mails, want %d", says, len(got), len(want))
			}
			for _, m := range got {
				_, body := f.read(m)
				if !strings.Contains(body, says+"\r\n") || !strings.Contains(body, "https://muster.test"+link) ||
					strings.Contains(m.to, other.Email) {
					f.Errorf("%s has mail %q", m.to, body)
				}
			}
		}
		j, err := f.DB().CreateJob(f.Context(), job.Job{ID: resource.NewID(), CompanyID: f.Company.ID, Command: "reboot",
			Status: job.Running, Rate: 1, Total: 1, CreatedAt: f.Now(), StartsAt: f.Now(),
			Maker: access.Actor{Kind: access.User, ID: maker.ID, Name: maker.Name}}, []string{"asset"})
		f.ok(err)
		move := func(to job.Status, why string) error {
			_, err := f.DB().MoveJob(f.Context(), f.Company.ID, j.ID, to, why)
			return err
		}
		mails(move(job.Paused, job.ByPerson+"Ada"), "", "")
		mails(move(job.Running, ""), "", "")
		mails(move(job.Paused, "automation was stopped: drill"), "automation was stopped: drill", "/jobs/"+j.ID, f.bea, maker)
		mails(move(job.Running, ""), "", "")
		_, err = f.DB().UpdateUser(f.Context(), f.Company.ID, maker.ID, func(u *account.User) error {
			u.Rights = account.ViewDevices
			return nil
		})
		f.ok(err)
		mails(move(job.Paused, "its maker may not"), "its maker may not", "/jobs/"+j.ID, f.bea, maker)

		w := webhook.Webhook{ID: resource.NewID(), CompanyID: f.Company.ID, URL: "https://hooks.test/x", State: webhook.Enabled,
			CreatedAt: f.Now()}
		f.ok(f.DB().CreateWebhook(f.Context(), w))
		w, err = f.DB().Webhook(f.Context(), f.Company.ID, w.ID)
		f.ok(err)
		mine, err := f.DB().ClaimWebhook(f.Context(), w, "claim", f.Now().Add(time.Minute))
		if f.ok(err); !mine {
			f.Fatal("the webhook cannot be claimed")
		}
		_, err = f.DB().RecordWave(f.Context(), webhook.Record{WebhookID: w.ID, CompanyID: f.Company.ID, Claim: "claim", Until: f.Now(),
			Disable: "it was refused"})
		mails(err, "hooks.test was disabled: it was refused", "/settings/webhooks/"+w.ID, f.bea)
	})
}

// A device that asks to be enrolled again is mailed to administrators, once, and to who chose it and
// may enroll devices.
func TestSender_EnrollmentWaiting(t *testing.T) {
	t.Parallel()
	onFeed(t, func(f feed) {
		enroller, viewer := f.Browser(f.Company, account.Manager).User, f.Browser(f.Company, account.Viewer).User
		for _, u := range []account.User{enroller, viewer} {
			f.ok(f.DB().SetMailChoice(f.Context(), f.Company.ID, u.ID, attention.Choice{Events: []event.Type{attention.EnrollmentWaiting}}))
		}
		enroll := func(token, key string, lost bool) error {
			hash, at := sha256.Sum256([]byte(token)), f.Now()
			f.ok(f.DB().CreateAgentToken(f.Context(), agentdevice.Token{Hash: hash, CompanyID: f.Company.ID,
				PolicyID: f.AgentPolicy(f.Company, "Policy "+key).ID, ExpiresAt: at.Add(time.Hour)}))
			_, err := f.DB().EnrollAgent(f.Context(), agentdevice.Enrollment{Hash: hash, Again: at.Add(-time.Hour), Lost: lost,
				Device: agentdevice.Device{ID: resource.NewID(), Role: protocol.Manager, State: agentdevice.Active, EnrolledAt: at,
					SeenAt: at, CommandAlgorithm: protocol.Ed25519, Key: protocol.PublicKey{Algorithm: protocol.Ed25519, SPKI: key}}},
				enrollment.Observation{CompanyID: f.Company.ID, Management: asset.Agent, Enrolling: true, ObservedAt: at, EnrolledAt: at,
					ReportedAt: at, SerialNumber: "SN-1", Brand: "Acme", Model: "Kiosk"})
			return err
		}
		f.ok(enroll("first", "key1", false))
		f.Advance(time.Minute)
		if err := enroll("again", "key2", true); !errors.Is(err, agentdevice.ErrWaiting) {
			f.Fatalf("the device that lost its key enrolls with %v, want that it waits", err)
		}
		f.Advance(mail.Pause)
		f.sent(f.sender, f.replica())
		f.Advance(mail.Pause)
		var got []string
		for _, m := range f.sent(f.sender, f.replica()) {
			if _, body := f.read(m); strings.Contains(body, "asks to be enrolled again") && strings.Contains(body, "/asks\r\n") {
				got = append(got, m.to)
			}
		}
		slices.Sort(got)
		want := []string{"RCPT TO:<" + f.bea.Email + ">", "RCPT TO:<" + enroller.Email + ">"}
		if slices.Sort(want); !slices.Equal(got, want) {
			f.Errorf("mail about the device went to %q, want %q", got, want)
		}
	})
}

// A move that waits is mailed to an administrator without a passkey and not to a user who may edit both
// policies with a passkey, but sees no devices: the page of the move is not for that user.
func TestSender_MoveWaiting(t *testing.T) {
	t.Parallel()
	onFeed(t, func(f feed) {
		eve := f.Browser(f.Company, account.Viewer).User
		_, err := f.DB().UpdateUser(f.Context(), f.Company.ID, eve.ID, func(u *account.User) error {
			u.Rights = account.ViewPolicies | account.EditPolicies
			return nil
		})
		f.ok(err)
		f.passkey(eve)
		f.CLI(new(any), "company", "set", "--company", "acme", "--apply-approval", "all", "--approver-age", "0s")
		replica := f.Start()
		device := f.Devices(replica, servertest.FullyManaged(), 1)[0]
		to := f.Env.Policy(f.Company, "Kiosk", policy.Platform)
		f.CLI(new(any), "policy", "set", to.PathName(), "--company", "acme", "--set", "NETWORK_RESET=BLOCK")
		answer := f.Client(replica, access.All).Post("/assets/"+device.AssetID+"/commands/change-policy",
			map[string]string{"policyId": to.PathName()}).Want(f.T, 403)
		var asked struct{ ApprovalURL string }
		answer.JSON(f.T, &asked)
		_, path, _ := strings.Cut(asked.ApprovalURL, replica.PublicURL())
		told := 0
		for _, m := range f.sent(f.sender) {
			_, body := f.read(m)
			if strings.Contains(m.to, eve.Email) {
				f.Errorf("a user who sees no devices has mail: %q", body)
			}
			if strings.Contains(m.to, f.bea.Email) && strings.Contains(body, "https://muster.test"+path+"\r\n") {
				told++
			}
		}
		if path == "" || told != 1 {
			f.Errorf("the administrator has %d mails about the move at %q, want 1", told, path)
		}
	})
}

// A company that was stopped still sends mail; one whose deletion began sends nothing.
func TestSender_StoppedAndDeleted(t *testing.T) {
	t.Parallel()
	onFeed(t, func(f feed) {
		f.CLI(new(any), "company", "stop", "--company", "acme", "--reason", "drill", "--all")
		if got := f.sent(f.sender); len(got) != 1 {
			t.Fatalf("a stopped company sent %d mails", len(got))
		}
		f.Advance(mail.Pause)
		f.CLI(new(any), "company", "resume", "--company", "acme")
		f.numbered()
		_, err := f.DB().UpdateCompany(f.Context(), f.Company.ID, func(c *company.Company) error { c.Enterprise = ""; return nil })
		f.ok(err)
		f.CLI(new(any), "company", "delete", "--company", "acme", "--confirm", "acme", "--export", filepath.Join(f.Dir, "acme.jsonl"))
		if got := f.sent(f.sender); len(got) != 1 {
			t.Errorf("a deleted company sent %d mails", len(got)-1)
		}
	})
}

// slow counts mail, and lets time pass with each.
type slow struct {
	*counts
	after func()
}

func (s slow) Mail(o mail.Outcome) { s.counts.Mail(o); s.after() }

// Who is disabled while the sender is busy with others gets nothing.
func TestSender_DisabledMeanwhile(t *testing.T) {
	t.Parallel()
	onFeed(t, func(f feed) {
		people := []account.User{f.bea, f.Browser(f.Company, account.Admin).User, f.Browser(f.Company, account.Admin).User}
		f.sender.Observer = slow{f.counts, func() {
			f.Advance(15 * time.Second)
			for _, u := range people {
				_, err := f.DB().UpdateUser(f.Context(), f.Company.ID, u.ID, func(u *account.User) error { u.Disabled = true; return nil })
				f.ok(err)
			}
		}}
		f.enroll("d1")
		if got := f.sent(f.sender); len(got) != 1 {
			t.Errorf("%d mails", len(got))
		}
	})
}

// Names of devices add no header, and a long one does not make a long mail.
func TestSender_HostileDevice(t *testing.T) {
	t.Parallel()
	onFeed(t, func(f feed) {
		name := "Lobby\r\nBcc: all@acme.test\r\n\r\nhttp://evil.test \u202e" + strings.Repeat("x", 5000)
		f.ok(f.enrollNamed("d1", name))
		got := f.sent(f.sender)
		if len(got) != 1 {
			t.Fatalf("%d mails", len(got))
		}
		header, body := f.read(got[0])
		if len(header) != 9 || header.Get("Bcc") != "" || len(body) > 1000 || !strings.Contains(body, "Lobby") {
			t.Errorf("the mail is %v %q", header, body)
		}
	})
}
