package emulator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/discovery"
	"github.com/musterhq/muster/internal/emulator/pubsub"
)

// Emulator is the vendor's platform in one process. Its methods may be called at
// the same time.
type Emulator struct {
	options    Options
	now        func() time.Time
	logger     *slog.Logger
	management *discovery.Document
	routes     []route
	handler    http.Handler
	broker     *pubsub.Broker
	faults     *faultTable
	calls      *callLog
	life       context.Context // ends when Run ends
	end        context.CancelFunc
	started    atomic.Bool

	mu       sync.Mutex // guards all below; see world.go
	settings Settings
	world    world
	events   schedule
	quota    bucket
	random   *rand.Rand
	dirty    bool // the state changed since it was saved
}

// New makes an emulator, from its data directory if it has one. Its simulated
// devices move only while [Emulator.Run] runs.
func New(options Options) (*Emulator, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	e := &Emulator{
		options: options, now: options.Now, logger: options.Logger,
		broker: pubsub.New(options.Now), faults: &faultTable{}, calls: &callLog{},
		events: schedule{wake: make(chan struct{}, 1)},
	}
	e.life, e.end = context.WithCancel(context.Background())
	if err := e.loadDocuments(); err != nil {
		return nil, err
	}
	e.handler = e.newHandler()
	e.clear()
	if err := e.restore(); err != nil {
		return nil, err
	}
	return e, nil
}

func (e *Emulator) loadDocuments() error {
	management, err1 := discovery.Load()
	messaging, err2 := discovery.LoadMessaging()
	queueing, err3 := discovery.LoadPubSub()
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("emulator: %w", err)
	}
	e.management = management
	e.routes = []route{
		{document: queueing, methods: pubsubMethods()},
		{document: messaging, methods: map[string]handler{"fcm.projects.messages.send": sendMessage}},
		{document: management, methods: managementMethods(), isManagement: true},
	}
	return nil
}

// clear puts everything back to the start. Callers other than New hold e.mu.
func (e *Emulator) clear() {
	e.settings = e.options.Settings
	e.world = newWorld()
	e.events.heap = nil
	e.events.nudge()
	e.quota = bucket{}
	e.seed(e.settings.Notifications.Seed)
	e.broker.Restore(pubsub.Snapshot{
		Topics: []string{topicName(DefaultProject)},
		Subscriptions: []pubsub.QueueSnapshot{{Subscription: pubsub.Subscription{
			Name:        "projects/" + DefaultProject + "/subscriptions/" + DefaultSubscription,
			Topic:       topicName(DefaultProject),
			AckDeadline: pubsub.DefaultAckDeadline,
		}}},
	})
	e.faults.clear()
	e.calls.clear()
	e.touch()
}

// seed makes the emulator's chances reproducible.
func (e *Emulator) seed(seed uint64) {
	e.random = rand.New(rand.NewPCG(seed, 1))
}

// Handler serves the vendor's API, Pub/Sub, FCM, the token endpoint, the sign-up
// page and the control API.
func (e *Emulator) Handler() http.Handler { return e.handler }

// errRunning refuses a second Run.
var errRunning = errors.New("emulator: Run is under way already, or was before")

// Run drives the simulated devices and saves the state until the context ends.
// It may be called once. It returns nil when the context ended and the state is
// saved.
func (e *Emulator) Run(ctx context.Context) error {
	if e.started.Swap(true) {
		return errRunning
	}
	defer e.end()
	var nextSave time.Time
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		pause := e.runSome()
		for pause == 0 { // more is due than runs at a time
			pause = e.runSome()
		}
		pause = min(pause, e.saveDue(&nextSave))
		timer.Reset(pause)
		select {
		case <-ctx.Done():
			return e.Save()
		case <-e.events.wake:
		case <-timer.C:
		}
	}
}

// touch notes that the state changed. Callers hold e.mu.
func (e *Emulator) touch() {
	if e.options.DataDir != "" && !e.dirty {
		e.dirty = true
		e.events.nudge()
	}
}
