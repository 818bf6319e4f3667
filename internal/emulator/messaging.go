package emulator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/discovery"
)

// pushToken is the registration of an app on a device.
type pushToken struct {
	Value   string `json:"value"`
	Project string `json:"project"`
	Device  string `json:"device,omitempty"`
}

// PushMessage is a message that was sent through FCM and accepted.
type PushMessage struct {
	Seq     int64           `json:"seq"`
	Name    string          `json:"name"`
	Token   string          `json:"token"`
	Device  string          `json:"device,omitempty"`
	Message json.RawMessage `json:"message"`
	At      time.Time       `json:"at"`
}

// messagesKept bounds the push messages that are remembered.
const messagesKept = 10_000

// messagingCodes are FCM's error codes with their HTTP statuses.
func messagingCodes() map[string]int {
	return map[string]int{
		"UNSPECIFIED_ERROR": 500, "INVALID_ARGUMENT": 400, "UNREGISTERED": 404, "SENDER_ID_MISMATCH": 403,
		"QUOTA_EXCEEDED": 429, "UNAVAILABLE": 503, "INTERNAL": 500, "THIRD_PARTY_AUTH_ERROR": 401,
	}
}

func messagingDetail(code string) map[string]any {
	return map[string]any{"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": code}
}

func messagingError(code, message string) *status {
	s := fail(messagingCodes()[code], "%s", message)
	s.details = []any{messagingDetail(code)}
	return s
}

// invalidMessage is FCM's complaint about a member of the message.
func invalidMessage(field, message string) *status {
	s := messagingError("INVALID_ARGUMENT", message)
	s.details = append(s.details, map[string]any{
		"@type":           "type.googleapis.com/google.rpc.BadRequest",
		"fieldViolations": []any{map[string]any{"field": field, "description": message}},
	})
	return s
}

var tokenForm = regexp.MustCompile(`^[A-Za-z0-9_-]{22}:APA91b[A-Za-z0-9_-]{134}$`)

// maxPayload is how many bytes the data and the notification may have.
const maxPayload = 4096

func sendMessage(e *Emulator, c *call) (any, error) {
	message, _ := c.body["message"].(map[string]any)
	if err := checkMessage(message); err != nil {
		return nil, err
	}
	value, _ := message["token"].(string)
	project := c.segment(1)
	e.mu.Lock()
	defer e.mu.Unlock()
	token := e.world.Tokens[value]
	switch {
	case !tokenForm.MatchString(value):
		return nil, invalidMessage("message.token", "The registration token is not a valid FCM registration token")
	case token == nil:
		return nil, messagingError("UNREGISTERED", "Requested entity was not found.")
	case token.Project != project:
		return nil, messagingError("SENDER_ID_MISMATCH", "SenderId mismatch")
	case c.body["validateOnly"] == true:
		return map[string]any{"name": "projects/" + project + "/messages/fake_message_id"}, nil
	}
	text, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	return map[string]any{"name": e.deliver(token, text)}, nil
}

func (e *Emulator) deliver(token *pushToken, text json.RawMessage) (name string) {
	w := &e.world
	w.lastMessage++
	name = fmt.Sprintf("projects/%s/messages/0:%d%%%s", token.Project, e.now().UnixMicro(), randomHex(8))
	w.Messages = append(w.Messages, PushMessage{Seq: w.lastMessage, Name: name, Token: token.Value, Device: token.Device,
		Message: text, At: e.now()})
	if extra := len(w.Messages) - messagesKept; extra > 0 {
		w.Messages = append([]PushMessage(nil), w.Messages[extra:]...)
	}
	close(w.pushed)
	w.pushed = make(chan struct{})
	return name
}

// checkMessage makes the checks that a schema cannot express.
func checkMessage(message map[string]any) error {
	if message == nil {
		return invalidMessage("message", "Invalid JSON payload received. The message is missing.")
	}
	targets := 0
	for _, name := range []string{"token", "topic", "condition", "fid"} {
		if message[name] != nil {
			targets++
		}
	}
	switch {
	case targets != 1:
		return invalidMessage("message", "Recipient of the message is not set.")
	case message["token"] == nil:
		return fail(http.StatusNotImplemented, "The emulator sends to registration tokens only.")
	}
	data, _ := message["data"].(map[string]any)
	size := 0
	for key, value := range data {
		text, _ := value.(string)
		size += len(key) + len(text)
		if key == "from" || key == "message_type" || strings.HasPrefix(key, "google.") || strings.HasPrefix(key, "gcm.") {
			return invalidMessage("message.data", "Invalid data payload key: "+key)
		}
	}
	notification, _ := message["notification"].(map[string]any)
	for _, value := range notification {
		text, _ := value.(string)
		size += len(text)
	}
	if size > maxPayload {
		return invalidMessage("message", "Android message is too big")
	}
	return checkTTL(message)
}

const maxTTL = 28 * 24 * time.Hour

func checkTTL(message map[string]any) error {
	android, _ := message["android"].(map[string]any)
	text, _ := android["ttl"].(string)
	if text == "" {
		return nil
	}
	if ttl, err := discovery.ParseDuration(text); err != nil || ttl < 0 || ttl > maxTTL {
		return invalidMessage("message.android.ttl", "Invalid TTL: it must be from 0 to 2419200 seconds")
	}
	return nil
}

// RegisterPush makes a push token as the app on a device would. An empty project
// is the default one; device may be empty.
func (e *Emulator) RegisterPush(project, device string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	value := randomText(22, upperDigits+lowerDigits) + ":APA91b" + randomText(134, upperDigits+lowerDigits)
	e.world.Tokens[value] = &pushToken{Value: value, Project: cmp.Or(project, DefaultProject), Device: device}
	e.touch()
	return value
}

// DropPush makes a push token invalid, as when its app is removed. It reports
// whether there was one.
func (e *Emulator) DropPush(token string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ok := e.world.Tokens[token]
	delete(e.world.Tokens, token)
	e.touch()
	return ok
}

// PushMessages gives the accepted push messages after a number, in order; only
// those to a token unless it is empty. If there are none it waits until there
// are, or the wait or the context ends.
func (e *Emulator) PushMessages(ctx context.Context, after int64, token string, wait time.Duration) []PushMessage {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		found, pushed := e.pushMessages(after, token)
		if len(found) > 0 || wait <= 0 {
			return found
		}
		select {
		case <-pushed:
		case <-timer.C:
			return found
		case <-ctx.Done():
			return found
		case <-e.life.Done():
			return found
		}
	}
}

func (e *Emulator) pushMessages(after int64, token string) ([]PushMessage, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := []PushMessage{}
	for _, m := range e.world.Messages {
		if m.Seq > after && (token == "" || m.Token == token) {
			found = append(found, m)
		}
	}
	return found, e.world.pushed
}

// parseNumber reads a query's number; an absent one is 0.
func parseNumber(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	return strconv.ParseInt(text, 10, 64)
}
