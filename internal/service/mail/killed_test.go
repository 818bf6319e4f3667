package mail_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service/mail"
)

// deaf is the store of a replica that is killed where it would note that a mail was sent.
type deaf struct{ attention.MailStore }

func (deaf) MailSent(context.Context, string, string, []string, int64, time.Time) error {
	runtime.Goexit()
	return nil
}

func (deaf) LetterDone(context.Context, attention.Letter, bool) error { runtime.Goexit(); return nil }

// brief is a lease whose holder is killed before its first mail.
type brief struct {
	mail.Leases
	calls int
}

func (b *brief) Lease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error) {
	if b.calls++; b.calls == 2 { // the first is of the round
		runtime.Goexit()
	}
	return b.Leases.Lease(ctx, name, holder, ttl)
}

// killed has a replica work until it is killed, and lets its lease end: the next replica
// has to wait for that.
func (d *desk) killed(change func(*mail.Sender)) {
	d.Helper()
	s := d.replica()
	change(s)
	done := make(chan error, 1)
	go func() {
		defer close(done)
		done <- s.Round(d.Context())
	}()
	if err, ended := <-done; ended {
		d.Fatal("the replica was not killed: ", err)
	}
	before := len(d.server.all())
	if got := d.round(d.replica()); len(got) != before {
		d.Errorf("%d mails were sent while the killed replica has the lease", len(got)-before)
	}
	d.Advance(time.Minute + time.Second)
}

// A replica that is killed after the server took a mail, and before that is noted, has the
// next one send it again, with the same Message-ID; one that is killed before has it sent
// once. Nothing is sent a third time.
func TestSender_Killed(t *testing.T) {
	t.Parallel()
	soon := func(d *desk) { // the text counts the minutes that are left
		d.authorization()
		d.Advance(23*time.Hour + 10*time.Minute)
	}
	for what, occasion := range map[string]func(*desk){"decision": (*desk).authorization, "decision that ends soon": soon,
		"invitation": (*desk).invite} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
				d := newDeskOn(t, env)
				occasion(d)
				d.killed(func(s *mail.Sender) { s.Leases = &brief{Leases: d.DB()} })
				d.killed(func(s *mail.Sender) { s.Store = deaf{d.DB()} })
				got := d.round(d.replica())
				if len(got) != 2 {
					t.Fatalf("%d mails, want one from the replica that was killed and one from the next: %q", len(got), got)
				}
				first, text := d.read(got[0])
				second, again := d.read(got[1])
				if id := first.Get("Message-ID"); id == "" || id != second.Get("Message-ID") || got[0].to != got[1].to {
					t.Errorf("the repeated mail is another one: %v, %v", first, second)
				}
				if (text == again) != (what != "decision that ends soon") {
					t.Errorf("the texts are %q and %q", text, again)
				}
				d.Advance(mail.Pause)
				if got = d.round(d.replica()); len(got) != 2 {
					t.Errorf("%d mails: it was sent a third time", len(got))
				}
			})
		})
	}
}

// A replica that is stopped after the server took a mail notes that: it is sent once.
func TestSender_StoppedWhileSending(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		d := newDeskOn(t, env)
		d.authorization()
		ctx, stop := context.WithCancel(d.Context())
		stopped := d.replica()
		stopped.Observer = stopper{d.counts, stop}
		if err := stopped.Round(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		d.Advance(mail.Pause)
		if got := d.round(d.replica()); len(got) != 1 {
			t.Errorf("%d mails, want 1", len(got))
		}
	})
}

// stopper stops a replica as soon as a mail was sent.
type stopper struct {
	mail.Observer
	stop func()
}

func (s stopper) Mail(o mail.Outcome) {
	s.Observer.Mail(o)
	s.stop()
}

// away has the server be away, or there again.
func (d *desk) away(is bool) {
	text := ""
	if is {
		text = "421 not today"
	}
	d.answer("EHLO", text)
	d.answer("HELO", text)
}

// A replica whose server fails gives another one the lease, and says for as long as it waits that mail
// fails, unless the other goes on sending.
func TestSender_AnotherSends(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		d := newDeskOn(t, env)
		d.authorization()
		d.away(true)
		other := d.replica()
		otherCounts := &counts{mail: map[mail.Outcome]int{}}
		other.Observer = otherCounts
		for range 1 + int(4*time.Minute/mail.Every) { // each is the one that sends, in turns
			d.round(d.sender)
			if d.Advance(mail.Every / 2); !d.counts.down {
				t.Fatal("the server is away, and the replica that failed does not say so")
			}
			d.round(other)
			d.Advance(mail.Every / 2)
		}
		if !otherCounts.down {
			t.Fatal("the server is away, and the other replica does not say so")
		}
		d.away(false)
		fresh := d.replica()
		fresh.Observer = &counts{mail: map[mail.Outcome]int{}}
		d.round(d.sender) // a replica that waits has not kept the lease
		d.round(other)
		d.invite()
		if got := d.round(fresh); len(got) == 0 {
			t.Fatal("a replica that can send sends nothing")
		}
		if d.round(d.sender); !d.counts.down {
			t.Error("another replica has the lease for the first time, and the replica that failed takes that for a mail")
		}
		for range int(time.Minute / mail.Every) {
			d.Advance(mail.Every)
			d.round(fresh)
			d.round(d.sender)
		}
		if d.counts.down {
			t.Error("mail fails at the replica that does not send")
		}
	})
}

// A replica whose server failed, and that has nothing to send any more, notes that the server is there again.
func TestSender_NothingLeft(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.invite()
	d.away(true)
	if d.round(d.sender); !d.counts.down {
		t.Fatal("the server is away, and mail does not fail")
	}
	d.CLI(new(any), "user", "delete", "--company", "acme", "new@acme.test")
	d.Advance(time.Minute)
	if d.round(d.sender); !d.counts.down {
		t.Error("nothing is to be sent, and mail does not fail where the server is away")
	}
	d.away(false)
	d.Advance(time.Minute)
	if got := d.round(d.sender); len(got) != 0 || d.counts.down {
		t.Errorf("the server is there again: %d mails, mail fails: %t", len(got), d.counts.down)
	}
}

// invite has a person be invited by mail.
func (d *desk) invite() {
	d.Helper()
	people := account.Users{Store: d.DB(), Domains: d.DB(), Now: d.Now}
	rights, _ := account.Viewer.Rights()
	u, err := people.Invite(d.Context(), d.ada,
		account.NewUserRequest{Email: "new@acme.test", Name: "Nina", Role: account.Viewer, Rights: &rights})
	d.ok(err)
	_, err = account.Invitations{Store: d.DB(), Now: d.Now, Mail: func(token string) []byte { return []byte(token) }}.Begin(d.Context(),
		d.ada, u)
	d.ok(err)
}

// A replica without the key of an invitation, as before its restart in a rotation of the key file, keeps it for later.
func TestSender_KeyOfAnotherReplica(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		d := newDeskOn(t, env)
		d.invite()
		open := d.sender.Open
		d.sender.Open = func(string, []byte) ([]byte, error) { return nil, errors.New("sealed with another key") }
		for range 2 {
			if got := d.round(d.sender); len(got) != 0 {
				t.Fatalf("%d mails without the key", len(got))
			}
		}
		d.sender.Open = open
		d.Advance(2 * time.Minute)
		if got := d.round(d.sender); len(got) != 1 {
			t.Errorf("%d mails with the key, want the invitation", len(got))
		}
	})
}

// An invitation whose mail the server refuses for good is in the activity log, once.
func TestSender_RefusedInvitation(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		d := newDeskOn(t, env)
		d.invite()
		d.answer("RCPT TO:<new@acme.test>", "550 no such user")
		for range 2 {
			d.round(d.sender)
			d.Advance(time.Hour)
		}
		entries, err := d.DB().Activity(d.Context(), activity.Filter{CompanyID: d.Company.ID, Area: "user", Outcome: activity.Failed},
			activity.Cursor{}, 10)
		if d.ok(err); len(entries) != 1 || entries[0].Action != activity.UserInvited || entries[0].Target.Name != "new@acme.test" {
			t.Errorf("the log has of the refusal %+v", entries)
		}
	})
}

// stopping are the leases of a replica that is stopped as it begins its first mail.
type stopping struct {
	mail.Leases
	stop  context.CancelFunc
	calls int
}

func (l *stopping) Lease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error) {
	held, err := l.Leases.Lease(ctx, name, holder, ttl)
	if l.calls++; l.calls == 2 { // the first is of the round
		l.stop()
	}
	return held, err
}

// lost are the leases of a replica that another one took over from as it began its first mail.
type lost struct {
	mail.Leases
	calls int
}

func (l *lost) Lease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error) {
	if l.calls++; l.calls == 2 { // the first is of the round
		return false, nil
	}
	return l.Leases.Lease(ctx, name, holder, ttl)
}

// A mail that was not tried is not put off: who has the lease sends it at once.
func TestSender_LeaseLost(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.authorization()
	d.Advance(mail.Settle + time.Minute)
	d.sender.Leases = &lost{Leases: d.DB()}
	if got := d.round(d.sender); len(got) != 0 {
		t.Fatalf("%d mails without the lease", len(got))
	}
	if got := d.round(d.sender); len(got) != 1 {
		t.Errorf("%d mails with the lease, want 1", len(got))
	}
}

// A replica that is stopped ends the mail that it has begun and notes it, and the next
// replica goes on at once.
func TestSender_Stopped(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		d := newDeskOn(t, env)
		d.authorization()
		d.Advance(mail.Settle + time.Minute)
		ctx, stop := context.WithCancel(d.Context())
		defer stop()
		s := d.replica()
		s.Leases = &stopping{Leases: d.DB(), stop: stop}
		_ = s.Round(ctx)
		s.Leave(ctx)
		if got := len(d.server.all()); got != 1 {
			t.Fatalf("the replica that was stopped sent %d mails, want the one that it began", got)
		}
		d.invite() // by the next replica, which need not wait for the end of the lease
		got := d.round(d.replica())
		if len(got) != 2 || got[0].to == got[1].to {
			t.Errorf("after the next replica there are %d mails, want the one and an invitation: %q", len(got), got)
		}
	})
}
