package fcm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"github.com/musterhq/muster/internal/outcome"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"google.golang.org/api/fcm/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/serviceaccount"
	"github.com/musterhq/muster/internal/wait"
)

// connect makes the official client on a transport of our own: it speaks
// HTTP/1.1 only, where a request was either written or not, and gets its access
// token before the call, so that a failed token is not taken for a failed push.
func (p *Push) connect() error {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ForceAttemptHTTP2, transport.Protocols = false, new(http.Protocols)
	transport.Protocols.SetHTTP1(true)
	var account serviceaccount.Account // without credentials that of an emulator
	if p.cfg.CredentialsFile != "" {
		key, err := os.ReadFile(p.cfg.CredentialsFile)
		if err != nil {
			return fmt.Errorf("push: credentials: %w: give the path of a service account's key file", err)
		}
		if account, err = serviceaccount.Parse(key, transport, fcm.FirebaseMessagingScope); err != nil {
			return fmt.Errorf("push: %w", err)
		}
	}
	p.token, p.cfg.Project = account.Token, cmp.Or(p.cfg.Project, account.Project)
	options := []option.ClientOption{
		option.WithHTTPClient(&http.Client{Transport: serviceaccount.Transport{Next: transport}, CheckRedirect: serviceaccount.FollowNone}),
		option.WithLogger(slog.New(slog.DiscardHandler)), // its own would print what is pushed
	}
	if p.cfg.Endpoint != "" {
		options = append(options, option.WithEndpoint(p.cfg.Endpoint+"/"))
	}
	var err error
	p.fcm, err = fcm.NewService(context.Background(), options...)
	return err
}

// push makes one push, and up to two more while the service says "too many":
// then nothing was sent. nil: it was accepted.
func (p *Push) push(ctx context.Context, o command.Order, token string) *failure {
	deadline := p.cfg.Now().Add(retryBudget)
	for attempt := 0; ; attempt++ {
		failed := p.attempt(ctx, o, token)
		if failed == nil || failed.code != outcome.Throttled || attempt == retries {
			return failed
		}
		delay := max(failed.retryAfter, time.Duration(attempt+1)*500*time.Millisecond)
		if p.cfg.Now().Add(delay).After(deadline) || !wait.For(ctx, delay) {
			return failed
		}
	}
}

// attempt makes one call. Once its headers are written, only an answer tells
// what became of it.
func (p *Push) attempt(ctx context.Context, o command.Order, token string) *failure {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	access, err := p.token()
	if err != nil {
		return &failure{code: outcome.Denied, reason: "no access token", err: err}
	}
	var written atomic.Bool
	ctx = httptrace.WithClientTrace(serviceaccount.WithToken(ctx, access),
		&httptrace.ClientTrace{GetConn: func(string) { written.Store(false) }, WroteHeaders: func() { written.Store(true) }})
	request := &fcm.SendMessageRequest{Message: &fcm.Message{Token: token,
		Data:    map[string]string{"muster": "wake", "command": o.Command.ID},
		Android: &fcm.AndroidConfig{Priority: "HIGH", Ttl: p.life(o)}}}
	answer, err := p.fcm.Projects.Messages.Send("projects/"+p.cfg.Project, request).Context(ctx).Do()
	refusal, answered := errors.AsType[*googleapi.Error](err)
	switch {
	case err == nil && answer != nil && answer.Name != "":
		return nil
	case err == nil:
		return &failure{code: outcome.Unknown, reason: "the answer names no message"}
	case answered:
		return judge(refusal)
	case written.Load():
		return &failure{code: outcome.Unknown, reason: "no answer", err: err}
	}
	return &failure{code: outcome.NotSent, reason: "no connection", err: err}
}

// life is how long FCM keeps trying, in its own notation.
func (p *Push) life(o command.Order) string {
	if o.Command.Deadline.IsZero() {
		return ""
	}
	left := min(max(o.Command.Deadline.Sub(p.cfg.Now()), 0), maxLife)
	return strconv.Itoa(int(left/time.Second)) + "s"
}

// failure is a push that was not accepted.
type failure struct {
	code       outcome.Code
	reason     string
	retryAfter time.Duration
	err        error
}

// Error implements error.
func (f *failure) Error() string {
	return fmt.Sprintf("push: %s (%s): %v", f.code, f.reason, f.err)
}

// Unwrap returns the cause.
func (f *failure) Unwrap() error { return f.err }
