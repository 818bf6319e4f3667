package agent

import (
	"context"
	"encoding/json"

	"github.com/musterhq/muster/internal/agent/protocol"
)

// Push is how the device's push service wakes a companion. Like the wake stream
// it only hints; what there is to do comes with a check-in. Each method fails as the push
// service does, and when ctx ends.
type Push interface {
	// Token is where this device is reached; it may change at any time.
	Token(ctx context.Context) (string, error)
	// Wait returns when a push has come.
	Wait(ctx context.Context) error
}

// forCompanions reports the commands that a companion carries out. Whatever else
// a service may send, it does not.
func forCompanions(commandType string) bool {
	return commandType == ShowMessage || commandType == typeStatus || commandType == typeLocation
}

// registerPush registers with the service where push reaches the device, when that has
// changed since this process last told it.
func (a *Agent) registerPush(ctx context.Context) error {
	if a.options.Push == nil {
		return nil
	}
	token, err := a.options.Push.Token(ctx)
	if err != nil || token == a.pushToken {
		if err != nil { // the push service is out of reach: polling goes on
			a.options.Log.WarnContext(ctx, "the device has no push token", "error", err)
		}
		return nil
	}
	var answer json.RawMessage
	if _, err := a.link.call(ctx, "/push-token", protocol.PushTokenRequest{Token: token}, &answer); err != nil {
		return err
	}
	a.pushToken = token
	return nil
}

// pushed turns pushes into check-ins. It reports whether there was one.
func (a *Agent) pushed(ctx context.Context) (received bool, err error) {
	for ; ; received = true {
		if err := a.options.Push.Wait(ctx); err != nil {
			return received, err
		}
		a.Hint()
	}
}
