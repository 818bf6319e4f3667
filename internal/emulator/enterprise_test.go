package emulator_test

import (
	"strings"
	"testing"

	am "google.golang.org/api/androidmanagement/v1"

	"github.com/musterhq/muster/internal/emulator"
)

func TestSignup(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		name, token := r.signUp()
		create := func(project, name, token string) error {
			_, err := r.management.Enterprises.Create(&am.Enterprise{}).ProjectId(project).SignupUrlName(name).EnterpriseToken(token).Do()
			return err
		}
		wantCode(t, create(emulator.DefaultProject, name, "other"), 400, "enterprise token is not valid")
		wantCode(t, create("else", name, token), 403, "permission")
		wantCode(t, create(emulator.DefaultProject, "signupUrls/none", token), 404, "")
		wantCode(t, create("", name, token), 400, "Project ID")
		wantCode(t, create(emulator.DefaultProject, "", ""), 400, "signupUrlName")
		if err := create(emulator.DefaultProject, name, token); err != nil {
			t.Fatal(err)
		}
		wantCode(t, create(emulator.DefaultProject, name, token), 400, "enterprise token is not valid") // it is good once
		if _, err := r.management.Enterprises.Create(&am.Enterprise{}).ProjectId("p").AgreementAccepted(true).Do(); err != nil {
			t.Errorf("an enterprise without a sign-up: %v", err)
		}
	})
}

func TestSignup_URLIsChecked(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		for _, test := range []struct {
			query string
			code  int
		}{
			{"projectId=p&callbackUrl=https://a.example/x", 200},
			{"projectId=p&callbackUrl=https://a.example/x&adminEmail=a@b.example&allowedDomains=c.example&allowedDomains=b.example", 200},
			{"projectId=p&callbackUrl=https://a.example/x&adminEmail=a@x.b.example&allowedDomains=*.b.example", 200},
			{"projectId=p&callbackUrl=https://a.example/x&adminEmail=a@b.example&allowedDomains=c.example", 400},
			{"projectId=p&callbackUrl=a.example", 400},
			{"projectId=p", 400},
			{"callbackUrl=https://a.example/x", 400},
			{"projectId=p&callbackUrl=https://a.example/x&state=1", 400}, // not a parameter
		} {
			if code, text := r.raw("POST", "/v1/signupUrls?"+test.query, ""); code != test.code {
				t.Errorf("%s: %d %s", test.query, code, text)
			}
		}
	})
}

func TestSignup_CompletedByControl(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		signup, err := r.management.SignupUrls.Create().ProjectId("p").CallbackUrl("https://a.example/x").Do()
		if err != nil {
			t.Fatal(err)
		}
		got := r.control("POST", "/signups/"+strings.TrimPrefix(signup.Name, "signupUrls/"), "")
		token, _ := got["enterpriseToken"].(string)
		if got["callbackUrl"] != "https://a.example/x?enterpriseToken="+token || token == "" {
			t.Errorf("answered %v", got)
		}
		if code, _ := r.raw("POST", "/emulator/v1/signups/none", ""); code != 404 {
			t.Errorf("an unknown sign-up is %d", code)
		}
	})
}

func TestEnterprises_Patch(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		r.wantKinds("test")
		patched, err := r.management.Enterprises.Patch(r.enterprise, &am.Enterprise{EnterpriseDisplayName: "New"}).
			UpdateMask("enterpriseDisplayName").Do()
		if err != nil || patched.EnterpriseDisplayName != "New" || patched.PubsubTopic != defaultTopic {
			t.Errorf("a masked patch gave %+v, %v", patched, err)
		}
		r.wantKinds("") // the topic stayed
		_, err = r.management.Enterprises.Patch(r.enterprise, &am.Enterprise{}).UpdateMask("name").Do()
		wantCode(t, err, 400, "cannot be modified")
		_, err = r.management.Enterprises.Patch(r.enterprise, &am.Enterprise{}).UpdateMask("nothing").Do()
		wantCode(t, err, 400, "is not a field")
		_, err = r.management.Enterprises.Patch(r.enterprise, &am.Enterprise{PubsubTopic: "t"}).UpdateMask("pubsubTopic").Do()
		wantCode(t, err, 400, "projects/{project}/topics/{topic}")
		_, err = r.management.Enterprises.Patch(r.enterprise, &am.Enterprise{EnterpriseDisplayName: strings.Repeat("x", 101)}).
			UpdateMask("enterpriseDisplayName").Do()
		wantCode(t, err, 400, "100 characters")
		whole, err := r.management.Enterprises.Patch(r.enterprise, &am.Enterprise{EnterpriseDisplayName: "Bare"}).Do()
		if err != nil || whole.PubsubTopic != "" || whole.Name != r.enterprise || whole.EnterpriseType == "" {
			t.Errorf("a whole patch gave %+v, %v", whole, err)
		}
		_, err = r.management.Enterprises.Patch(r.enterprise, &am.Enterprise{EnabledNotificationTypes: []string{"COMMAND"}}).Do()
		wantCode(t, err, 400, "topic must be specified")
	})
}

func TestEnterprises_ListAndDelete(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		list := func(project string) int {
			t.Helper()
			found, err := r.management.Enterprises.List().ProjectId(project).View("BASIC").Do()
			if err != nil {
				t.Fatal(err)
			}
			return len(found.Enterprises)
		}
		if list(emulator.DefaultProject) != 1 || list("other") != 0 {
			t.Error("the list is not by project")
		}
		if _, err := r.management.Enterprises.Delete(r.enterprise).Do(); err != nil {
			t.Fatal(err)
		}
		_, err := r.management.Enterprises.Get(r.enterprise).Do()
		wantCode(t, err, 403, "permission")
		_, err = r.management.Enterprises.Devices.List(r.enterprise).Do()
		wantCode(t, err, 403, "permission")
		if list(emulator.DefaultProject) != 0 {
			t.Error("a deleted enterprise is listed")
		}
	})
}
