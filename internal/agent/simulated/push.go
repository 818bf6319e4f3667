package simulated

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Push is a simulated device's client of the push service, which the platform's
// emulator plays (docs/emulator.md). It implements agent.Push.
type Push struct {
	Device   *Device
	Emulator string // its address
	Client   *http.Client
}

// pushWait is how long one question for messages waits.
const pushWait = 20 * time.Second

// PushService returns the address of the push service that was given last, here
// or at an earlier start; empty: none ever was.
func (d *Device) PushService(given string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &d.state
	if given == "" || given == s.PushService {
		return s.PushService, nil
	}
	if s.PushService != "" { // another service knows nothing of the token
		s.PushToken, s.PushSeen = "", 0
	}
	s.PushService = given
	return given, d.save()
}

// Token registers the device with the push service, once.
func (p Push) Token(ctx context.Context) (string, error) {
	known := p.Device.State()
	if known.PushToken != "" {
		return known.PushToken, nil
	}
	var answer struct {
		Token string `json:"token"`
	}
	body, err := json.Marshal(map[string]string{"device": known.Facts.SerialNumber})
	if err != nil {
		return "", err
	}
	if err := p.ask(ctx, http.MethodPost, "/push-tokens", body, &answer); err != nil {
		return "", err
	}
	p.Device.mu.Lock()
	defer p.Device.mu.Unlock()
	p.Device.state.PushToken = answer.Token
	return answer.Token, p.Device.save()
}

// Wait returns when a message for the device has come.
func (p Push) Wait(ctx context.Context) error {
	token, err := p.Token(ctx)
	if err != nil {
		return err
	}
	for {
		var answer struct {
			Messages []struct {
				Seq int64 `json:"seq"`
			} `json:"messages"`
		}
		query := url.Values{"token": {token}, "after": {strconv.FormatInt(p.Device.State().PushSeen, 10)},
			"waitMs": {strconv.FormatInt(pushWait.Milliseconds(), 10)}}
		if err := p.ask(ctx, http.MethodGet, "/messages?"+query.Encode(), nil, &answer); err != nil {
			return err
		}
		if n := len(answer.Messages); n > 0 {
			return p.seen(answer.Messages[n-1].Seq)
		}
	}
}

// seen stores the number of the last message, so that no message is seen twice.
func (p Push) seen(seq int64) error {
	p.Device.mu.Lock()
	defer p.Device.mu.Unlock()
	p.Device.state.PushSeen = seq
	return p.Device.save()
}

// ask calls the push service, and reads its answer of at most 1 MiB. Any status but 2xx is an error.
func (p Push) ask(ctx context.Context, method, path string, body []byte, answer any) error {
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(p.Emulator, "/")+"/emulator/v1"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := p.Client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("the push service answered %s", response.Status)
	}
	return json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(answer)
}
