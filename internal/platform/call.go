package platform

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"
	androidmanagement "google.golang.org/api/androidmanagement/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/pubsub/v1"

	"github.com/musterhq/muster/internal/outcome"
	"github.com/musterhq/muster/internal/serviceaccount"
)

// Observer counts what happens, for metrics. Its methods return at once.
type Observer interface {
	// VendorCall: one call of a method ended; class is Succeeded or one of Failures.
	VendorCall(method, class string, took time.Duration)
	// Notification: one notification was handled this long after it was
	// published; kind is one of NotificationKinds, outcome one of
	// NotificationOutcomes.
	Notification(kind, outcome string, lag time.Duration)
}

// Succeeded is the class of VendorCall that is a success.
const Succeeded = "ok"

// Failures lists the classes of VendorCall that are no success.
func Failures() []outcome.Code {
	return []outcome.Code{outcome.NotSent, outcome.Unknown, outcome.Refused, outcome.Missing, outcome.Throttled, outcome.Conflict,
		outcome.Denied}
}

// NotificationKinds and NotificationOutcomes list the labels of Notification.
func NotificationKinds() []string {
	return []string{kindEnrollment, kindStatusReport, kindCommand, kindUsageLogs, kindOther}
}

// NotificationOutcomes: see NotificationKinds.
func NotificationOutcomes() []string { return []string{applied, ignored, Foreign, malformed, failed} }

type unobserved struct{}

func (unobserved) VendorCall(string, string, time.Duration)   {}
func (unobserved) Notification(string, string, time.Duration) {}

// rank says how much of the shared quota a call must leave to others.
type rank int

const (
	urgent     rank = iota // a caller waits: commands, tokens, policies being applied
	upkeep                 // policies brought up to date, and looked at after a doubtful outcome
	background             // reconcilers, and commands of jobs
	prepaid                // a command of a job, whose query Prepare took
	free                   // Pub/Sub, which has no part in the quota
)

// reserve is what a call of this rank leaves of the quota.
func (r rank) reserve(quota int) int {
	switch r {
	case upkeep:
		return quota / 10
	case background:
		return quota * 3 / 10
	default:
		return 0
	}
}

// call makes one attempt at a method of the vendor's API: quota, token, then
// the attempt, with its time limit. The error is a *Failure. A pull that was sent
// and reached its limit is a success without an answer.
func (p *Platform) call(ctx context.Context, method string, r rank, attempt func(context.Context) error) error {
	start, limit := p.now(), p.cfg.CallTimeout
	if method == methodPull { // takes as long as the server lets it wait
		limit = p.cfg.PullTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := p.spend(ctx, method, r)
	if err == nil {
		err = p.attempt(ctx, method, attempt)
	}
	if method == methodPull && codeOf(err) == outcome.Unknown && errors.Is(err, context.DeadlineExceeded) {
		err = nil // no message came
	}
	p.counted(ctx, method, err, start)
	if err != nil && codeOf(err) == outcome.Throttled && r != free {
		p.pause(ctx)
	}
	return err
}

// request is a request of the vendor's client, which calls of a method make.
type request[R, T any] interface {
	// Context returns the request with a context.
	Context(ctx context.Context) R
	// Do sends it once. It fails as the vendor's client does.
	Do(options ...googleapi.CallOption) (T, error)
}

// ask is call with a request, and returns its answer.
func ask[T any, R request[R, T]](ctx context.Context, p *Platform, method string, r rank, what R) (answer T, err error) {
	err = p.call(ctx, method, r, func(ctx context.Context) (err error) {
		answer, err = what.Context(ctx).Do()
		return err
	})
	return answer, err
}

// attempt obtains a token and makes the attempt. Until the token is there,
// nothing was sent.
func (p *Platform) attempt(ctx context.Context, method string, attempt func(context.Context) error) error {
	token, err := p.token()
	if err != nil {
		f := notSent(method, "no access token for the platform", err)
		if tokenDenied(err) {
			f.Code, f.Message = outcome.Denied, "the platform's credentials are missing or refused"
		}
		return f
	}
	var reached phase
	ctx, cancel := reached.watch(serviceaccount.WithToken(ctx, token),
		strings.HasSuffix(method, ".get") || strings.HasSuffix(method, ".list"))
	defer cancel(nil)
	if err = attempt(ctx); err != nil {
		err = classify(method, err, &reached)
	}
	return err
}

// spend takes one query from the project's shared quota.
func (p *Platform) spend(ctx context.Context, method string, r rank) error {
	if p.store.Quota == nil || p.cfg.Quota < 0 || r == free || r == prepaid {
		return nil
	}
	ok, err := p.store.Quota.SpendQuery(ctx, p.cfg.Project, p.cfg.Quota, r.reserve(p.cfg.Quota), QuotaWindow, r == background, p.now())
	switch {
	case err != nil:
		return notSent(method, "the service's own store failed", err)
	case !ok:
		return notSent(method, "the quota of platform queries is used up for the moment", nil)
	}
	return nil
}

// throttlePause is how long background work leaves the vendor alone after it
// answered that it was asked too much.
const throttlePause = time.Minute

// pause keeps background work of all replicas away from the vendor for a while.
func (p *Platform) pause(ctx context.Context) {
	if p.store.Quota == nil || p.cfg.Quota < 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	if err := p.store.Quota.PauseQueries(ctx, p.cfg.Project, p.now().Add(throttlePause)); err != nil {
		p.log.WarnContext(ctx, "cannot pause platform queries", slog.Any("error", err))
	}
}

// counted counts and logs a call that ended.
func (p *Platform) counted(ctx context.Context, method string, err error, start time.Time) {
	took, result, class := p.now().Sub(start), outcome.Done, Succeeded
	if err != nil {
		result = codeOf(err)
		class = string(result)
	}
	p.seen.VendorCall(method, class, took)
	level := slog.LevelDebug
	if result == outcome.Denied && method != methodPull { // which reports its own failures
		level = slog.LevelError
	}
	attrs := []slog.Attr{slog.String("method", method), slog.String("outcome", class), slog.Duration("took", took)}
	if err != nil && method != methodIssueCommand { // an error there may quote a password
		attrs = append(attrs, slog.Any("error", err))
	}
	p.log.LogAttrs(ctx, level, "platform call", attrs...)
}

// phase watches how far one attempt got. A failure without an answer came
// before anything was written, or leaves the outcome open.
type phase struct {
	written atomic.Bool // headers were written, perhaps only into a buffer
	flushed atomic.Bool // the whole request was
}

// errReplayed ends an attempt that Go is about to repeat by itself.
var errReplayed = errors.New("the connection broke after the request was written")

// watch returns a context whose request reports to the phase. GetConn comes at
// the start of each attempt. Go makes another one if a kept connection turns
// out to be dead: that is welcome while nothing was written. But it also
// repeats a GET that was: that is not, one attempt means one. A GET counts as
// written from its headers on, since word of the rest may come too late.
func (p *phase) watch(ctx context.Context, get bool) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) {
			if p.flushed.Load() || get && p.written.Load() {
				cancel(errReplayed)
				return
			}
			p.written.Store(false)
		},
		WroteHeaders: func() { p.written.Store(true) },
		WroteRequest: func(info httptrace.WroteRequestInfo) { p.flushed.Store(info.Err == nil) },
	}), cancel
}

// maxAnswer bounds an answer of the vendor, in bytes: above its largest
// messages, a page of reports in base64.
const maxAnswer = 32 << 20

// connect makes the vendor's clients on a transport of our own: their own would
// fetch tokens inside the call, where a failure could not be distinguished from one of
// the call itself. Their debugging log, which an environment variable can turn
// on, would print request bodies, passwords included: it is silenced.
func (p *Platform) connect() error {
	transport := p.cfg.Transport
	if transport == nil {
		transport = newTransport()
	}
	p.http = &http.Client{Transport: limited{serviceaccount.Transport{Next: transport}}, CheckRedirect: serviceaccount.FollowNone}
	options := []option.ClientOption{
		option.WithHTTPClient(p.http), option.WithLogger(slog.New(slog.DiscardHandler)),
	}
	if p.cfg.Endpoint != "" {
		options = append(options, option.WithEndpoint(p.cfg.Endpoint+"/"))
	}
	var err error
	if p.am, err = androidmanagement.NewService(context.Background(), options...); err != nil {
		return err
	}
	p.pubsub, err = pubsub.NewService(context.Background(), options...)
	return err
}

// newTransport speaks HTTP/1.1 only: there a request is either alone on its
// connection or not written at all, and phases are certain.
func newTransport() *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		Protocols:           &protocols,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConns:        64,
		MaxIdleConnsPerHost: 32,
		IdleConnTimeout:     60 * time.Second,
	}
}

// limited bounds answers.
type limited struct{ next http.RoundTripper }

func (c limited) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = bounded{io.LimitReader(answer.Body, maxAnswer), answer.Body}
	return answer, nil
}

type bounded struct {
	io.Reader
	io.Closer
}

// errNoCredentials is why every call fails while the platform is not set up.
var errNoCredentials = errors.New("no platform credentials are configured")

// newToken returns what gets access tokens, and the project that the credentials
// belong to.
func newToken(cfg *Config) (token func() (string, error), project string, err error) {
	if err := cfg.readCredentials(); err != nil {
		return nil, "", err
	}
	if !cfg.configured() {
		return func() (string, error) { return "", errNoCredentials }, "", nil
	}
	var account serviceaccount.Account // without credentials that of an emulator
	if len(cfg.Credentials) > 0 {
		account, err = serviceaccount.Parse(cfg.Credentials, cfg.Transport, androidmanagement.AndroidmanagementScope, pubsub.PubsubScope)
		if err != nil {
			return nil, "", fmt.Errorf("platform: %w", err)
		}
	}
	return account.Token, account.Project, nil
}

// tokenDenied reports whether the token endpoint evaluated the credentials and
// refused them, so that asking again is of no use.
func tokenDenied(err error) bool {
	if errors.Is(err, errNoCredentials) {
		return true
	}
	refusal, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok || refusal.Response == nil {
		return false
	}
	status := refusal.Response.StatusCode
	return status >= 400 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout
}
