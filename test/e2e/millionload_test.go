package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/test/poll"
)

// some is any of the copies, until release is called; its sequence numbers are times.
func (m *million) some() (a *loadAgent, release func()) {
	return m.copied(rand.IntN(*millionAgents - 1))
}

func (m *million) copied(n int) (a *loadAgent, release func()) {
	mine := m.busy[n%len(m.busy)]
	mine <- struct{}{}
	return &loadAgent{id: idOf("device", firstCopy+n), asset: idOf("asset", firstCopy+n), key: m.replicas[0].agents[0].key,
		sequence: time.Now().UnixMicro()}, func() { <-mine }
}

// checkIn lets a device check in that has nothing to do.
func (m *million) checkIn(due time.Time) error {
	a, release := m.some()
	defer release()
	on, _ := m.next()
	answer, err := a.checkIn(on, protocol.CheckinRequest{AgentVersion: "1"})
	if err == nil && len(answer.Commands) > 0 {
		err = fmt.Errorf("device %s is offered a command that was carried out", a.id)
	}
	m.polled.add(time.Since(due))
	return err
}

// command sends a device a command over one replica, which the device fetches and
// acknowledges over the other one.
func (m *million) command(due time.Time) error {
	a, release := m.some()
	defer release()
	on, other := m.next()
	request := ""
	err := m.caller(on).call(context.Background(), "POST", "/assets/"+a.asset+"/commands/status-report", on.key(), nil, &request)
	if err != nil || request == "" {
		return fmt.Errorf("a command was not accepted: %w", err)
	}
	m.events.accept(request)
	fetched := 0
	err = a.fetch(other, func() { fetched++ })
	if err == nil && fetched != 1 {
		err = fmt.Errorf("device %s fetched %d commands, want the one that was accepted", a.id, fetched)
	}
	m.took.add(time.Since(due))
	return err
}

// caller calls the API of a replica.
func (m *million) caller(on *loadFleet) *eventLoad {
	return &eventLoad{client: on.ours.client, address: on.ours.url, keyed: true}
}

// hold keeps the load up, and samples.
func (m *million) hold(t *testing.T) []sample {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), *millionTime)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { m.atRate(ctx, t, *millionCheckIns, m.checkIn) })
	all.Go(func() { m.atRate(ctx, t, *millionCommands, m.command) })
	samples := m.sample(ctx, t, max(time.Second/2, min(5*time.Second, *millionTime/6)))
	all.Wait()
	return samples
}

// verifyFilled fails if a copy is not enrolled as the service would have done it: the company has
// so many devices, and a copy is found by its serial number, and obeys over both replicas.
func (m *million) verifyFilled(t *testing.T) {
	t.Helper()
	on := m.replicas[1]
	read := func(path string, into any) {
		t.Helper()
		if err := m.caller(on).call(t.Context(), "GET", path, on.keys[0], into, nil); err != nil {
			t.Fatal(err)
		}
	}
	var total struct{ Count int }
	if read("/assets/count?status=ACTIVE", &total); total.Count != *millionAgents {
		t.Fatalf("%d devices are active, want %d", total.Count, *millionAgents)
	}
	n := firstCopy + *millionAgents - 2
	var found struct{ Content []struct{ PathName string } }
	read(fmt.Sprintf("/assets?search=LOAD-%d", n), &found)
	if len(found.Content) != 1 || !strings.HasSuffix(found.Content[0].PathName, "/"+idOf("asset", n)) {
		t.Fatalf("the last device is found by its serial number as %+v", found)
	}
	for range 2 {
		if err := errors.Join(m.checkIn(time.Now()), m.command(time.Now())); err != nil {
			t.Fatal(err)
		}
	}
	m.took.take()
	m.polled.take()
}

// follow reads the events from now on. What it returns waits until each accepted command has
// its event, fails for one that has more, and ends the reader.
func (m *million) follow(t *testing.T) (ended func(*testing.T)) {
	t.Helper()
	on := m.replicas[0]
	m.events = m.caller(on)
	m.events.accepted, m.events.results = map[string]bool{}, map[string]int{}
	m.events.onResult = func(at time.Time) { m.eventTimes.add(time.Since(at)) }
	var page struct{ Next string }
	if err := m.events.call(t.Context(), "GET", "/events?after=latest", on.keys[0], &page, nil); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var reader sync.WaitGroup
	reader.Go(func() { m.events.read(ctx, on.keys[0], page.Next) })
	return func(t *testing.T) {
		t.Helper()
		poll.Until(t, "each command has its event", m.events.allReported)
		stop()
		reader.Wait()
		m.events.check(t)
	}
}

// settled fails unless each accepted command succeeded, and nothing is left to be delivered.
func (m *million) settled(t *testing.T) {
	t.Helper()
	var succeeded, others, left int
	err := m.pool.QueryRowContext(t.Context(), `SELECT COUNT(*) FILTER (WHERE state = 'SUCCESS'),
		COUNT(*) FILTER (WHERE state <> 'SUCCESS'), (SELECT COUNT(*) FROM agent_deliveries) FROM commands`).Scan(&succeeded, &others, &left)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(m.events.accepted); succeeded != want || others+left > 0 {
		t.Errorf("%d commands succeeded, %d did not, %d deliveries are left; want %d, 0, 0", succeeded, others, left, want)
	}
}
