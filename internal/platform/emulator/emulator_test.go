package emulator_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	am "google.golang.org/api/androidmanagement/v1"
	"google.golang.org/api/option"
	"google.golang.org/api/pubsub/v1"

	"github.com/musterhq/muster/internal/platform/emulator"
)

// rig is an emulator behind HTTP, and the vendor's clients of it.
type rig struct {
	t          testing.TB
	emulator   *emulator.Emulator
	server     *httptest.Server
	management *am.Service
	queue      *pubsub.Service
	enterprise string
}

type testLog struct{ t testing.TB }

func (l testLog) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("level=ERROR")) {
		l.t.Errorf("logged: %s", p)
	}
	return len(p), nil
}

// newRig starts an emulator that checks its own answers.
func newRig(t testing.TB, change ...func(*emulator.Options)) *rig {
	t.Helper()
	options := emulator.Options{Now: time.Now, CheckAnswers: true, Logger: slog.New(slog.NewTextHandler(testLog{t}, nil))}
	for _, c := range change {
		c(&options)
	}
	e, err := emulator.New(options)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, emulator: e, server: httptest.NewServer(e.Handler())}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		r.server.Close()
	})
	r.connect(t)
	return r
}

func (r *rig) connect(t testing.TB) {
	t.Helper()
	var err error
	clientOptions := []option.ClientOption{option.WithEndpoint(r.server.URL), option.WithoutAuthentication()}
	if r.management, err = am.NewService(t.Context(), clientOptions...); err != nil {
		t.Fatal(err)
	}
	if r.queue, err = pubsub.NewService(t.Context(), clientOptions...); err != nil {
		t.Fatal(err)
	}
}

// allNotifications are the kinds that an enterprise has to ask for.
func allNotifications() []string {
	return []string{"ENROLLMENT", "STATUS_REPORT", "COMMAND", "USAGE_LOGS"}
}

// bind signs up an enterprise as an administrator would.
func (r *rig) bind() string {
	r.t.Helper()
	signup, err := r.management.SignupUrls.Create().ProjectId(emulator.DefaultProject).CallbackUrl("https://muster.example/callback?state=s1").Do()
	if err != nil {
		r.t.Fatal(err)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	page, err := client.Post(signup.Url, "application/x-www-form-urlencoded", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	defer page.Body.Close()
	callback, err := url.Parse(page.Header.Get("Location"))
	if err != nil || callback.Query().Get("state") != "s1" {
		r.t.Fatalf("returned to %q, %v", page.Header.Get("Location"), err)
	}
	created, err := r.management.Enterprises.Create(&am.Enterprise{
		EnterpriseDisplayName: "Acme", EnabledNotificationTypes: allNotifications(),
		PubsubTopic: "projects/" + emulator.DefaultProject + "/topics/" + emulator.DefaultTopic,
	}).ProjectId(emulator.DefaultProject).SignupUrlName(signup.Name).EnterpriseToken(callback.Query().Get("enterpriseToken")).Do()
	if err != nil {
		r.t.Fatal(err)
	}
	r.enterprise = created.Name
	return created.Name
}

// policy writes a policy and gives its name.
func (r *rig) policy(id string, p *am.Policy) string {
	r.t.Helper()
	name := r.enterprise + "/policies/" + id
	if _, err := r.management.Enterprises.Policies.Patch(name, p).Do(); err != nil {
		r.t.Fatal(err)
	}
	return name
}

// token makes an enrolment token.
func (r *rig) token(t *am.EnrollmentToken) *am.EnrollmentToken {
	r.t.Helper()
	created, err := r.management.Enterprises.EnrollmentTokens.Create(r.enterprise, t).Do()
	if err != nil {
		r.t.Fatal(err)
	}
	return created
}

// enrol makes one device with a fresh token.
func (r *rig) enrol(policy, usage string, want emulator.Enrolment) string {
	r.t.Helper()
	want.EnrollmentToken = r.token(&am.EnrollmentToken{PolicyName: policy, AllowPersonalUsage: usage}).Value
	names, err := r.emulator.Enroll(r.t.Context(), want)
	if err != nil {
		r.t.Fatal(err)
	}
	return names[0]
}

// ready is a rig with an enterprise, a policy "p" and one fully managed device.
func ready(t testing.TB, change ...func(*emulator.Options)) (r *rig, device string) {
	t.Helper()
	r = newRig(t, change...)
	r.bind()
	return r, r.enrol(r.policy("p", &am.Policy{}), "", emulator.Enrolment{})
}

// operation issues a command and waits until it is done.
func (r *rig) operation(device string, c *am.Command) *am.Operation {
	r.t.Helper()
	op, err := r.management.Enterprises.Devices.IssueCommand(device, c).Do()
	if err != nil {
		r.t.Fatal(err)
	}
	return r.awaitDone(op.Name)
}

func (r *rig) awaitDone(name string) *am.Operation {
	r.t.Helper()
	var op *am.Operation
	r.eventually(func() bool {
		var err error
		if op, err = r.management.Enterprises.Devices.Operations.Get(name).Do(); err != nil {
			r.t.Fatal(err)
		}
		return op.Done
	})
	return op
}

// eventually polls until a condition holds. The emulator's own waiting is what
// is under test, so there is nothing to wait on.
func (r *rig) eventually(condition func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			r.t.Fatal("it never happened")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// note is a notification as a consumer sees it.
type note struct {
	kind string
	data []byte
}

const defaultSubscription = "projects/" + emulator.DefaultProject + "/subscriptions/" + emulator.DefaultSubscription

// pull takes and acknowledges what is there now.
func (r *rig) pull() []note {
	r.t.Helper()
	answer, err := r.queue.Projects.Subscriptions.Pull(defaultSubscription, &pubsub.PullRequest{MaxMessages: 1000, ReturnImmediately: true}).Do()
	if err != nil {
		r.t.Fatal(err)
	}
	var notes []note
	var ids []string
	for _, m := range answer.ReceivedMessages {
		data, err := base64.StdEncoding.DecodeString(m.Message.Data)
		if err != nil {
			r.t.Fatal(err)
		}
		notes = append(notes, note{kind: m.Message.Attributes["notificationType"], data: data})
		ids = append(ids, m.AckId)
	}
	if len(ids) > 0 {
		if _, err := r.queue.Projects.Subscriptions.Acknowledge(defaultSubscription, &pubsub.AcknowledgeRequest{AckIds: ids}).Do(); err != nil {
			r.t.Fatal(err)
		}
	}
	return notes
}

// kinds gives the types of notifications.
func kinds(notes []note) string {
	names := make([]string, len(notes))
	for i, n := range notes {
		names[i] = n.kind
	}
	return strings.Join(names, " ")
}

// control makes a call of the control API over HTTP.
func (r *rig) control(method, path, body string) (int, map[string]any) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, r.server.URL+"/emulator/v1"+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	decoded := map[string]any{}
	if err := json.Unmarshal(text, &decoded); err != nil {
		r.t.Fatalf("%s %s: %q is not JSON", method, path, text)
	}
	return answer.StatusCode, decoded
}

func metadata(t testing.TB, op *am.Operation) *am.Command {
	t.Helper()
	command := &am.Command{}
	if err := json.Unmarshal(op.Metadata, command); err != nil {
		t.Fatal(err)
	}
	return command
}

func TestFirstDevice(t *testing.T) {
	t.Parallel()
	r, device := ready(t)
	got, err := r.management.Enterprises.Devices.Get(device).Do()
	if err != nil {
		t.Fatal(err)
	}
	if got.Ownership != "COMPANY_OWNED" || got.ManagementMode != "DEVICE_OWNER" || got.State != "ACTIVE" || got.ApiLevel != 34 || got.AppliedPolicyVersion != 1 || !got.PolicyCompliant {
		t.Errorf("device is %+v", got)
	}
	if got := kinds(r.pull()); got != "test ENROLLMENT STATUS_REPORT" {
		t.Errorf("notified %s", got)
	}
	op := r.operation(device, &am.Command{Type: "LOCK"})
	if op.Error != nil || metadata(t, op).Type != "LOCK" || metadata(t, op).Duration != "600s" {
		t.Errorf("operation is %+v", op)
	}
	notes := r.pull()
	if kinds(notes) != "COMMAND" {
		t.Fatalf("notified %s", kinds(notes))
	}
	var told am.Operation
	if err := json.Unmarshal(notes[0].data, &told); err != nil || told.Name != op.Name || !told.Done {
		t.Errorf("told %s, %v", notes[0].data, err)
	}
}
