package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// maxAnswer limits what the agent reads of an answer, in bytes.
const maxAnswer = 4 << 20

// exchangeTime is how long a request with its whole answer may take.
const exchangeTime = 2 * time.Minute

// reserve is how many sequence numbers are set aside on disk at a time.
const reserve = 1000

// refusal is an answer other than success. Only Signed, once verified, may
// change anything on the device.
type refusal struct {
	Status     int
	Answer     protocol.Refusal
	RetryAfter time.Duration
	Signature  string // of the refused request
}

func (r *refusal) Error() string {
	return fmt.Sprintf("the service refused with status %d: %s", r.Status, r.Answer.Code)
}

// link signs requests and keeps what signing needs: key, sequence, clock.
type link struct {
	http  *http.Client
	store store
	now   func() time.Time

	mu   sync.Mutex
	id   identity
	key  protocol.PrivateKey
	next int64 // the next sequence number
}

func newLink(s store, client *http.Client, now func() time.Time) (*link, error) {
	id, err := s.identity()
	if err != nil {
		return nil, err
	}
	key, err := protocol.ParsePrivateKey(id.Key)
	if err != nil {
		return nil, err
	}
	l := &link{http: client, store: s, now: now, id: id, key: key, next: id.Reserved}
	l.id.CommandKeys = trusted(id.CommandKeys, l.signedNow())
	return l, s.keepObeyed(l.id)
}

// save writes an identity down and makes it the agent's. What another process
// wrote in between is kept: a key that the service has taken, a sequence number
// that was used; and an identity that was given up is not brought back. The
// caller holds mu.
func (l *link) save(next identity) error {
	disk, err := l.store.identity()
	switch {
	case errors.Is(err, ErrNotEnrolled):
		return err
	case err == nil && disk.DeviceID == next.DeviceID:
		next.Reserved = max(next.Reserved, disk.Reserved)
		if !bytes.Equal(disk.Key, l.id.Key) && bytes.Equal(next.Key, l.id.Key) {
			key, err := protocol.ParsePrivateKey(disk.Key)
			if err != nil {
				return err
			}
			next.Key, next.NextKey, next.KeyMade, l.key = disk.Key, disk.NextKey, disk.KeyMade, key
		}
	}
	if err := l.store.save(identityFile, next); err != nil {
		return err
	}
	l.id = next
	return l.store.keepObeyed(next)
}

// checkServer refuses a service that is neither https nor on this machine.
func checkServer(server string) error {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return fmt.Errorf("the service's address %q is not a URL", server)
	}
	ip := net.ParseIP(u.Hostname())
	loopback := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	if u.Scheme != "https" && !(u.Scheme == "http" && loopback) {
		return fmt.Errorf("the service's address %q must be https", server)
	}
	return nil
}

// serviceTime is the service's clock as far as the agent knows it.
func (l *link) serviceTime() time.Time {
	return l.now().Add(time.Duration(l.identity().OffsetMS) * time.Millisecond)
}

// identity is the agent's identity as it is now.
func (l *link) identity() identity {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id
}

func (l *link) deviceID() string { return l.identity().DeviceID }

// companion reports whether the agent has no power over its device.
func (l *link) companion() bool { return l.identity().Role == protocol.Companion }

// take reserves the next sequence number.
func (l *link) take() (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next >= l.id.Reserved {
		more := l.id
		more.Reserved = l.next + reserve
		if err := l.save(more); err != nil {
			return 0, err
		}
	}
	l.next++
	return l.next - 1, nil
}

// sign signs a request that has the sequence number.
func (l *link) sign(key protocol.PrivateKey, sequence int64, method, path string, body []byte) (http.Header, error) {
	r := protocol.Request{Method: method, Path: path, Device: l.deviceID(), Sequence: sequence, Body: body,
		Time: l.serviceTime().UnixMilli()}
	sig, err := key.Sign(r.Message())
	if err != nil {
		return nil, err
	}
	h := http.Header{}
	h.Set(protocol.HeaderDevice, r.Device)
	h.Set(protocol.HeaderTime, strconv.FormatInt(r.Time, 10))
	h.Set(protocol.HeaderSequence, strconv.FormatInt(r.Sequence, 10))
	h.Set(protocol.HeaderSignature, sig)
	return h, nil
}

func (l *link) signer() protocol.PrivateKey {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.key
}

// send makes one signed request and returns its sequence number. The caller
// closes the answer's body.
func (l *link) send(ctx context.Context, method, path string, body []byte, extra http.Header) (*http.Response, int64, error) {
	sequence, err := l.take()
	if err != nil {
		return nil, 0, err
	}
	response, err := l.carry(ctx, l.signer(), sequence, method, path, body, extra)
	return response, sequence, err
}

// carry signs and sends a request that has the sequence number.
func (l *link) carry(ctx context.Context, key protocol.PrivateKey, sequence int64, method, path string, body []byte,
	extra http.Header) (*http.Response, error) {
	headers, err := l.sign(key, sequence, method, protocol.Base+path, body)
	if err != nil {
		return nil, err
	}
	address := strings.TrimSuffix(l.identity().Server, "/") + protocol.Base + path
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = headers
	maps.Copy(request.Header, extra)
	if len(body) > 0 {
		request.Header.Set("Content-Type", contentType(path))
	}
	response, err := l.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK || response.StatusCode == http.StatusNotModified ||
		response.StatusCode == http.StatusPartialContent && extra.Get("Range") != "" {
		return response, nil
	}
	defer response.Body.Close()
	return nil, readRefusal(response, headers.Get(protocol.HeaderSignature))
}

func readRefusal(response *http.Response, signature string) *refusal {
	r := &refusal{Status: response.StatusCode, Signature: signature}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		r.RetryAfter = time.Duration(seconds) * time.Second
	}
	_ = json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&r.Answer) // the answer may not be the service's
	return r
}

// unreached is an error of the way to the service, which may pass. It says
// nothing about what the device was asked to do.
type unreached struct{ error }

// Unwrap returns the cause.
func (u unreached) Unwrap() error { return u.error }

// call posts a message and decodes the answer. It returns the sequence number of
// the request that was answered.
func (l *link) call(ctx context.Context, path string, message, answer any) (int64, error) {
	body, err := json.Marshal(message)
	if err != nil {
		return 0, err
	}
	return l.exchange(ctx, http.MethodPost, path, body, answer)
}

// exchange makes a request and decodes the answer. Every error is unreached.
func (l *link) exchange(ctx context.Context, method, path string, body []byte, answer any) (sequence int64, err error) {
	err = l.corrected(func() (err error) {
		sequence, err = l.try(ctx, method, path, body, answer)
		return err
	})
	if err != nil {
		return 0, unreached{err}
	}
	return sequence, nil
}

// corrected makes a request. A refusal for the clock or the sequence that the
// service has signed is corrected, and the request made again, twice at most.
func (l *link) corrected(request func() error) error {
	for attempt := 0; ; attempt++ {
		err := request()
		if refused, ok := errors.AsType[*refusal](err); attempt == 2 || !ok || !l.correct(refused) {
			return err
		}
	}
}

func (l *link) try(ctx context.Context, method, path string, body []byte, answer any) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, exchangeTime)
	defer cancel()
	response, sequence, err := l.send(ctx, method, path, body, nil)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer)) // to its end: the connection serves the next request
	if err != nil {
		return 0, err
	}
	return sequence, json.Unmarshal(text, answer)
}

// correct sets the clock's offset or the sequence as the service says, if it is
// the service that says so, about this very request.
func (l *link) correct(r *refusal) bool {
	_ = l.learn(r.Answer.Keys) // what is not announced by a known key is not believed below either
	if r.Answer.Code != protocol.ClockSkew && r.Answer.Code != protocol.Replayed || r.Answer.Signed == nil {
		return false
	}
	var signed protocol.Time
	if l.openTime(r.Answer, &signed) != nil || !l.set(signed, r.Signature) {
		return false
	}
	_ = l.learn(r.Answer.Keys) // those that lay in the future of the clock before
	return true
}

// set sets the clock's offset and the sequence by a time that answers the request with the
// signature.
func (l *link) set(signed protocol.Time, signature string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if signed.DeviceID != l.id.DeviceID || signed.InReplyTo != signature {
		return false
	}
	next := l.id
	next.OffsetMS, next.Latest = signed.ServerTime-l.now().UnixMilli(), max(next.Latest, signed.ServerTime)
	l.next = max(l.next, signed.LastSequence+1)
	next.Reserved = max(next.Reserved, l.next)
	return l.save(next) == nil
}
