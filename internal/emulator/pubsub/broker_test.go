package pubsub_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/emulator/pubsub"
)

const (
	topic = "projects/p/topics/t"
	sub   = "projects/p/subscriptions/s"
)

func newBroker(t testing.TB, now func() time.Time) *pubsub.Broker {
	t.Helper()
	b := pubsub.New(now)
	if err := b.CreateTopic(topic); err != nil {
		t.Fatal(err)
	}
	if err := b.CreateSubscription(pubsub.Subscription{Name: sub, Topic: topic}); err != nil {
		t.Fatal(err)
	}
	return b
}

// A subscriber that acknowledges some messages, refuses others and lets the rest
// lapse gets every message until it acknowledged it, and none after that.
func TestBroker_DeliversAtLeastOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		clock := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
		b := pubsub.New(func() time.Time { return clock })
		if err := errors.Join(b.CreateTopic(topic), b.CreateSubscription(pubsub.Subscription{Name: sub, Topic: topic})); err != nil {
			t.Fatal(err)
		}
		open := map[string]bool{}      // published, not acknowledged
		held := map[string]time.Time{} // delivered until
		ackIDs := map[string]string{}  // of the last delivery, by message
		pick := func(label string) []string {
			all := slices.Sorted(maps.Keys(held))
			if len(all) == 0 {
				return nil
			}
			return rapid.SliceOfNDistinct(rapid.SampledFrom(all), 0, len(all), rapid.ID[string]).Draw(t, label)
		}
		pull := func() {
			got, err := b.Pull(context.Background(), sub, rapid.IntRange(1, 5).Draw(t, "limit"), 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range got {
				id := r.Message.ID
				if !open[id] {
					t.Fatalf("%s was delivered after it was acknowledged", id)
				}
				if until, ok := held[id]; ok && clock.Before(until) {
					t.Fatalf("%s was delivered twice before its deadline", id)
				}
				held[id], ackIDs[id] = clock.Add(pubsub.DefaultAckDeadline), r.AckID
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				r, err := b.Publish(topic, pubsub.Message{Data: []byte("x")})
				if err != nil {
					t.Fatal(err)
				}
				open[r.ID] = true
			},
			"pull": func(*rapid.T) { pull() },
			"acknowledge": func(t *rapid.T) {
				for _, id := range pick("acknowledged") {
					if err := b.Acknowledge(sub, []string{ackIDs[id], "unknown"}); err != nil {
						t.Fatal(err)
					}
					delete(open, id)
					delete(held, id)
				}
			},
			"refuse": func(t *rapid.T) {
				for _, id := range pick("refused") {
					if err := b.ModifyAckDeadline(sub, []string{ackIDs[id]}, 0); err != nil {
						t.Fatal(err)
					}
					delete(held, id)
				}
			},
			"restart": func(*rapid.T) {
				b.Restore(b.Snapshot())
				clear(held)
			},
			"wait": func(t *rapid.T) {
				clock = clock.Add(time.Duration(rapid.IntRange(0, 15).Draw(t, "seconds")) * time.Second)
			},
			"": func(t *rapid.T) {
				if b.Backlog(sub) != len(open) {
					t.Fatalf("backlog %d, want %d", b.Backlog(sub), len(open))
				}
			},
		})
		clock = clock.Add(time.Minute)
		clear(held)
		for range len(open) {
			pull()
		}
		if len(held) != len(open) {
			t.Fatalf("%d of %d messages came in the end", len(held), len(open))
		}
	})
}

func TestBroker_PublishTimesGrow(t *testing.T) {
	t.Parallel()
	fixed := time.Date(2026, 11, 21, 0, 0, 0, 1, time.UTC)
	b := newBroker(t, func() time.Time { return fixed })
	for range 5 {
		if _, err := b.Publish(topic, pubsub.Message{}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := b.Pull(t.Context(), sub, 10, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(got); i++ {
		if !got[i].Message.PublishTime.After(got[i-1].Message.PublishTime) || got[i].Message.ID == got[i-1].Message.ID {
			t.Errorf("%+v after %+v", got[i].Message, got[i-1].Message)
		}
	}
}

// A backlog is bounded in number and in time.
func TestBroker_BacklogIsBounded(t *testing.T) {
	t.Parallel()
	clock := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	b := newBroker(t, func() time.Time { return clock })
	for i := range pubsub.MaxBacklog + 10 {
		if _, err := b.Publish(topic, pubsub.Message{Data: fmt.Append(nil, i)}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := b.Pull(t.Context(), sub, 1, 0)
	if err != nil || string(got[0].Message.Data) != "10" || b.Backlog(sub) != pubsub.MaxBacklog {
		t.Errorf("the oldest is %s of %d, %v", got[0].Message.Data, b.Backlog(sub), err)
	}
	clock = clock.Add(pubsub.Retention + time.Second)
	if got, err := b.Pull(t.Context(), sub, 1, 0); err != nil || len(got) != 0 || b.Backlog(sub) != 0 {
		t.Errorf("kept %d too long, %v", b.Backlog(sub), err)
	}
}

// Waiting pulls wake at a message, one each, and end with their context.
func TestPull_Waits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, time.Now)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		results := make(chan int, 3)
		for range 3 {
			go func() {
				got, _ := b.Pull(ctx, sub, 1, time.Hour)
				results <- len(got)
			}()
		}
		synctest.Wait()
		for range 2 {
			if _, err := b.Publish(topic, pubsub.Message{}); err != nil {
				t.Fatal(err)
			}
		}
		if got := <-results + <-results; got != 2 {
			t.Errorf("two messages woke pulls with %d", got)
		}
		cancel()
		if got := <-results; got != 0 {
			t.Errorf("an ended pull got %d", got)
		}
	})
}

func TestBroker_ProjectsStayApart(t *testing.T) {
	t.Parallel()
	b := newBroker(t, time.Now)
	if err := errors.Join(b.CreateTopic("projects/q/topics/t"), b.CreateTopic("projects/p/topics/u"),
		b.CreateSubscription(pubsub.Subscription{Name: "projects/p/subscriptions/all"})); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"projects/q/topics/t", "projects/p/topics/u", topic} {
		if _, err := b.Publish(name, pubsub.Message{}); err != nil {
			t.Fatal(err)
		}
	}
	if b.Backlog(sub) != 1 || b.Backlog("projects/p/subscriptions/all") != 2 {
		t.Errorf("backlogs are %d and %d", b.Backlog(sub), b.Backlog("projects/p/subscriptions/all"))
	}
	if _, err := b.Publish("projects/p/topics/none", pubsub.Message{}); !errors.Is(err, pubsub.ErrNotFound) {
		t.Errorf("published to nothing: %v", err)
	}
	for _, err := range []error{
		b.Acknowledge("none", nil), b.ModifyAckDeadline("none", nil, 0), b.DeleteTopic("none"), b.DeleteSubscription("none"),
	} {
		if !errors.Is(err, pubsub.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	}
	if err := b.DeleteTopic(topic); err != nil {
		t.Fatal(err)
	}
	if b.Backlog(sub) != 1 {
		t.Error("a subscription lost its messages with its topic")
	}
}

// Settle waits for active subscribers only.
func TestBroker_Settle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, time.Now)
		publish := func() []pubsub.Receipt {
			r, err := b.Publish(topic, pubsub.Message{})
			if err != nil {
				t.Fatal(err)
			}
			return []pubsub.Receipt{r}
		}
		settle := func(receipts []pubsub.Receipt) (bool, time.Duration) {
			begin := time.Now()
			all := b.Settle(t.Context(), receipts, 4*time.Second)
			return all, time.Since(begin)
		}
		if all, took := settle(publish()); !all || took != 0 {
			t.Errorf("waited %v without a subscriber", took)
		}
		receipts := publish()
		go func() {
			got, _ := b.Pull(t.Context(), sub, 10, 0)
			for _, r := range got {
				time.Sleep(3 * time.Second)
				_ = b.Acknowledge(sub, []string{r.AckID})
			}
		}()
		synctest.Wait()
		if all, took := settle(append(receipts, publish()...)); all || took != 10*time.Second {
			t.Errorf("all: %v after %v", all, took) // 3 s, 3 s, and 4 s of patience
		}
		if _, err := b.Pull(t.Context(), sub, 10, 0); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if b.Settle(ctx, publish(), time.Hour) {
			t.Error("settled with an ended context")
		}
	})
}
