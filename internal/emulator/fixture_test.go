package emulator_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	am "google.golang.org/api/androidmanagement/v1"
	"google.golang.org/api/fcm/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/pubsub/v1"

	"github.com/musterhq/muster/internal/emulator"
)

// fixture is an emulator and the vendor's own clients of it.
type fixture struct {
	t          *testing.T
	emulator   *emulator.Emulator
	client     *http.Client
	base       string
	management *am.Service
	queue      *pubsub.Service
	messaging  *fcm.Service
	enterprise string
	stop       func()
}

// virtual runs a test in a bubble of virtual time, with an emulator that is
// called directly.
func virtual(t *testing.T, test func(t *testing.T, r *fixture), change ...func(*emulator.Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, change...)
		synctest.Wait() // Run runs
		r.client, r.base = &http.Client{Transport: direct{r.emulator.Handler()}}, "http://emulator.test"
		r.connect()
		test(t, r)
	})
}

// overTheWire gives an emulator behind a real server, in real time.
func overTheWire(t *testing.T, change ...func(*emulator.Options)) *fixture {
	t.Helper()
	r := newFixture(t, change...)
	server := httptest.NewServer(r.emulator.Handler())
	r.client, r.base = server.Client(), server.URL
	r.connect()
	t.Cleanup(func() {
		r.stop()
		server.Close()
	})
	return r
}

// testLog fails the test when the emulator logs an error.
type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("level=ERROR")) {
		l.t.Errorf("logged: %s", p)
	}
	return len(p), nil
}

// newFixture starts an emulator that checks its own answers. It stops with the test, also within
// a bubble, where a failed test would otherwise leave it running.
func newFixture(t *testing.T, change ...func(*emulator.Options)) *fixture {
	t.Helper()
	options := emulator.Options{Now: time.Now, CheckAnswers: true, Logger: slog.New(slog.NewTextHandler(testLog{t}, nil))}
	for _, c := range change {
		c(&options)
	}
	e, err := emulator.New(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return &fixture{t: t, emulator: e, client: &http.Client{}, stop: stop}
}

// direct calls a handler without a network, so that virtual time works.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	defer func() {
		if recovered := recover(); recovered == http.ErrAbortHandler { //nolint:errorlint // a panic's value
			answer, err = nil, errors.New("connection reset")
		} else if recovered != nil {
			panic(recovered)
		}
	}()
	r = r.Clone(r.Context())
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r.Host = r.URL.Host
	recorder := httptest.NewRecorder()
	d.handler.ServeHTTP(recorder, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return recorder.Result(), nil
}

func (r *fixture) connect() {
	r.t.Helper()
	options := []option.ClientOption{option.WithEndpoint(r.base), option.WithHTTPClient(r.client)}
	var err error
	if r.management, err = am.NewService(r.t.Context(), options...); err != nil {
		r.t.Fatal(err)
	}
	if r.queue, err = pubsub.NewService(r.t.Context(), options...); err != nil {
		r.t.Fatal(err)
	}
	if r.messaging, err = fcm.NewService(r.t.Context(), options...); err != nil {
		r.t.Fatal(err)
	}
}

const (
	defaultTopic        = "projects/" + emulator.DefaultProject + "/topics/" + emulator.DefaultTopic
	defaultSubscription = "projects/" + emulator.DefaultProject + "/subscriptions/" + emulator.DefaultSubscription
)

// signUp goes through the sign-up page as an administrator would, and gives the
// sign-up's name and the enterprise token.
func (r *fixture) signUp() (name, token string) {
	r.t.Helper()
	signup, err := r.management.SignupUrls.Create().ProjectId(emulator.DefaultProject).
		CallbackUrl("https://muster.example/callback?state=s1").Do()
	if err != nil {
		r.t.Fatal(err)
	}
	page, err := r.client.Get(signup.Url)
	if err != nil {
		r.t.Fatal(err)
	}
	page.Body.Close()
	if page.StatusCode != 200 {
		r.t.Fatalf("sign-up page answered %d", page.StatusCode)
	}
	stay := *r.client
	stay.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	returned, err := stay.Post(signup.Url, "application/x-www-form-urlencoded", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	returned.Body.Close()
	callback, err := url.Parse(returned.Header.Get("Location"))
	if err != nil || callback.Query().Get("state") != "s1" || callback.Host != "muster.example" {
		r.t.Fatalf("returned to %q, %v", returned.Header.Get("Location"), err)
	}
	return signup.Name, callback.Query().Get("enterpriseToken")
}

// bind makes an enterprise that notifies the default topic.
func (r *fixture) bind() {
	r.t.Helper()
	name, token := r.signUp()
	created, err := r.management.Enterprises.Create(&am.Enterprise{
		EnterpriseDisplayName: "Acme", PubsubTopic: defaultTopic,
		EnabledNotificationTypes: []string{"ENROLLMENT", "STATUS_REPORT", "COMMAND", "USAGE_LOGS"},
	}).ProjectId(emulator.DefaultProject).SignupUrlName(name).EnterpriseToken(token).Do()
	if err != nil {
		r.t.Fatal(err)
	}
	r.enterprise = created.Name
}

// policy writes a policy and gives its name.
func (r *fixture) policy(id string, p *am.Policy) string {
	r.t.Helper()
	name := r.enterprise + "/policies/" + id
	if _, err := r.management.Enterprises.Policies.Patch(name, p).Do(); err != nil {
		r.t.Fatal(err)
	}
	return name
}

// token makes an enrollment token.
func (r *fixture) token(t *am.EnrollmentToken) *am.EnrollmentToken {
	r.t.Helper()
	created, err := r.management.Enterprises.EnrollmentTokens.Create(r.enterprise, t).Do()
	if err != nil {
		r.t.Fatal(err)
	}
	return created
}

// personalUse is the token that makes work profiles.
const personalUse = "PERSONAL_USAGE_ALLOWED"

// enroll makes one device with a fresh token.
func (r *fixture) enroll(policy, usage string, want emulator.Enrollment) string {
	r.t.Helper()
	want.EnrollmentToken = r.token(&am.EnrollmentToken{PolicyName: policy, AllowPersonalUsage: usage}).Value
	names, err := r.emulator.Enroll(r.t.Context(), want)
	if err != nil {
		r.t.Fatal(err)
	}
	return names[0]
}

// device binds an enterprise with an empty policy "p" and enrolls one fully
// managed device; the notifications until then are thrown away.
func (r *fixture) device(want emulator.Enrollment) string {
	r.t.Helper()
	r.bind()
	name := r.enroll(r.policy("p", &am.Policy{}), "", want)
	r.pull()
	return name
}

func (r *fixture) get(device string) *am.Device {
	r.t.Helper()
	d, err := r.management.Enterprises.Devices.Get(device).Do()
	if err != nil {
		r.t.Fatal(err)
	}
	return d
}

// issue issues a command.
func (r *fixture) issue(device string, c *am.Command) *am.Operation {
	r.t.Helper()
	op, err := r.management.Enterprises.Devices.IssueCommand(device, c).Do()
	if err != nil {
		r.t.Fatal(err)
	}
	return op
}

func (r *fixture) operation(name string) *am.Operation {
	r.t.Helper()
	op, err := r.management.Enterprises.Devices.Operations.Get(name).Do()
	if err != nil {
		r.t.Fatal(err)
	}
	return op
}

// complete issues a command and lets the device carry it out.
func (r *fixture) complete(device string, c *am.Command) *am.Operation {
	r.t.Helper()
	op := r.issue(device, c)
	time.Sleep(time.Second) // virtual
	return r.operation(op.Name)
}

// note is a notification as a consumer sees it.
type note struct {
	kind string
	data []byte
}

// pull takes and acknowledges what is there now.
func (r *fixture) pull() []note {
	r.t.Helper()
	answer, err := r.queue.Projects.Subscriptions.Pull(defaultSubscription,
		&pubsub.PullRequest{MaxMessages: 1000, ReturnImmediately: true}).
		Do()
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
		ack := r.queue.Projects.Subscriptions.Acknowledge(defaultSubscription, &pubsub.AcknowledgeRequest{AckIds: ids})
		if _, err := ack.Do(); err != nil {
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

// wantKinds fails unless exactly these notifications wait, and gives them.
func (r *fixture) wantKinds(want string) []note {
	r.t.Helper()
	notes := r.pull()
	if got := kinds(notes); got != want {
		r.t.Errorf("notified %q, want %q", got, want)
	}
	return notes
}

// raw makes a call by hand and gives the status and the body.
func (r *fixture) raw(method, path, body string) (int, string) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, r.base+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	answer, err := r.client.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// control makes a call of the control API that succeeds.
func (r *fixture) control(method, path, body string) map[string]any {
	r.t.Helper()
	code, text := r.raw(method, "/emulator/v1"+path, body)
	decoded := map[string]any{}
	if err := json.Unmarshal([]byte(text), &decoded); err != nil || code != 200 {
		r.t.Fatalf("%s %s answered %d %s", method, path, code, text)
	}
	return decoded
}

func (r *fixture) fault(f emulator.Fault) {
	r.t.Helper()
	if err := r.emulator.AddFault(f); err != nil {
		r.t.Fatal(err)
	}
}

func (r *fixture) set(device string, b emulator.Behavior) {
	r.t.Helper()
	if _, err := r.emulator.SetBehavior(r.t.Context(), device, b, true); err != nil {
		r.t.Fatal(err)
	}
}

// metadata reads an operation's command.
func metadata(t *testing.T, op *am.Operation) *am.Command {
	t.Helper()
	command := &am.Command{}
	if err := json.Unmarshal(op.Metadata, command); err != nil {
		t.Fatal(err)
	}
	return command
}

// wantCode fails unless an error is the vendor's with that status; text, if any,
// must be in the message.
func wantCode(t *testing.T, err error, code int, text string) {
	t.Helper()
	var problem *googleapi.Error
	if !errors.As(err, &problem) || problem.Code != code || !strings.Contains(problem.Message, text) {
		t.Errorf("got %v, want %d %q", err, code, text)
	}
}

func reasons(d *am.Device) []string {
	var found []string
	for _, n := range d.NonComplianceDetails {
		setting := n.SettingName
		if n.FieldPath != "" {
			setting = n.FieldPath
		}
		found = append(found, setting+" "+n.NonComplianceReason)
	}
	slices.Sort(found)
	return found
}
