package mail

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/approval/attention"
)

// companies sends mail about what waits and what happened, company by company.
func (s *Sender) companies(ctx context.Context) error {
	for after := ""; ; {
		companies, err := s.Store.MailCompanies(ctx, after, batch)
		for _, q := range companies {
			for again := true; again && err == nil; {
				again, err = s.company(ctx, q)
			}
			after = q.CompanyID
		}
		if err != nil || len(companies) < batch {
			return err
		}
	}
}

// state is what the sender knows of a company, and when it read that.
type state struct {
	id, name string
	controls access.Controls
	items    []attention.Item
	people   []attention.Recipient
	head     int64 // of the company's history
	read     time.Time
}

// mostItems is how many items of one kind are looked at for a company's mail. They are of all its people,
// each of whom may see a few of them.
const mostItems = 1000

func (s *Sender) state(ctx context.Context, q attention.Query) (o state, err error) {
	o.id, o.read = q.CompanyID, s.Now()
	head, err := s.Store.EventHead(ctx, q.CompanyID)
	if err != nil {
		return o, err
	}
	o.head = head.Last
	q.Most = mostItems
	if o.items, err = s.Store.Attention(ctx, q); err != nil {
		return o, err
	}
	if o.name, o.controls, err = s.Store.MailControls(ctx, q.CompanyID); err != nil {
		return o, err
	}
	o.people, err = s.Store.Recipients(ctx, q.CompanyID)
	return o, err
}

// company sends the mail of a company's users. It ends early, to be called again, when what
// it knows of them has become stale: who lost a right since then gets nothing.
func (s *Sender) company(ctx context.Context, q attention.Query) (again bool, err error) {
	o, err := s.state(ctx, q)
	if err != nil {
		return false, err
	}
	var passed []string
	sent := false
	for _, to := range o.people {
		news, pending, err := s.news(ctx, o, to)
		if err != nil {
			return false, err
		}
		l := digest{to: to, items: o.due(to), news: news}
		switch {
		case len(l.items) == 0 && !l.settled(o.read):
			if to.Position < o.head && !pending { // none of the events up to the head is for this user
				passed = append(passed, to.UserID)
			}
		case sent && s.Now().Sub(o.read) > stale:
			return true, s.Store.MailPassed(ctx, o.id, passed, o.head)
		default:
			if err := s.tell(ctx, o, l); err != nil {
				return false, err
			}
			sent = true
		}
	}
	return false, s.Store.MailPassed(ctx, o.id, passed, o.head)
}

// news are the events that a user follows and had no mail about. They are pending, and the user's position stays before
// them, if there are some, or if it is too early to look.
func (s *Sender) news(ctx context.Context, o state, to attention.Recipient) (news []attention.News, pending bool, err error) {
	if to.Position >= o.head || len(to.Follows()) == 0 {
		return nil, false, nil
	}
	if o.read.Before(to.NextAt) {
		return nil, true, nil
	}
	news, err = s.Store.News(ctx, attention.NewsQuery{CompanyID: o.id, After: to.Position, Upto: o.head,
		Since: o.read.Add(-attention.MailedFor), Types: to.Follows(), See: to.Sight()})
	return news, len(news) > 0, err
}

// due are the items that a user gets mail about now and had none yet: those that the user
// can decide, or has the rights for where no user can, paused jobs of their own, and the loosening of a control that a
// sole administrator asked for.
func (o state) due(to attention.Recipient) (fresh []attention.Item) {
	if o.read.Before(to.NextAt) {
		return nil
	}
	for _, i := range o.items {
		made := to.Made(i)
		if !to.Choice.Wants(i.Event(), to.Manages || made) || slices.Contains(to.Mailed, i.ID) || o.read.Sub(i.At) > attention.MailedFor {
			continue
		}
		may := func(p attention.Recipient) bool { return i.May(p.Approver, o.controls, o.read) }
		if made || may(to) || i.Concerns(to.Approver, o.controls) && !slices.ContainsFunc(o.people, may) || o.alone(to, i) {
			fresh = append(fresh, i)
		}
	}
	return fresh
}

// alone reports whether a user asked for the loosening of a control, and no other user can have mail about it. It takes
// effect by itself after a day: the mail tells the user if another person used the session.
func (o state) alone(to attention.Recipient, i attention.Item) bool {
	return i.Kind == attention.Loosening && i.Matter.AskedBy == to.UserID && !to.Disabled && i.Seen(to.Approver) &&
		!slices.ContainsFunc(o.people, func(p attention.Recipient) bool { return i.Concerns(p.Approver, o.controls) })
}

// tell sends one mail about all that is new for a user. It notes what the server has taken
// also where the replica is being stopped, so that no other one sends it again.
func (s *Sender) tell(ctx context.Context, o state, l digest) error {
	to, text := l.to, l.text(s.PublicURL, s.Now())
	ids, key := make([]string, len(l.items)), fmt.Sprint(to.UserID, " ", o.head)
	for i, item := range l.items {
		ids[i] = item.ID
		key += fmt.Sprint(" ", item.ID, " ", item.At.UnixMilli()) // a job may be paused again
	}
	outcome, failed := s.send(ctx, to.Email, message(s.Client.Config.From, to.Name, to.Email, l.subject(o.name), text, key, s.Now()))
	var err error
	switch outcome {
	case Failed:
		err = s.Store.MailFailed(ctx, o.id, to.UserID, s.Now().Add(retry(to.Failures)))
	case Sent, Refused: // what the server refuses for good is not sent again
		err = s.Store.MailSent(context.WithoutCancel(ctx), o.id, to.UserID, ids, o.head, s.Now().Add(Pause))
	}
	return errors.Join(failed, err)
}
