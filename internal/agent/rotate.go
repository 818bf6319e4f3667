package agent

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// keyLife is how long a device keeps its key unless it is told to change it.
const keyLife = 365 * 24 * time.Hour

// Rotate gives the device a new key.
func (a *Agent) Rotate(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.link.rotate(ctx)
}

// rotation changes the key when it is old, or when a change was begun.
func (a *Agent) rotation(ctx context.Context) error {
	id := a.link.identity()
	old := id.KeyMade != 0 && a.link.serviceTime().UnixMilli() > id.KeyMade+keyLife.Milliseconds()
	if len(id.NextKey) == 0 && !old {
		return nil
	}
	if err := a.link.rotate(ctx); err != nil {
		return unreached{err}
	}
	return nil
}

// rotate offers a new key, which is on disk before the service hears of it.
// Where the answer was lost, the service may have either key: it is offered by
// the old key, and then by itself. The old key is forgotten last.
func (l *link) rotate(ctx context.Context) error {
	next, err := l.nextKey()
	if err != nil {
		return err
	}
	now := l.signer()
	err = l.corrected(func() error { return l.offerKey(ctx, now, next) })
	if refusedAs(err, protocol.BadSignature) {
		err = l.corrected(func() error { return l.offerKey(ctx, next, next) })
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.id
	taken.Key, taken.NextKey, taken.KeyMade = l.id.NextKey, nil, l.now().UnixMilli()+l.id.OffsetMS
	l.key = next // also where that cannot be written down now: the service has no other
	return l.save(taken)
}

// nextKey is the key that a change was begun with, or a new one.
func (l *link) nextKey() (protocol.PrivateKey, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.id.NextKey) > 0 {
		return protocol.ParsePrivateKey(l.id.NextKey)
	}
	public, err := l.key.Public()
	if err != nil {
		return protocol.PrivateKey{}, err
	}
	next, err := protocol.NewPrivateKey(public.Algorithm)
	if err != nil {
		return next, err
	}
	begun := l.id
	if begun.NextKey, err = next.Marshal(); err != nil {
		return next, err
	}
	return next, l.save(begun)
}

// offerKey makes one offer.
func (l *link) offerKey(ctx context.Context, holder, next protocol.PrivateKey) error {
	ctx, cancel := context.WithTimeout(ctx, exchangeTime)
	defer cancel()
	sequence, err := l.take()
	if err != nil {
		return err
	}
	public, err := next.Public()
	if err != nil {
		return err
	}
	message := protocol.RotateMessage(l.deviceID(), public, sequence)
	request := protocol.RotateRequest{Key: public}
	if request.OldSig, err = holder.Sign(message); err != nil {
		return err
	}
	if request.NewSig, err = next.Sign(message); err != nil {
		return err
	}
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	response, err := l.carry(ctx, holder, sequence, http.MethodPost, "/rotate", body, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var answer json.RawMessage
	return json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&answer)
}
