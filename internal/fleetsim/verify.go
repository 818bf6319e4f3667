package fleetsim

import (
	"context"
	"path"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/wait"
)

// entry is a command in the history that the API shows.
type entry struct {
	Type      string
	Status    string
	CreatedAt time.Time
	Outcome   string // empty: none yet
}

// verify waits until what the service reports of every device is right. What is still wrong after Options.Patience is a
// problem of the report.
func (r *rest) verify(ctx context.Context) {
	f := r.fleet
	if len(f.Keys) == 0 {
		return
	}
	versions := r.versions(ctx)
	limited, cancel := context.WithTimeout(ctx, f.Patience)
	defer cancel()
	r.each(ctx, len(f.members), func(n int) {
		if wrong := r.settle(limited, f.members[n], versions); wrong != nil {
			f.problem("device %d: %v", n, wrong)
		}
		f.settled.Add(1)
	})
}

// settle waits until what the service reports of a device is right, and returns what is wrong when ctx ends before.
func (r *rest) settle(ctx context.Context, m *member, versions map[string]int) error {
	var wrong error
	for {
		now := script.Attempt(func() { r.verifyOne(ctx, m, versions) })
		if now == nil {
			return nil
		}
		if wrong == nil || ctx.Err() == nil {
			wrong = now
		}
		if ctx.Err() != nil {
			return wrong
		}
		wait.For(ctx, 5*pollInterval)
	}
}

// versions reads the current version of each policy.
func (r *rest) versions(ctx context.Context) map[string]int {
	versions := map[string]int{}
	if len(r.fleet.Policies) == 0 {
		return versions
	}
	type named struct {
		PathName string
		Version  int
	}
	for p := range listed[named](ctx, r, "/policies?size=100") {
		versions[p.PathName] = p.Version
	}
	return versions
}

// verifyOne ends the script with what is wrong with a device.
func (r *rest) verifyOne(ctx context.Context, m *member, versions map[string]int) {
	var page struct{ Content []entry }
	r.get(ctx, "/assets/"+m.asset+"/commands?size=100", &page)
	if len(page.Content) != len(m.orders) {
		script.Fail("%d commands were sent and the history has %d", len(m.orders), len(page.Content))
	}
	for _, e := range page.Content {
		if e.Status == "IN_PROGRESS" && !m.erased() {
			script.Fail("%s of %s is not final", e.Type, e.CreatedAt)
		}
	}
	var a assetView
	r.get(ctx, "/assets/"+m.asset, &a)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.history = page.Content
	if m.leaves() {
		m.hasLeft(a)
		return
	}
	m.hasPolicy(a, versions)
	m.hasReports(a)
	m.hasCommands()
}

// hasReports: the place and the report that commands asked for can be read.
func (m *member) hasReports(a assetView) {
	for _, e := range m.history {
		if e.Status != "SUCCESS" {
			continue
		}
		switch {
		case e.Type == "LOCATION_UPDATE" && a.ManagedDevice.Location == nil:
			script.Fail("its LOCATION_UPDATE is SUCCESS and it has no location")
		case e.Type == "STATUS_REPORT" && a.ManagedDevice.StatusReport == nil:
			script.Fail("its STATUS_REPORT is SUCCESS and it has no status report")
		}
	}
}

// leaves reports whether the device was told to.
func (m *member) leaves() bool {
	return slices.ContainsFunc(m.orders, func(o order) bool { return o.path == "wipe" || o.path == "relinquish-ownership" })
}

// erased reports whether the device has erased itself. The service knows after
// fifteen minutes of silence, which is not waited for.
func (m *member) erased() bool { return m.ended.Load() && m.device.State().Wiped }

func (m *member) hasLeft(a assetView) {
	if m.erased() {
		return
	}
	if a.Status != "DELETED" || a.ManagedDevice != nil || !m.ended.Load() {
		script.Fail("it was to leave and is %s", a.Status)
	}
	if s := m.device.State(); !s.Wiped && !s.Released {
		script.Fail("it has left and is neither wiped nor released")
	}
}

func (m *member) hasPolicy(a assetView, versions map[string]int) {
	if a.Status != "ACTIVE" || a.ManagedDevice == nil {
		script.Fail("it is %s", a.Status)
		return
	}
	policy := m.policy
	for _, e := range m.history {
		if e.Type == changePolicy && e.Status == "UNCONFIRMED" { // which policy it should have is unknown
			policy = a.ManagedDevice.PolicyID
		}
	}
	want, known := versions[policy]
	if !known {
		return
	}
	if path.Base(a.ManagedDevice.PolicyID) != path.Base(policy) || a.ManagedDevice.PolicyVersionApplied != want {
		script.Fail("it has policy %s version %d, want %s version %d", a.ManagedDevice.PolicyID,
			a.ManagedDevice.PolicyVersionApplied, policy, want)
	}
}

// hasCommands: a command that did not fail was delivered to the device. (A change of
// policy is no message to the device but a state.)
func (m *member) hasCommands() {
	for _, o := range m.orders {
		if o.kind == changePolicy || o.createdAt == 0 {
			continue
		}
		if _, received := m.deliveryOf(o); !received && m.outcome(o) == "SUCCESS" {
			script.Fail("%s of %s never reached it", o.kind, time.UnixMilli(o.createdAt).UTC().Format(time.RFC3339Nano))
		}
	}
}

const changePolicy = "CHANGE_POLICY"

// deliveryOf returns the delivery of an order's command.
func (m *member) deliveryOf(o order) (delivery, bool) {
	for _, d := range m.deliveries {
		if d.kind == o.kind && d.createdAt == o.createdAt {
			return d, true
		}
	}
	return delivery{}, false
}

// outcome is what the history says of an order.
func (m *member) outcome(o order) string {
	for _, e := range m.history {
		if e.Type == o.kind && e.CreatedAt.UnixMilli() == o.createdAt {
			return e.Status
		}
	}
	return ""
}
