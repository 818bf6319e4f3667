package mail_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"mime"
	"mime/quotedprintable"
	netmail "net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service/mail"
)

// counts are what an observer noted.
type counts struct {
	mu   sync.Mutex
	mail map[mail.Outcome]int
	down bool
}

func (c *counts) Mail(o mail.Outcome) { c.mu.Lock(); defer c.mu.Unlock(); c.mail[o]++ }

func (c *counts) MailServer(reached bool) { c.mu.Lock(); defer c.mu.Unlock(); c.down = !reached }

// desk is a company in which a decision waits for Bea, and a sender.
type desk struct {
	*servertest.Tenant
	*testing.T
	bea, ada account.User
	server   *server
	sender   *mail.Sender
	counts   *counts
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	return newDeskOn(t, servertest.New(t))
}

func newDeskOn(t *testing.T, env *servertest.Env) *desk {
	t.Helper()
	d := &desk{Tenant: env.NewTenant("acme"), T: t, server: newServer(t), counts: &counts{mail: map[mail.Outcome]int{}}}
	env.CLI(new(any), "company", "set", "--company", "acme", "--destructive-approval", "on", "--approver-age", "0s")
	d.bea, d.ada = env.Browser(d.Company, account.Admin).User, env.Browser(d.Company, account.Admin).User
	d.passkey(d.bea)
	d.sender = d.replica()
	return d
}

func (d *desk) replica() *mail.Sender {
	return &mail.Sender{Client: d.server.client(false), Store: d.DB(), Leases: d.DB(), Holder: resource.NewID(),
		PublicURL: "https://muster.test", Observer: d.counts,
		Now: d.Now, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Open: func(_ string, sealed []byte) ([]byte, error) {
			return sealed, nil
		}}
}

func (d *desk) passkey(u account.User) {
	d.Helper()
	d.ok(d.DB().AddPasskey(d.Context(), account.Passkey{ID: resource.NewID(), UserID: u.ID, Name: "Key", Credential: json.RawMessage(`{}`),
		CreatedAt: d.Now()}))
}

func (d *desk) ok(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// loosens has Ada ask for a control to be loosened, which Bea can confirm.
func (d *desk) loosens(change func(*access.Controls)) {
	d.Helper()
	waiting, err := d.DB().ChangeControls(d.Context(), d.Company.ID, d.ada, func(c *company.Company) { change(&c.Settings.Controls) })
	if d.ok(err); len(waiting) == 0 {
		d.Fatal("nothing waits")
	}
}

func (d *desk) authorization() {
	d.loosens(func(c *access.Controls) { c.DestructiveApproval = false })
}

func (d *desk) limit() {
	d.loosens(func(c *access.Controls) { c.DestructiveLimit = access.DestructiveLimit{} })
}

// round has a sender work, and returns all mail until now.
func (d *desk) round(s *mail.Sender) []taken {
	d.Helper()
	d.ok(s.Round(d.Context()))
	return d.server.all()
}

// read parses a mail strictly.
func (d *desk) read(m taken) (netmail.Header, string) {
	d.Helper()
	got, err := netmail.ReadMessage(strings.NewReader(m.text))
	d.ok(err)
	body, err := io.ReadAll(quotedprintable.NewReader(got.Body))
	d.ok(err)
	return got.Header, string(body)
}

// A decision is mailed once to those who can make it; the next mail is five minutes later
// and sums up. A new sender does not send again.
func TestSender_OnceToWhoDecides(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	if got := d.round(d.sender); len(got) != 0 {
		t.Fatalf("nothing waits, and mail was sent: %q", got)
	}
	d.authorization()
	got := d.round(d.sender)
	if len(got) != 1 || !strings.Contains(got[0].to, d.bea.Email) {
		t.Fatalf("mail is %q", got)
	}
	header, body := d.read(got[0])
	if !strings.Contains(header.Get("Subject"), "turn authorization of destructive commands off") ||
		!strings.Contains(body, "https://muster.test/access/controls/") {
		t.Errorf("the mail is %v %q", header, body)
	}
	d.limit()
	for _, s := range []*mail.Sender{d.sender, d.sender} {
		if got := d.round(s); len(got) != 1 {
			t.Fatalf("within five minutes: %d mails", len(got))
		}
	}
	d.loosens(func(c *access.Controls) {
		c.DestructiveLimit = access.DestructiveLimit{Devices: 9999, Window: time.Minute}
	})
	d.Advance(mail.Pause)
	got = d.round(d.replica())
	if len(got) != 2 {
		t.Fatalf("after five minutes: %d mails", len(got))
	}
	if _, body := d.read(got[1]); strings.Contains(body, "authorization of destructive commands") {
		t.Errorf("the second mail repeats the first: %q", body)
	}
	d.Advance(mail.Pause)
	if got = d.round(d.replica()); len(got) != 2 {
		t.Errorf("nothing is new, and there are %d mails", len(got))
	}
}

// The loosening that a sole administrator asked for is mailed to that administrator: it takes effect by itself.
func TestSender_SoleAdministrator(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	disable := func(off bool) {
		t.Helper()
		_, err := d.DB().UpdateUser(d.Context(), d.Company.ID, d.bea.ID, func(u *account.User) error { u.Disabled = off; return nil })
		d.ok(err)
	}
	disable(true)
	d.authorization()
	got := d.round(d.sender)
	if len(got) != 1 || !strings.Contains(got[0].to, d.ada.Email) {
		t.Fatalf("with one administrator the mail is %q, want one to %s", got, d.ada.Email)
	}
	disable(false)
	d.Advance(mail.Pause)
	d.limit()
	got = d.round(d.sender)
	if len(got) != 2 || !strings.Contains(got[1].to, d.bea.Email) {
		t.Fatalf("with two administrators the mail is %q, want one more to %s", got, d.bea.Email)
	}
}

// Of two replicas one sends, and choices are obeyed.
func TestSender_LeaseAndChoice(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.round(d.sender) // takes the lease
	d.authorization()
	other := d.replica()
	if got := d.round(other); len(got) != 0 {
		t.Error("a replica without the lease sends")
	}
	d.CLI(new(any), "user", "mail", "--company", "acme", d.bea.Email, "--mute")
	if got := d.round(d.sender); len(got) != 0 {
		t.Error("a muted user has mail")
	}
	d.CLI(new(any), "user", "mail", "--company", "acme", d.bea.Email, "--event", "proposal.waiting")
	if got := d.round(d.sender); len(got) != 0 {
		t.Error("mail about an event that was not chosen")
	}
	var view struct {
		Muted  bool
		Events []event.Type
	}
	d.CLI(&view, "user", "mail", "--company", "acme", d.bea.Email, "--event", "control.loosening", "--event", "proposal.waiting")
	if view.Muted || len(view.Events) != 2 {
		t.Errorf("the choice is %+v", view)
	}
	if got := d.round(d.sender); len(got) != 1 {
		t.Errorf("%d mails about a chosen event", len(got))
	}
	if err := d.TryCLI(new(any), "user", "mail", "--company", "acme", "missing@acme.test", "--mute"); err == nil {
		t.Error("an unknown user is muted")
	}
}

// What the server refuses for now is sent later, what it refuses for good is not, and
// neither holds up other mail.
func TestSender_Refusals(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	cid := d.Browser(d.Company, account.Admin).User
	d.passkey(cid)
	d.answer("RCPT TO:<"+cid.Email+">", "550 no such user")
	d.answer("RCPT TO:<"+d.bea.Email+">", "450 later")
	d.authorization()
	if got := d.round(d.sender); len(got) != 0 || d.counts.mail[mail.Refused] != 1 || d.counts.mail[mail.Failed] != 1 || d.counts.down {
		t.Fatalf("%d mails, %+v", len(got), d.counts)
	}
	d.answer("RCPT TO:<"+cid.Email+">", "")
	d.answer("RCPT TO:<"+d.bea.Email+">", "")
	if got := d.round(d.sender); len(got) != 0 {
		t.Error("it was tried again at once")
	}
	d.Advance(2 * time.Minute)
	if got := d.round(d.sender); len(got) != 1 || !strings.Contains(got[0].to, d.bea.Email) {
		t.Errorf("mail is %q", got)
	}
}

func (d *desk) answer(line, text string) {
	d.server.mu.Lock()
	defer d.server.mu.Unlock()
	d.server.answers[line] = text
}

// A server that is away loses no mail, and is asked again after growing pauses.
func TestSender_ServerAway(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.authorization()
	d.away(true)
	talks := func() int {
		d.server.mu.Lock()
		defer d.server.mu.Unlock()
		return d.server.talks
	}
	for range 40 {
		d.round(d.sender)
		d.Advance(mail.Every)
	}
	if n := talks(); n < 3 || n > 10 || !d.counts.down {
		t.Errorf("in ten minutes the server was asked %d times, down %t", n, d.counts.down)
	}
	d.away(false)
	d.Advance(time.Hour)
	if got := d.round(d.sender); len(got) != 1 || d.counts.down {
		t.Errorf("after it came back there are %d mails, down %t", len(got), d.counts.down)
	}
}

// Names with line breaks add no header, and are shown whole.
func TestSender_HeaderInjection(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const evil = "Bea\r\nBcc: all@acme.test\r\n\r\nClick http://evil.test \u202etxt"
	_, err := d.DB().UpdateUser(d.Context(), d.Company.ID, d.bea.ID, func(u *account.User) error { u.Name = evil; return nil })
	d.ok(err)
	d.ada, err = d.DB().UpdateUser(d.Context(), d.Company.ID, d.ada.ID, func(u *account.User) error {
		u.Name = "Äda\r\nX-Evil: 1"
		return nil
	})
	d.ok(err)
	d.authorization()
	got := d.round(d.sender)
	if len(got) != 1 {
		t.Fatalf("%d mails", len(got))
	}
	header, _ := d.read(got[0])
	if len(header) != 9 || header.Get("Bcc") != "" || header.Get("X-Evil") != "" {
		t.Errorf("the headers are %v", header)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(header.Get("Subject"))
	if d.ok(err); !strings.Contains(subject, "Äda X-Evil: 1 asked to ") {
		t.Errorf("the subject is %q", subject)
	}
	if to, err := header.AddressList("To"); err != nil || len(to) != 1 || to[0].Address != d.bea.Email {
		t.Errorf("to %v, %v", to, err)
	}
}

// Long names are folded into lines that every mail server takes, and are read as they were.
func TestSender_FoldsHeaders(t *testing.T) {
	t.Parallel()
	for name, wide := range map[string]string{"words": strings.Repeat("日本語 ", 25), "one word": strings.Repeat("🙂", 100),
		"ASCII": strings.Repeat("Long ", 20), "one of ASCII": strings.Repeat("x", 100)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			wide = strings.TrimSpace(wide)
			for _, u := range []*account.User{&d.bea, &d.ada} {
				changed, err := d.DB().UpdateUser(d.Context(), d.Company.ID, u.ID, func(u *account.User) error {
					u.Name = wide
					return nil
				})
				d.ok(err)
				*u = changed
			}
			d.authorization()
			got := d.round(d.sender)
			if len(got) != 1 {
				t.Fatalf("%d mails", len(got))
			}
			head, _, _ := strings.Cut(got[0].text, "\r\n\r\n")
			for line := range strings.SplitSeq(head, "\r\n") {
				if len(line) > 76 && strings.Contains(strings.TrimSpace(line), " ") {
					t.Errorf("a line of the header has %d bytes, want at most 76: %s", len(line), line)
				}
			}
			header, _ := d.read(got[0])
			subject, err := new(mime.WordDecoder).DecodeHeader(header.Get("Subject"))
			if d.ok(err); !strings.Contains(subject, wide+" asked to ") {
				t.Errorf("the subject is %q", subject)
			}
			if to, err := header.AddressList("To"); err != nil || len(to) != 1 || to[0].Name != wide {
				t.Errorf("to %v, %v; want the name %s", to, err, wide)
			}
		})
	}
}

// An invitation is sent with its link, once, and not after it was accepted.
func TestSender_Invitation(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	people := account.Users{Store: d.DB(), Domains: d.DB(), Now: d.Now}
	rights, _ := account.Viewer.Rights()
	u, err := people.Invite(d.Context(), d.ada,
		account.NewUserRequest{Email: "new@acme.test", Name: "Nina", Role: account.Viewer, Rights: &rights})
	d.ok(err)
	invitations := account.Invitations{Store: d.DB(), Now: d.Now, Mail: func(token string) []byte { return []byte(token) }}
	_, err = invitations.Begin(d.Context(), d.ada, u)
	d.ok(err)
	token, err := invitations.Begin(d.Context(), d.ada, u) // replaces the first
	d.ok(err)
	d.answer("RCPT TO:<new@acme.test>", "451 later")
	d.round(d.sender)
	d.answer("RCPT TO:<new@acme.test>", "")
	d.Advance(2 * time.Minute)
	d.round(d.sender)
	d.Advance(time.Hour)
	got := d.round(d.sender)
	if len(got) != 1 {
		t.Fatalf("%d mails", len(got))
	}
	if _, body := d.read(got[0]); !strings.Contains(body, "https://muster.test/invitation#"+token) {
		t.Errorf("the mail is %q", body)
	}
}
