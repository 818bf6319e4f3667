package emulator_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/api/fcm/v1"

	"github.com/musterhq/muster/internal/emulator"
)

func TestMessaging_Send(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		token := r.control("POST", "/push-tokens", `{"device":"d1"}`)["token"].(string)
		send := func(project string, m *fcm.Message) (*fcm.Message, error) {
			return r.messaging.Projects.Messages.Send("projects/"+project, &fcm.SendMessageRequest{Message: m}).Do()
		}
		sent, err := send("muster", &fcm.Message{Token: token, Data: map[string]string{"k": "v"},
			Android: &fcm.AndroidConfig{Priority: "HIGH", Ttl: "3600s"}})
		if err != nil || !strings.HasPrefix(sent.Name, "projects/muster/messages/0:") {
			t.Fatalf("sent %+v, %v", sent, err)
		}
		got := r.emulator.PushMessages(t.Context(), 0, "", 0)
		var message fcm.Message
		if len(got) != 1 || got[0].Device != "d1" || got[0].Name != sent.Name {
			t.Fatalf("received %+v", got)
		}
		if err := json.Unmarshal(got[0].Message, &message); err != nil || message.Data["k"] != "v" {
			t.Fatalf("received %s, %v", got[0].Message, err)
		}
		_, err = r.messaging.Projects.Messages.Send("projects/muster",
			&fcm.SendMessageRequest{Message: &fcm.Message{Token: token}, ValidateOnly: true}).Do()
		if err != nil || len(r.emulator.PushMessages(t.Context(), 0, "", 0)) != 1 {
			t.Errorf("validateOnly sent something, or %v", err)
		}
		r.control("DELETE", "/push-tokens/"+url.PathEscape(token), "")
		if code, _ := r.raw("DELETE", "/emulator/v1/push-tokens/"+url.PathEscape(token), ""); code != 404 {
			t.Errorf("a dropped token is %d", code)
		}
		_, err = send("muster", &fcm.Message{Token: token})
		wantCode(t, err, 404, "Requested entity was not found.")
	})
}

// FCM's errors carry a code of their own.
func TestMessaging_Refused(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		token := r.emulator.RegisterPush("", "")
		foreign := r.emulator.RegisterPush("other", "")
		to := `"token":"` + token + `"`
		for _, test := range []struct {
			message string
			code    int
			want    []string
		}{
			{`{"token":"short"}`, 400, []string{`"errorCode": "INVALID_ARGUMENT"`, "not a valid FCM registration token",
				`"message.token"`}},
			{`{"token":"` + strings.Repeat("a", 22) + ":APA91b" + strings.Repeat("a", 134) + `"}`, 404,
				[]string{`"errorCode": "UNREGISTERED"`, `"NOT_FOUND"`}},
			{`{"token":"` + foreign + `"}`, 403, []string{`"errorCode": "SENDER_ID_MISMATCH"`}},
			{`{}`, 400, []string{"Recipient of the message is not set"}},
			{`{` + to + `,"topic":"x"}`, 400, []string{"Recipient"}},
			{`{"topic":"x"}`, 501, nil},
			{`{` + to + `,"data":{"from":"x"}}`, 400, []string{"Invalid data payload key: from", `"errorCode": "INVALID_ARGUMENT"`}},
			{`{` + to + `,"data":{"a":1}}`, 400, []string{`Invalid value at 'message.data[0].value' (TYPE_STRING), 1`}},
			{`{` + to + `,"data":{"a":"` + strings.Repeat("x", 4096) + `"}}`, 400, []string{"too big"}},
			{`{` + to + `,"android":{"ttl":"2419201s"}}`, 400, []string{"TTL"}},
			{`{` + to + `,"android":{"priority":"LOUD"}}`, 400, []string{"Invalid value at 'message.android.priority'"}},
			{`{` + to + `,"titel":"x"}`, 400, []string{"Unknown name"}},
		} {
			code, text := r.raw("POST", "/v1/projects/muster/messages:send", `{"message":`+test.message+`}`)
			if code != test.code {
				t.Errorf("%.80s: %d %s", test.message, code, text)
			}
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("%.80s: no %q in %s", test.message, want, text)
				}
			}
		}
		if code, _ := r.raw("POST", "/v1/projects/muster/messages:send", `{}`); code != 400 {
			t.Errorf("no message is %d", code)
		}
	})
}

func TestMessaging_Faults(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		token := r.emulator.RegisterPush("", "")
		for reason, code := range map[string]int{"UNREGISTERED": 404, "INVALID_ARGUMENT": 400, "SENDER_ID_MISMATCH": 403,
			"QUOTA_EXCEEDED": 429, "UNAVAILABLE": 503, "INTERNAL": 500, "THIRD_PARTY_AUTH_ERROR": 401} {
			r.fault(emulator.Fault{Method: "fcm.send", Reason: reason})
			got, text := r.raw("POST", "/v1/projects/muster/messages:send", `{"message":{"token":"`+token+`"}}`)
			if got != code || !strings.Contains(text, `"errorCode": "`+reason+`"`) {
				t.Errorf("%s: %d %s", reason, got, text)
			}
		}
		if got := r.emulator.PushMessages(t.Context(), 0, "", 0); len(got) != 0 {
			t.Errorf("faults sent %d messages", len(got))
		}
	})
}

// A look at the messages can wait for one.
func TestMessaging_WaitForMessage(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		token, other := r.emulator.RegisterPush("", ""), r.emulator.RegisterPush("", "")
		send := func(to string) {
			_, _ = r.messaging.Projects.Messages.Send("projects/muster", &fcm.SendMessageRequest{Message: &fcm.Message{Token: to}}).Do()
		}
		go func() {
			time.Sleep(time.Second)
			send(other)
			time.Sleep(time.Second)
			send(token)
		}()
		begin := time.Now()
		got := r.control("GET", "/messages?waitMs=10000&token="+url.QueryEscape(token), "")["messages"].([]any)
		if waited := time.Since(begin); len(got) != 1 || waited != 2*time.Second {
			t.Errorf("after %v got %v", waited, got)
		}
		if got := r.emulator.PushMessages(t.Context(), 2, "", time.Second); len(got) != 0 || time.Since(begin) != 3*time.Second {
			t.Errorf("got %v", got)
		}
		for _, bad := range []string{"after=x", "waitMs=-1", "waitMs=60001"} {
			if code, _ := r.raw("GET", "/emulator/v1/messages?"+bad, ""); code != 400 {
				t.Errorf("%s: %d", bad, code)
			}
		}
		synctest.Wait()
	})
}
