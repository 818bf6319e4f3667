package webhook

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/outbound"
	"github.com/musterhq/muster/internal/validate"
)

const (
	// CallTime is how long one call may take, with everything.
	CallTime = 10 * time.Second
	// maxDetail bounds why a call failed, in characters.
	maxDetail = 200
	// plenty is more calls at a time than Runner makes: its slots are the limit.
	plenty = 4 * MaxSlots * waveSize
)

// Sender calls receivers.
type Sender struct {
	secure *http.Client // https, to public addresses and the networks
	plain  *http.Client // http, to the networks alone
}

// NewSender returns a sender that may also call addresses in networks, and these without
// TLS. roots nil: those of the system.
func NewSender(networks []netip.Prefix, roots *x509.CertPool) *Sender {
	options := outbound.Options{Allow: outbound.Within(networks), Timeout: CallTime, MaxBody: 1 << 10, PerHost: plenty,
		Total: plenty, Roots: roots}
	secure := outbound.NewClient(options)
	options.Allow, options.Plain = outbound.In(networks), true
	return &Sender{secure: secure, plain: outbound.NewClient(options)}
}

// message is what one call carries.
type message struct {
	url  string
	id   string
	at   time.Time
	body []byte
	keys [][]byte
}

// messageOf is an event for a webhook.
func messageOf(w Webhook, e event.View, keys [][]byte, now time.Time) (message, error) {
	body, err := json.Marshal(e)
	return message{url: w.URL, id: e.ID, at: now, body: body, keys: keys}, err
}

// send makes one call. status is 0 where there was no answer; detail says why the receiver
// did not take the event. The answer's body is not read.
func (s *Sender) send(ctx context.Context, m message) (status int, detail string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(m.body))
	if err != nil {
		return 0, "the address cannot be used"
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "Muster-Webhooks/1")
	request.Header.Set(IDHeader, m.id)
	request.Header.Set(TimestampHeader, strconv.FormatInt(m.at.Unix(), 10))
	request.Header.Set(SignatureHeader, sign(m.keys, m.id, m.at, m.body))
	client := s.secure
	if request.URL.Scheme == "http" {
		client = s.plain
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, reason(err)
	}
	_ = answer.Body.Close()
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
	case code >= 300 && code < 400:
		detail = "redirects are not followed: change the webhook's address"
	case code == gone:
		detail = "the receiver wants no more events"
	default:
		detail = "the receiver answered " + strconv.Itoa(code)
	}
	return answer.StatusCode, detail
}

// reason is why there was no answer, without the address, which may hold a secret.
func reason(err error) string {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		if wrapped.Timeout() {
			return "no answer within " + CallTime.String()
		}
		err = wrapped.Err
	}
	_, unresolved := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, outbound.ErrNotPublic): // which one it is would tell of the service's network
		return "the receiver's address is not public: the operator can allow its network with MUSTER_WEBHOOK_NETWORKS"
	case unresolved:
		return "the name of the receiver cannot be resolved"
	case errors.Is(err, io.EOF):
		return "the receiver ended the connection without an answer"
	case strings.HasPrefix(err.Error(), "net/http: "): // it quotes what the receiver wrote
		return "the receiver's answer is not valid HTTP, or its headers are too long"
	}
	return validate.Clean(err.Error(), maxDetail)
}
