package emulator_test

import (
	"net/http"
	"runtime"
	"testing"
	"time"

	am "google.golang.org/api/androidmanagement/v1"
	"google.golang.org/api/option"

	"github.com/musterhq/muster/internal/emulator"
)

// Thousands of devices live in one process, without a goroutine each.
func TestEmulator_ManyDevices(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		const count = 2500
		r.bind()
		policy := r.policy("p", &am.Policy{})
		token := r.token(&am.EnrollmentToken{PolicyName: policy})
		goroutines := runtime.NumGoroutine()
		names, err := r.emulator.Enroll(t.Context(), emulator.Enrollment{EnrollmentToken: token.Value, Count: count})
		if err != nil || len(names) != count {
			t.Fatal(err)
		}
		if grown := runtime.NumGoroutine() - goroutines; grown > 50 {
			t.Errorf("%d goroutines more", grown)
		}
		r.policy("p", &am.Policy{SmsDisabled: true})
		for _, name := range names {
			r.issue(name, &am.Command{Type: "LOCK"})
		}
		time.Sleep(time.Second)
		notified := map[string]int{}
		for notes := r.pull(); len(notes) > 0; notes = r.pull() {
			for _, n := range notes {
				notified[n.kind]++
			}
		}
		if notified["ENROLLMENT"] != count || notified["COMMAND"] != count || notified["STATUS_REPORT"] != 2*count {
			t.Errorf("notified %v", notified)
		}
	}, func(o *emulator.Options) { o.CheckAnswers = false })
}

func BenchmarkEnroll(b *testing.B) {
	e, err := emulator.New(emulator.Options{Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	service, err := am.NewService(b.Context(), option.WithEndpoint("http://emulator.test"),
		option.WithHTTPClient(&http.Client{Transport: direct{e.Handler()}}))
	if err != nil {
		b.Fatal(err)
	}
	made,
		err :=
		service.Enterprises.Create(&am.Enterprise{PubsubTopic: defaultTopic,
			EnabledNotificationTypes: []string{"ENROLLMENT", "STATUS_REPORT"}}).ProjectId("p").AgreementAccepted(true).Do()
	if err != nil {
		b.Fatal(err)
	}
	token, err := service.Enterprises.EnrollmentTokens.Create(made.Name, &am.EnrollmentToken{}).Do()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := e.Enroll(b.Context(), emulator.Enrollment{EnrollmentToken: token.Value}); err != nil {
			b.Fatal(err)
		}
	}
}
