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
	"time"

	"golang.org/x/oauth2"
	androidmanagement "google.golang.org/api/androidmanagement/v1"
	"google.golang.org/api/option"
	"google.golang.org/api/pubsub/v1"

	"github.com/musterhq/muster/internal/serviceaccount"
)

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
