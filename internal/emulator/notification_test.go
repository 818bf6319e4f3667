package emulator_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	am "google.golang.org/api/androidmanagement/v1"
	"google.golang.org/api/pubsub/v1"

	"github.com/musterhq/muster/internal/emulator"
)

// Only what the enterprise asked for is notified, to the topic that it named.
func TestNotifications_Types(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{})
		patch := func(topic string, types ...string) {
			t.Helper()
			if _, err := r.management.Enterprises.Patch(r.enterprise, &am.Enterprise{PubsubTopic: topic, EnabledNotificationTypes: types}).
				UpdateMask("pubsubTopic,enabledNotificationTypes").Do(); err != nil {
				t.Fatal(err)
			}
		}
		patch(defaultTopic, "STATUS_REPORT")
		r.complete(device, startLostMode())
		r.wantKinds("STATUS_REPORT")
		patch("")
		r.complete(device, stopLostMode())
		r.wantKinds("")
		patch(defaultTopic)
		r.wantKinds("test")
	})
}

func TestNotifications_Unreliable(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{})
		lock := func() { r.complete(device, &am.Command{Type: "LOCK"}) }
		r.fault(emulator.Fault{Method: "notifications", Match: "COMMAND", Lose: true, Times: 2})
		lock()
		lock()
		r.wantKinds("")
		lock()
		r.wantKinds("COMMAND")
		r.fault(emulator.Fault{Method: "notifications", Duplicate: true})
		lock()
		r.wantKinds("COMMAND COMMAND")
		r.fault(emulator.Fault{Method: "notifications", DelayMS: 60_000})
		lock()
		lock()
		r.wantKinds("COMMAND")
		time.Sleep(time.Minute)
		r.wantKinds("COMMAND")
		r.control("PATCH", "/settings", `{"notifications":{"loseShare":1}}`)
		lock()
		r.wantKinds("")
		r.control("PATCH", "/settings", `{"notifications":{"loseShare":0,"duplicateShare":1,"delayShare":1,"delayMs":5000}}`)
		lock()
		r.wantKinds("")
		time.Sleep(5 * time.Second)
		r.wantKinds("COMMAND COMMAND")
		for _, bad := range []string{`{"notifications":{"loseShare":2}}`, `{"quota":{"requests":5}}`, `{"quotas":1}`, `{"pullWaitMs":-1}`} {
			if code, _ := r.raw("PATCH", "/emulator/v1/settings", bad); code != 400 {
				t.Errorf("%s: %d", bad, code)
			}
		}
	})
}

// consumer pulls and, after a while, acknowledges.
func (r *fixture) consumer(ctx context.Context, thinks time.Duration, accepted *[]string) {
	for ctx.Err() == nil {
		answer, err := r.queue.Projects.Subscriptions.Pull(defaultSubscription, &pubsub.PullRequest{MaxMessages: 10}).Context(ctx).Do()
		if err != nil {
			continue
		}
		for _, m := range answer.ReceivedMessages {
			time.Sleep(thinks)
			*accepted = append(*accepted, m.Message.Attributes["notificationType"])
			_, _ = r.queue.Projects.Subscriptions.Acknowledge(defaultSubscription, &pubsub.AcknowledgeRequest{AckIds: []string{m.AckId}}).
				Do()
		}
	}
}

// A control call returns when the service has accepted its notification.
func TestControl_WaitsForTheConsumer(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		r.pull()
		time.Sleep(time.Minute)
		token := r.token(&am.EnrollmentToken{PolicyName: r.policy("p", &am.Policy{})})
		enroll := func() time.Duration {
			t.Helper()
			begin := time.Now()
			if _, err := r.emulator.Enroll(t.Context(), emulator.Enrollment{EnrollmentToken: token.Value, Count: 20}); err != nil {
				t.Fatal(err)
			}
			return time.Since(begin)
		}
		if waited := enroll(); waited != 0 {
			t.Errorf("waited %v without a subscriber", waited)
		}
		r.pull()
		time.Sleep(time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		var accepted []string
		done := make(chan struct{})
		go func() { defer close(done); r.consumer(ctx, 300*time.Millisecond, &accepted) }()
		synctest.Wait()
		if waited := enroll(); waited != 40*300*time.Millisecond {
			t.Errorf("waited %v for 40 notifications of 300 ms each", waited)
		}
		synctest.Wait()
		if len(accepted) != 40 {
			t.Errorf("returned when %d of 40 were accepted", len(accepted))
		}
		cancel()
		<-done
		// A consumer that takes but never answers is given up on.
		go func() { // a pull that never acknowledges
			_, _ = r.queue.Projects.Subscriptions.Pull(defaultSubscription, &pubsub.PullRequest{MaxMessages: 10}).Do()
		}()
		synctest.Wait()
		if waited := enroll(); waited == 0 || waited > 6*time.Second {
			t.Errorf("waited %v for a consumer that does not acknowledge", waited)
		}
	})
}

func TestPubsub_Pull(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		subscriptions := r.queue.Projects.Subscriptions
		const name = "projects/x/subscriptions/s"
		pull := func(request pubsub.PullRequest) (*pubsub.PullResponse, time.Duration) {
			t.Helper()
			begin := time.Now()
			answer, err := subscriptions.Pull(name, &request).Do()
			if err != nil {
				t.Fatal(err)
			}
			return answer, time.Since(begin)
		}
		if _, waited := pull(pubsub.PullRequest{MaxMessages: 1, ReturnImmediately: true}); waited != 0 {
			t.Errorf("returnImmediately waited %v", waited)
		}
		if _, waited := pull(pubsub.PullRequest{MaxMessages: 1}); waited != 5*time.Second {
			t.Errorf("an empty pull waited %v", waited)
		}
		_, err := subscriptions.Pull(name, &pubsub.PullRequest{}).Do()
		wantCode(t, err, 400, "maxMessages")
		// A subscription made by pulling gets what is published in its project.
		if _, err := r.queue.Projects.Topics.Create("projects/x/topics/t", &pubsub.Topic{}).Do(); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Second)
			_, _ = r.queue.Projects.Topics.Publish("projects/x/topics/t",
				&pubsub.PublishRequest{Messages: []*pubsub.PubsubMessage{{Data: "aGk=", Attributes: map[string]string{"a": "b"}}}}).Do()
		}()
		answer, waited := pull(pubsub.PullRequest{MaxMessages: 5})
		if waited != time.Second || len(answer.ReceivedMessages) != 1 || answer.ReceivedMessages[0].Message.Data != "aGk=" ||
			answer.ReceivedMessages[0].Message.Attributes["a"] != "b" {
			t.Fatalf("after %v pulled %+v", waited, answer)
		}
		id := answer.ReceivedMessages[0].AckId
		if _, err := subscriptions.ModifyAckDeadline(name, &pubsub.ModifyAckDeadlineRequest{AckIds: []string{id}, AckDeadlineSeconds: 0,
			ForceSendFields: []string{"AckDeadlineSeconds"}}).Do(); err != nil {
			t.Fatal(err)
		}
		again, _ := pull(pubsub.PullRequest{MaxMessages: 5})
		if len(again.ReceivedMessages) != 1 || again.ReceivedMessages[0].Message.MessageId != answer.ReceivedMessages[0].Message.MessageId {
			t.Fatalf("not delivered again: %+v", again)
		}
		third, waited := pull(pubsub.PullRequest{MaxMessages: 5})
		if len(third.ReceivedMessages) != 0 || waited != 5*time.Second {
			t.Errorf("delivered before its deadline: %+v", third)
		}
		fourth, waited := pull(pubsub.PullRequest{MaxMessages: 5})
		if len(fourth.ReceivedMessages) != 1 || waited != 5*time.Second {
			t.Errorf("not delivered at its deadline, after %v: %+v", waited, fourth)
		}
	})
}

func TestPubsub_TopicsAndSubscriptions(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		topics, subscriptions := r.queue.Projects.Topics, r.queue.Projects.Subscriptions
		const topic, name = "projects/x/topics/t", "projects/x/subscriptions/s"
		_, err := topics.Get(topic).Do()
		wantCode(t, err, 404, "Resource not found (resource=t)")
		_, err = subscriptions.Create(name, &pubsub.Subscription{Topic: topic}).Do()
		wantCode(t, err, 404, "resource=t")
		_, err = subscriptions.Pull(name, &pubsub.PullRequest{MaxMessages: 1}).Do()
		wantCode(t, err, 404, "resource=s")
		_, err = topics.Publish(topic, &pubsub.PublishRequest{Messages: []*pubsub.PubsubMessage{{Data: "aGk="}}}).Do()
		wantCode(t, err, 404, "resource=t")
		if _, err := topics.Create(topic, &pubsub.Topic{}).Do(); err != nil {
			t.Fatal(err)
		}
		_, err = topics.Create(topic, &pubsub.Topic{}).Do()
		wantCode(t, err, 409, "already exists")
		made, err := subscriptions.Create(name, &pubsub.Subscription{Topic: topic, AckDeadlineSeconds: 60}).Do()
		if err != nil || made.AckDeadlineSeconds != 60 || made.Topic != topic {
			t.Errorf("made %+v, %v", made, err)
		}
		_, err = subscriptions.Create(name, &pubsub.Subscription{Topic: topic}).Do()
		wantCode(t, err, 409, "already exists")
		_, err = subscriptions.Create(name+"2", &pubsub.Subscription{Topic: topic, AckDeadlineSeconds: 5}).Do()
		wantCode(t, err, 400, "ack deadline")
		_, err = subscriptions.Create(name+"2",
			&pubsub.Subscription{Topic: topic, PushConfig: &pubsub.PushConfig{PushEndpoint: "https://a.example"}}).Do()
		wantCode(t, err, 501, "push")
		list, err := subscriptions.List("projects/x").Do()
		if err != nil || len(list.Subscriptions) != 1 || list.Subscriptions[0].Name != name {
			t.Errorf("listed %+v, %v", list, err)
		}
		listed, err := topics.List("projects/" + emulator.DefaultProject).Do()
		if err != nil || len(listed.Topics) != 1 || listed.Topics[0].Name != defaultTopic {
			t.Errorf("listed %+v, %v", listed, err)
		}
		_, err = r.management.Enterprises.Create(&am.Enterprise{PubsubTopic: "projects/x/topics/none"}).ProjectId("x").
			AgreementAccepted(true).Do()
		wantCode(t, err, 400, "Unable to publish")
		if _, err := subscriptions.Delete(name).Do(); err != nil {
			t.Error(err)
		}
		if _, err := topics.Delete(topic).Do(); err != nil {
			t.Error(err)
		}
		_, err = subscriptions.Get(name).Do()
		wantCode(t, err, 404, "")
	}, func(o *emulator.Options) { o.Settings.StrictPubSub = true })
}

// A pull under way survives a reset, and ends when the emulator does.
func TestPubsub_PullEnds(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		results := make(chan error, 1)
		pull := func() {
			_, err := r.queue.Projects.Subscriptions.Pull(defaultSubscription, &pubsub.PullRequest{MaxMessages: 1}).Do()
			results <- err
		}
		go pull()
		synctest.Wait()
		r.control("POST", "/reset", "")
		if err := <-results; err != nil {
			t.Errorf("a reset ended the pull with %v", err)
		}
		go pull()
		synctest.Wait()
		r.stop()
		wantCode(t, <-results, 503, "")
	})
}

func TestControl_Reset(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{})
		r.issue(device, &am.Command{Type: "LOCK"})
		r.fault(emulator.Fault{Method: "get", Status: 500})
		r.control("PATCH", "/settings", `{"quota":{"requests":1,"perSeconds":1}}`)
		r.control("POST", "/reset", "")
		time.Sleep(time.Minute)
		r.wantKinds("")
		if got := r.control("GET", "/calls", "")["calls"].([]any); len(got) != 0 {
			t.Errorf("calls remain: %v", got)
		}
		if got := r.control("GET", "/devices", "")["devices"].([]any); len(got) != 0 {
			t.Errorf("devices remain: %v", got)
		}
		if got := r.control("GET", "/faults", "")["faults"].([]any); len(got) != 0 {
			t.Errorf("faults remain: %v", got)
		}
		if got := r.emulator.Settings(); got != (emulator.Settings{}) {
			t.Errorf("settings remain: %+v", got)
		}
		_, err := r.management.Enterprises.Get(r.enterprise).Do()
		wantCode(t, err, 403, "")
		r.bind()
		r.wantKinds("test")
	})
}

// A notification's data is what the API would answer.
func TestNotifications_Data(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		device := r.device(emulator.Enrollment{})
		op := r.complete(device, &am.Command{Type: "LOCK"})
		notes := r.wantKinds("COMMAND")
		text, err := json.Marshal(op)
		if err != nil || !sameJSON(t, string(text), string(notes[0].data)) {
			t.Errorf("notified %s\nanswered %s", notes[0].data, text)
		}
		if !strings.Contains(string(notes[0].data), `"done":true`) {
			t.Errorf("notified %s", notes[0].data)
		}
	})
}
