package ops

import (
	"cmp"
	"net/http"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/platform"
	"github.com/musterhq/muster/internal/service/mail"
	"github.com/musterhq/muster/internal/surface/edge"
	"github.com/musterhq/muster/internal/surface/mcp"
)

// Metrics counts what the service does. Labels come from fixed sets: no id,
// name or text of a caller or a device ever becomes one.
type Metrics struct {
	registry *prometheus.Registry

	requests *prometheus.HistogramVec
	refusals *prometheus.CounterVec
	commands *prometheus.CounterVec
	calls    *prometheus.HistogramVec
	failures *prometheus.CounterVec
	lag      prometheus.Histogram
	notified *prometheus.CounterVec
	behind   *prometheus.GaugeVec
	chains   prometheus.Gauge
	lost     prometheus.Gauge
	rollouts prometheus.Gauge
	backup   prometheus.Gauge
	webhooks *prometheus.GaugeVec
	hooked   *prometheus.CounterVec
	mails    *prometheus.CounterVec
	mailDown prometheus.Gauge
	now      func() time.Time
	last     atomic.Pointer[notification]
}

// notification is when one was applied, and how old it was then.
type notification struct {
	at  time.Time
	lag time.Duration
}

// LastNotification returns how old the last notification was when this replica applied it, and
// when that was; zero: it applied none.
func (m *Metrics) LastNotification() (lag time.Duration, at time.Time) {
	if n := m.last.Load(); n != nil {
		return n.lag, n.at
	}
	return 0, time.Time{}
}

// NewMetrics returns the metrics of one service, at zero.
func NewMetrics(now func() time.Time) *Metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	factory := promauto.With(registry)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return factory.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return factory.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	states := func(name, help string) *prometheus.GaugeVec {
		return factory.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"state"})
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return factory.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	m := &Metrics{
		registry: registry, now: now,
		requests: histogram("muster_http_request_duration_seconds", "Time to answer a request, by operation and status.",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 30}, "operation", "status"),
		refusals: counter("muster_budget_refusals_total", "Requests refused because the caller's budget was spent, by operation.",
			"operation"),
		commands: counter("muster_commands_total", "Commands by type and by the state that they reached.", "type", "outcome"),
		calls: histogram("muster_vendor_call_duration_seconds", "Calls of the vendor's API, by method and class of outcome.",
			[]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}, "method", "class"),
		failures: counter("muster_vendor_failures_total", "Calls of the vendor's API that did not succeed, by class of outcome.", "class"),
		lag: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "muster_notification_lag_seconds", Help: "Time from the platform's publishing of a notification to its being applied.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 3600},
		}),
		notified: counter("muster_notifications_total", "Notifications of the platform, by kind and by what became of them.", "kind",
			"outcome"),
		behind: states("muster_policies_behind", "Policies whose saved version the platform does not hold: waiting, or failing. The same "+
			"on every replica, at most 15 s old."),
		chains: gauge("muster_activity_chains_broken", "Companies whose activity log has a head that this service has not signed."),
		lost: gauge("muster_enterprises_lost",
			"Companies whose enterprise the platform does not have. The same on every replica, at most 15 s old."),
		rollouts: gauge("muster_agent_rollouts_paused",
			"Rollouts of the agent that paused because devices were lost. The same on every replica, at most 15 s old."),
		mails: counter("muster_mails_total", "Mail by what became of it: sent, refused by the server for good, or failed and tried again.",
			"outcome"),
		mailDown: gauge("muster_mail_failing", "1 if the mail server could not be used at the last attempt of this replica, else 0."),
		webhooks: states("muster_webhooks", "Webhooks that the service disabled, and enabled ones with events that their receiver did not "+
			"take yet. The same on every replica, at most 15 s old."),
		hooked: counter("muster_webhook_calls_total", "Calls of webhooks' receivers, by whether the receiver took the event.", "outcome"),
		backup: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "muster_last_backup_seconds", Help: "When muster backup last copied the embedded database, in Unix seconds; 0: never.",
		}),
	}
	m.begin()
	return m
}

// read adds a metric that is read when metrics are.
func (m *Metrics) read(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

// Build names the build, as labels of a metric that is always 1.
func (m *Metrics) Build(version, revision string) {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "muster_build_info", Help: "The build that runs; always 1."},
		[]string{"version", "revision", "go"})
	m.registry.MustRegister(gauge)
	gauge.WithLabelValues(version, revision, runtime.Version()).Set(1)
}

// Storage has the writes that the disk refused read when metrics are and, for an embedded
// database, what the disk has left and when it was last backed up.
func (m *Metrics) Storage(failures func() int64, free func() (int64, bool)) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "muster_database_write_failures_total", Help: "Writes that the database's disk refused: it is full, failing or not writable.",
	}, func() float64 { return float64(failures()) }))
	if _, known := free(); !known {
		return
	}
	m.registry.MustRegister(m.backup)
	m.read("muster_disk_free_bytes", "What the disk of the embedded database has left.", func() float64 {
		left, _ := free()
		return float64(left)
	})
}

// Mail implements mail.Observer.
func (m *Metrics) Mail(o mail.Outcome) { m.mails.WithLabelValues(string(o)).Inc() }

// MailServer implements mail.Observer.
func (m *Metrics) MailServer(reached bool) {
	m.mailDown.Set(0)
	if !reached {
		m.mailDown.Set(1)
	}
}

// The outcomes of calls of webhooks' receivers.
const (
	hookDelivered = "delivered"
	hookFailed    = "failed"
)

// WebhookCalled counts a call of a webhook's receiver, which took the event or did not.
func (m *Metrics) WebhookCalled(delivered bool) {
	outcome := hookFailed
	if delivered {
		outcome = hookDelivered
	}
	m.hooked.WithLabelValues(outcome).Inc()
}

// Webhooks notes how many webhooks are disabled, and how many others have events that their
// receiver did not take yet.
func (m *Metrics) Webhooks(disabled, failing int) {
	m.webhooks.WithLabelValues("disabled").Set(float64(disabled))
	m.webhooks.WithLabelValues("failing").Set(float64(failing))
}

// EnterprisesLost notes how many companies' enterprises the platform does not have.
func (m *Metrics) EnterprisesLost(count int) { m.lost.Set(float64(count)) }

// RolloutsPaused notes how many rollouts of the agent paused by themselves.
func (m *Metrics) RolloutsPaused(count int) { m.rollouts.Set(float64(count)) }

// BackedUp notes when the last backup was made; zero: never.
func (m *Metrics) BackedUp(at time.Time) {
	if !at.IsZero() {
		m.backup.Set(float64(at.Unix()))
	}
}

// begin makes every series of the counters, at 0. Prometheus takes the first
// value of a series as where it started: a counter that is born as 1 has not
// increased, and an alert on its increase does not fire.
func (m *Metrics) begin() {
	pairs(m.commands, command.Types(), command.Outcomes())
	pairs(m.notified, platform.NotificationKinds(), platform.NotificationOutcomes())
	for _, class := range platform.Failures() {
		m.failures.WithLabelValues(string(class))
	}
	for _, outcome := range mail.Outcomes() {
		m.mails.WithLabelValues(string(outcome))
	}
	for _, outcome := range []string{hookDelivered, hookFailed} {
		m.hooked.WithLabelValues(outcome)
	}
	m.PoliciesBehind(0, 0)
	m.Webhooks(0, 0)
}

func pairs[K ~string](vector *prometheus.CounterVec, first []K, second []string) {
	for _, a := range first {
		for _, b := range second {
			vector.WithLabelValues(string(a), b)
		}
	}
}

// Operations makes the series of every operation, and of requests that meet none, for each
// status that they are answered with.
func (m *Metrics) Operations(all []*operation.Operation) {
	begin := func(name string, statuses []int) {
		for _, status := range statuses {
			m.requests.WithLabelValues(name, strconv.Itoa(status))
		}
	}
	for _, name := range []string{noOperation, mcp.Protocol} {
		begin(name, edge.Statuses(nil))
	}
	for _, o := range all {
		m.refusals.WithLabelValues(o.Name)
		begin(o.Name, edge.Statuses(o))
	}
}

// noOperation is the operation of a request that met none.
const noOperation = "none"

// Mount adds the address of the metrics, which are Prometheus text.
func (m *Metrics) Mount(mux *http.ServeMux) {
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	edge.ReadsOnly(mux, "/metrics")
}

// Served notes an answer of REST or MCP. A request that met no operation is
// counted as noOperation.
func (m *Metrics) Served(operation string, status int, took time.Duration) {
	m.requests.WithLabelValues(cmp.Or(operation, noOperation), strconv.Itoa(status)).Observe(took.Seconds())
}

// Limited notes a call that was refused for its rate.
func (m *Metrics) Limited(o *operation.Operation) { m.refusals.WithLabelValues(o.Name).Inc() }

// CommandFinished implements command.Observer.
func (m *Metrics) CommandFinished(t command.Type, outcome string) {
	m.commands.WithLabelValues(string(t), outcome).Inc()
}

// VendorCall notes one call of the vendor's API.
func (m *Metrics) VendorCall(method, class string, took time.Duration) {
	m.calls.WithLabelValues(method, class).Observe(took.Seconds())
	if class != platform.Succeeded {
		m.failures.WithLabelValues(class).Inc()
	}
}

// Notification notes one notification and how old it was when it was applied.
func (m *Metrics) Notification(kind, outcome string, lag time.Duration) {
	m.notified.WithLabelValues(kind, outcome).Inc()
	if !platform.Applied(outcome) {
		return
	}
	m.lag.Observe(max(0, lag.Seconds()))
	m.last.Store(&notification{at: m.now(), lag: max(0, lag)})
}

// PoliciesBehind notes how many policies the platform does not hold as saved.
func (m *Metrics) PoliciesBehind(waiting, failing int) {
	m.behind.WithLabelValues("waiting").Set(float64(waiting))
	m.behind.WithLabelValues("failing").Set(float64(failing))
}

// Certificate has the end of the TLS certificate read when metrics are.
func (m *Metrics) Certificate(notAfter func() float64) {
	m.read("muster_tls_not_after_seconds", "When the TLS certificate that is served ends, in Unix seconds.", notAfter)
}

// Ready has whether the process can serve looked at when metrics are read: agents and people are
// in no other metric.
func (m *Metrics) Ready(ready func() bool) {
	m.read("muster_ready", "1 if the process can serve, as /readyz says; else 0.", func() float64 {
		if ready() {
			return 1
		}
		return 0
	})
}

// BrokenChains notes how many companies have a broken activity log.
func (m *Metrics) BrokenChains(count int) { m.chains.Set(float64(count)) }

// Streams has the number of open wake streams of agents read when metrics are,
// beside how many this replica takes. The function that it returns counts what became of
// a command for a stream, one of outcomes.
func (m *Metrics) Streams(count func() int, limit int, outcomes []string) (command func(outcome string)) {
	commands := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_agent_stream_commands_total",
		Help: "Commands for agents whose stream takes commands: written to it, or left to a check-in.",
	}, []string{"outcome"})
	m.registry.MustRegister(commands)
	for _, outcome := range outcomes {
		commands.WithLabelValues(outcome)
	}
	m.read("muster_agent_streams", "Agents that listen for wake-ups at this replica.", func() float64 { return float64(count()) })
	m.read("muster_agent_streams_limit", "Agents that may listen for wake-ups at this replica; the others poll.",
		func() float64 { return float64(limit) })
	return func(outcome string) { commands.WithLabelValues(outcome).Inc() }
}
