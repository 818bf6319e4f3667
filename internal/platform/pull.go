package platform

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/api/pubsub/v1"

	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/wait"
)

// What one replica holds of notifications at most.
const (
	pullers        = 2   // pulls under way, so that one waits while the other works
	batch          = 100 // messages a pull, fewer after answers that were too large
	handlers       = 8   // devices a puller works on at the same time
	handleTimeout  = 30 * time.Second
	redeliverAfter = 10 * time.Second // what could not be handled
)

// delivery is one message with what acknowledges it.
type delivery struct {
	ackID        string
	notification notification
	err          error // of decoding
}

// Notifications pulls the platform's notifications until the context ends. A
// message is acknowledged after what it says is committed; one that our own
// trouble kept from being applied comes again.
func (p *Platform) Notifications(ctx context.Context) error {
	var all sync.WaitGroup
	for range pullers {
		all.Go(func() { p.pullLoop(ctx) })
	}
	all.Wait()
	return ctx.Err()
}

func (p *Platform) pullLoop(ctx context.Context) {
	const slowest = 30 * time.Second
	pause, size := time.Duration(0), int64(batch)
	for ctx.Err() == nil {
		began := p.now()
		messages, err := p.pull(ctx, &size)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause = min(max(2*pause, time.Second), slowest)
			p.pullFails(ctx, err)
			wait.For(ctx, pause)
			continue
		}
		if after, failed := p.pulls.Ended(p.now()); failed {
			p.log.InfoContext(ctx, "the platform's notifications are pulled again", slog.Duration("after", after))
		}
		if len(messages) == 0 && p.now().Sub(began) < idlePull {
			wait.For(ctx, idlePull) // a server that does not wait
		}
		pause = 0
		p.work(ctx, messages)
	}
}

// idlePull is the least time from one empty pull to the next.
const idlePull = 500 * time.Millisecond

// pull waits for at most size messages. It takes as long as the server lets it wait. It halves size for the
// next pull if there is no whole answer, which may have been larger than maxAnswer or too large for the time
// limit, and doubles it after messages came. An empty answer says nothing: the server does not offer the
// messages of a failed pull again until their deadline passes.
func (p *Platform) pull(ctx context.Context, size *int64) ([]*pubsub.ReceivedMessage, error) {
	answer, err := ask(ctx, p, methodPull, free,
		p.pubsub.Projects.Subscriptions.Pull(p.cfg.Subscription, &pubsub.PullRequest{MaxMessages: *size}))
	switch {
	case err != nil || answer == nil:
		*size = max(*size/2, 1)
		return nil, err
	case len(answer.ReceivedMessages) > 0:
		*size = min(2**size, batch)
	}
	return answer.ReceivedMessages, nil
}

// work handles messages and answers for them. It is not interrupted by the end
// of the context, so that what was applied is also acknowledged. It ends within
// handleTimeout, and Config.CallTimeout for all answers.
func (p *Platform) work(ctx context.Context, messages []*pubsub.ReceivedMessage) {
	if len(messages) == 0 {
		return
	}
	handling, handled := context.WithTimeout(context.WithoutCancel(ctx), handleTimeout)
	defer handled()
	var mu sync.Mutex
	answers := map[time.Duration][]string{}
	var all sync.WaitGroup
	slots := make(chan struct{}, handlers)
	for _, deliveries := range byDevice(messages) {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			for _, d := range deliveries {
				again := p.handle(handling, d)
				mu.Lock()
				answers[again] = append(answers[again], d.ackID)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.cfg.CallTimeout)
	defer cancel()
	for _, again := range slices.Sorted(maps.Keys(answers)) { // acknowledged messages first
		ids := answers[again]
		if again == 0 {
			p.acknowledge(ctx, ids)
		} else {
			p.giveBack(ctx, ids, again)
		}
	}
}

// byDevice decodes messages and groups them by the device that they are about,
// in the order of publishing. Devices are independent of each other.
func byDevice(messages []*pubsub.ReceivedMessage) [][]delivery {
	groups := map[string][]delivery{}
	for _, m := range messages {
		if m == nil {
			continue
		}
		d := delivery{ackID: m.AckId}
		d.notification, d.err = decode(m.Message)
		subject := d.notification.subject()
		groups[subject] = append(groups[subject], d)
	}
	var all [][]delivery
	for _, g := range groups {
		slices.SortStableFunc(g, func(a, b delivery) int {
			return a.notification.published.Compare(b.notification.published)
		})
		all = append(all, g)
	}
	return all
}

// acknowledge ends messages. If that fails, they come again, and what was applied is
// recognized.
func (p *Platform) acknowledge(ctx context.Context, ids []string) {
	_, err := ask(ctx, p, methodAcknowledge, free, p.pubsub.Projects.Subscriptions.Acknowledge(p.cfg.Subscription,
		&pubsub.AcknowledgeRequest{AckIds: ids}))
	if err != nil {
		p.log.WarnContext(ctx, "cannot acknowledge notifications; they come again", slog.Any("error", err))
	}
}

// giveBack asks for messages again after a time, also for another program that pulls.
func (p *Platform) giveBack(ctx context.Context, ids []string, after time.Duration) {
	request := &pubsub.ModifyAckDeadlineRequest{AckIds: ids, AckDeadlineSeconds: int64(after / time.Second)}
	_, err := ask(ctx, p, methodModifyDeadline, free, p.pubsub.Projects.Subscriptions.ModifyAckDeadline(p.cfg.Subscription, request))
	if err != nil {
		p.log.WarnContext(ctx, "cannot ask for notifications again; they come when their deadline passes", slog.Any("error", err))
	}
}

// pullFails reports failing pulls, for all pullers together.
func (p *Platform) pullFails(ctx context.Context, err error) {
	since, tell := p.pulls.Failed(err, p.now())
	if !tell {
		return
	}
	level := slog.LevelWarn
	if codeOf(err) == outcome.Denied { // waiting does not help
		level = slog.LevelError
	}
	p.log.LogAttrs(ctx, level, "cannot pull the platform's notifications", slog.Any("error", err), slog.Time("since", since))
}
