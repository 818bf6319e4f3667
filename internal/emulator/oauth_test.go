package emulator_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	am "google.golang.org/api/androidmanagement/v1"
	"google.golang.org/api/option"

	"github.com/musterhq/muster/internal/emulator"
)

// The vendor's own library signs in with a key that the emulator made.
func TestAuth_ServiceAccount(t *testing.T) {
	t.Parallel()
	r := overTheWire(t, func(o *emulator.Options) { o.Settings.RequireAuthorization = true })
	_, err := r.management.Enterprises.List().ProjectId("p").Do()
	wantCode(t, err, 401, "invalid authentication credentials")
	_, key := r.raw("POST", "/emulator/v1/service-accounts", "")
	config, err := google.JWTConfigFromJSON([]byte(key), am.AndroidmanagementScope)
	if err != nil {
		t.Fatal(err)
	}
	service, err := am.NewService(t.Context(), option.WithEndpoint(r.base), option.WithHTTPClient(config.Client(t.Context())))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := service.Enterprises.List().ProjectId("p").Do(); err != nil {
		t.Fatal(err)
	}
	r.fault(emulator.Fault{Method: "token", Status: 503})
	if _, err := config.TokenSource(t.Context()).Token(); err == nil {
		t.Error("a fault of the token endpoint was not met")
	}
	var account struct {
		Email string `json:"client_email"`
	}
	if err := json.Unmarshal([]byte(key), &account); err != nil {
		t.Fatal(err)
	}
	r.control("DELETE", "/service-accounts/"+url.PathEscape(account.Email), "")
	_, err = service.Enterprises.List().ProjectId("p").Do()
	wantCode(t, err, 401, "") // its tokens are dead as well
	_, err = config.TokenSource(t.Context()).Token()
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) || !strings.Contains(string(refused.Body), "invalid_grant") {
		t.Errorf("got %v", err)
	}
	if code, _ := r.raw("DELETE", "/emulator/v1/service-accounts/none", ""); code != 404 {
		t.Errorf("an unknown account is %d", code)
	}
}

func TestAuth_TokenEndpointRefuses(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		const bearer = "grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer&assertion="
		for form, want := range map[string]string{
			"grant_type=password":  "unsupported_grant_type",
			bearer + "x":           "invalid_grant",
			bearer + "e30.e30.e30": "account not found",
			bearer + "e30.!.e30":   "invalid_grant",
			bearer + "e30.eyJpc3MiOiJub2JvZHlAZXhhbXBsZS5jb20ifQ.e30": "account not found",
		} {
			answer, err := r.client.Post(r.base+"/token", "application/x-www-form-urlencoded", strings.NewReader(form))
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if answer.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), want) {
				t.Errorf("%s: %d %s", form, answer.StatusCode, text)
			}
		}
	})
}

// An assertion signed with another key is refused.
func TestAuth_ForgedAssertion(t *testing.T) {
	t.Parallel()
	r := overTheWire(t)
	one, err := r.emulator.NewServiceAccount(r.base)
	if err != nil {
		t.Fatal(err)
	}
	two, err := r.emulator.NewServiceAccount(r.base)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := google.JWTConfigFromJSON(one)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := google.JWTConfigFromJSON(two)
	if err != nil {
		t.Fatal(err)
	}
	mine.Email = theirs.Email
	if _, err := mine.TokenSource(t.Context()).Token(); err == nil || !strings.Contains(err.Error(), "Invalid JWT Signature") {
		t.Errorf("got %v", err)
	}
}
