package emulator_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2/google"
	am "google.golang.org/api/androidmanagement/v1"
	"google.golang.org/api/pubsub/v1"

	"github.com/musterhq/muster/internal/emulator"
)

// send calls the emulator with headers and gives the status and the body.
func (r *fixture) send(method, path string, body io.Reader, headers ...string) (int, string) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, r.base+path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			request.Host = headers[i+1]
		}
		request.Header.Set(headers[i], headers[i+1])
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

func zipped(text string) io.Reader {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return &b
}

// Google's Java client sends bodies packed, and PATCH as POST.
func TestEmulator_TakesPackedBodiesAndMethodOverrides(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		policy := "/v1/" + r.enterprise + "/policies/p"
		for _, c := range []struct {
			name, method, path string
			body               io.Reader
			headers            []string
			code               int
			contains           string
		}{
			{"packed", "PATCH", policy, zipped(`{"cameraDisabled":true}`), []string{"Content-Encoding", "gzip"}, 200,
				`"cameraDisabled": true`},
			{"override", "POST", policy, strings.NewReader(`{"cameraDisabled":true}`), []string{"X-HTTP-Method-Override", "PATCH"},
				200, "cameraDisabled"},
			{"both", "POST", policy, zipped(`{"smsDisabled":true}`), []string{"X-HTTP-Method-Override", "PATCH", "Content-Encoding",
				"GZIP"}, 200, "smsDisabled"},
			{"override by parameter", "POST", policy + "?$httpMethod=PATCH", strings.NewReader(`{}`), nil, 200, "version"},
			{"override to GET", "POST", policy, strings.NewReader("fields=name&prettyPrint=false"),
				[]string{"X-HTTP-Method-Override", "GET", "Content-Type", "application/x-www-form-urlencoded"}, 200,
				`{"name":"` + r.enterprise + `/policies/p"}`},
			{"override to DELETE", "POST", policy, nil, []string{"X-HTTP-Method-Override", "DELETE"}, 200, "{}"},
			{"override by GET", "GET", policy, nil, []string{"X-HTTP-Method-Override", "DELETE"}, 404, ""},
			{"override to nothing", "POST", policy, nil, []string{"X-HTTP-Method-Override", "BREW"}, 400, "override"},
			{"not packed", "PATCH", policy, strings.NewReader(`{}`), []string{"Content-Encoding", "gzip"}, 400, "could not be read"},
			{"packed otherwise", "PATCH", policy, strings.NewReader(`{}`), []string{"Content-Encoding", "br"}, 415, "gzip"},
			{"packed bomb", "PATCH", policy, zipped(strings.Repeat(" ", 11<<20)), []string{"Content-Encoding", "gzip"}, 413, "exceeds"},
		} {
			if code, text := r.send(c.method, c.path, c.body, c.headers...); code != c.code || !strings.Contains(text, c.contains) {
				t.Errorf("%s: %d %s, want %d with %s", c.name, code, text, c.code, c.contains)
			}
		}
	})
}

func TestEmulator_TakesSystemParameters(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		path := "/v1/" + r.enterprise
		for query, want := range map[string]int{
			"$alt=json;enum-encoding=int":       200,
			"$alt=json%3Benum-encoding%3Dint":   200,
			"%24alt=json%3Benum-encoding%3Dint": 200,
			"alt=json":                          200,
			"$alt=proto":                        501,
			"$alt=xml":                          400,
			"alt=json;enum-encoding=roman":      400,
			"$alt=json&alt=json":                400,
			"$prettyPrint=false&$key=k&$quotaUser=u&$.xgafv=2&$userProject=p&$ct=application/json&$unique=1&$outputDefaults=true": 200,
			"$apiFormat=2":    200,
			"$apiFormat=3":    400,
			"$fields=name":    200,
			"$fields=nothing": 400,
			"$nothing=1":      400,
		} {
			if code, text := r.send("GET", path+"?"+query, nil); code != want {
				t.Errorf("%s: %d %s, want %d", query, code, text, want)
			}
		}
		code, text := r.send("GET", path+"?$prettyPrint=false", nil, "X-Goog-FieldMask", "name")
		if code != 200 || text != `{"name":"`+r.enterprise+`"}` {
			t.Errorf("by field mask: %d %s", code, text)
		}
	})
}

// What Google's descriptions and its parser refuse and take beyond the schema.
func TestEmulator_IsAsStrictAsTheDescriptions(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		for body, want := range map[string]int{
			`{"applications":[{"packageName":"a.b","installPriority":10000}]}`:                                           200,
			`{"applications":[{"packageName":"a.b","installPriority":10001}]}`:                                           400,
			`{"applications":[{"packageName":"a.b","installType":"KIOSK"}]}`:                                             200,
			`{"applications":[{"packageName":"a.b","installType":"KIOSK"},{"packageName":"a.c","installType":"KIOSK"}]}`: 400,
			`{"personalUsagePolicies":{"maxDaysWithWorkOff":0}}`:                                                         200,
			`{"personalUsagePolicies":{"maxDaysWithWorkOff":2}}`:                                                         400,
			`{"personalUsagePolicies":{"maxDaysWithWorkOff":3}}`:                                                         200,
			`{"systemUpdate":{"type":"WINDOWED","startMinutes":1439,"endMinutes":0}}`:                                    200,
			`{"systemUpdate":{"type":"WINDOWED","startMinutes":1440}}`:                                                   400,
			`{"passwordPolicies":[{"passwordMinimumLength":-1}]}`:                                                        400,
			`{"maximumTimeToLock":"-1"}`:                                                                                 400,
			`{"minimumApiLevel":"28"}`:                                                                                   200,
			`{"minimumApiLevel":"x"}`:                                                                                    400,
			`{"maximumTimeToLock":1000}`:                                                                                 200,
			`{"cameraAccess":1}`:                                                                                         200,
			`{"cameraAccess":99}`:                                                                                        400,
			`{"deviceRadioState":{"nfc":"NFC_DISABLED"}}`:                                                                200,
			`{"policyEnforcementRules":[{"blockAction":{"blockAfterDays":1},"wipeAction":{"wipeAfterDays":2}}]}`:         200,
		} {
			if code, text := r.raw("PATCH", "/v1/"+r.enterprise+"/policies/p", body); code != want {
				t.Errorf("%s: %d %s, want %d", body, code, text, want)
			}
		}
		r.raw("PATCH", "/v1/"+r.enterprise+"/policies/p", `{"minimumApiLevel":"28","cameraAccess":1,"maximumTimeToLock":1000}`)
		_, text := r.raw("GET", "/v1/"+r.enterprise+"/policies/p?prettyPrint=false&fields=minimumApiLevel,cameraAccess,maximumTimeToLock",
			"")
		if want := `{"cameraAccess":"CAMERA_ACCESS_USER_CHOICE","maximumTimeToLock":"1000","minimumApiLevel":28}`; text != want {
			t.Errorf("stored %s, want %s", text, want)
		}
	})
}

func TestEmulator_LongestTokenDuration(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		r.policy("p", &am.Policy{})
		got := r.token(&am.EnrollmentToken{PolicyName: r.enterprise + "/policies/p", Duration: "315576000000s"})
		if got.Duration != "315576000000s" || got.ExpirationTimestamp != "9999-12-31T23:59:59Z" {
			t.Errorf("duration %s until %s, want 315576000000s until 9999-12-31T23:59:59Z", got.Duration, got.ExpirationTimestamp)
		}
	})
}

// A page token belongs to its list.
func TestEmulator_PageTokenOfAnotherList(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *fixture) {
		r.bind()
		r.policy("a", &am.Policy{})
		r.policy("b", &am.Policy{})
		_, text := r.raw("GET", "/v1/"+r.enterprise+"/policies?pageSize=1", "")
		var list struct{ NextPageToken string }
		if err := json.Unmarshal([]byte(text), &list); err != nil || list.NextPageToken == "" {
			t.Fatalf("%v: %s", err, text)
		}
		token := "?pageToken=" + url.QueryEscape(list.NextPageToken)
		if code, text := r.raw("GET", "/v1/"+r.enterprise+"/policies"+token, ""); code != 200 {
			t.Errorf("its own list: %d %s", code, text)
		}
		if code, text := r.raw("GET", "/v1/"+r.enterprise+"/devices"+token, ""); code != 400 {
			t.Errorf("another list: %d %s", code, text)
		}
	})
}

func TestEmulator_TokenOfAnotherScope(t *testing.T) {
	t.Parallel()
	r := overTheWire(t, func(o *emulator.Options) { o.Settings.RequireAuthorization = true })
	key, err := r.emulator.NewServiceAccount(r.base)
	if err != nil {
		t.Fatal(err)
	}
	for scope, want := range map[string]int{am.AndroidmanagementScope: 200, pubsub.PubsubScope: 403} {
		t.Run(scope, func(t *testing.T) {
			config, err := google.JWTConfigFromJSON(key, scope)
			if err != nil {
				t.Fatal(err)
			}
			token, err := config.TokenSource(context.Background()).Token()
			if err != nil {
				t.Fatal(err)
			}
			if code, text := r.send("GET", "/v1/enterprises?projectId=muster", nil, "Authorization",
				"Bearer "+token.AccessToken); code != want {
				t.Errorf("%s: %d %s, want %d", scope, code, text, want)
			}
			if code, text := r.send("GET", "/v1/enterprises?projectId=muster&access_token="+token.AccessToken, nil); code != want {
				t.Errorf("%s in the query: %d %s, want %d", scope, code, text, want)
			}
		})
	}
}

// A page in a developer's browser cannot reset the emulator; curl can.
func TestControl_RefusesPagesOfOtherOrigins(t *testing.T) {
	t.Parallel()
	r := overTheWire(t)
	host := strings.TrimPrefix(r.base, "http://")
	_, port, _ := strings.Cut(host, ":")
	for _, c := range []struct {
		name    string
		code    int
		headers []string
	}{
		{"a program", 200, nil},
		{"curl -d", 200, []string{"Content-Type", "application/x-www-form-urlencoded", "User-Agent", "curl/8.5.0"}},
		{"JSON", 200, []string{"Content-Type", "application/json"}},
		{"localhost", 200, []string{"Host", "localhost:" + port}},
		{"a container's name", 200, []string{"Host", "emulator:" + port}},
		{"a page at a name that a search domain completes", 403, []string{"Host", "evil:" + port, "Origin", "http://evil:" + port}},
		{"its own page", 200, []string{"Origin", r.base}},
		{"another origin", 403, []string{"Origin", "https://evil.example"}},
		{"no origin that can be named", 403, []string{"Origin", "null"}},
		{"another site", 403, []string{"Sec-Fetch-Site", "cross-site"}},
		{"a rebound name", 403, []string{"Host", "rebind.evil.example"}},
		{"a rebound name with its origin", 403,
			[]string{"Host", "rebind.evil.example:" + port, "Origin", "http://rebind.evil.example:" + port}},
		{"plain text", 415, []string{"Content-Type", "text/plain"}},
		{"a form with files", 415, []string{"Content-Type", "multipart/form-data; boundary=x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if code, text := r.send("POST", "/emulator/v1/reset", nil, c.headers...); code != c.code {
				t.Errorf("%s: %d %s, want %d", c.name, code, text, c.code)
			}
		})
	}
}

// FuzzFrontEnd looks for a request that the front end does not survive.
func FuzzFrontEnd(f *testing.F) {
	f.Add("$alt=json;enum-encoding=int", "PATCH", []byte("{}"), true)
	f.Add("fields=a.b(c)", "GET", []byte("fields=x"), false)
	f.Add("%zz", "", []byte{0x1f, 0x8b}, true)
	e, err := emulator.New(emulator.Options{Now: time.Now})
	if err != nil {
		f.Fatal(err)
	}
	client := &http.Client{Transport: direct{e.Handler()}}
	f.Fuzz(func(t *testing.T, query, override string, body []byte, packed bool) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://emulator.test/v1/enterprises/x/policies/p",
			bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.URL.RawQuery = query
		request.Header.Set("X-HTTP-Method-Override", override)
		if packed {
			request.Header.Set("Content-Encoding", "gzip")
		}
		answer, err := client.Do(request)
		if err != nil {
			return // the client refuses what it cannot send
		}
		defer answer.Body.Close()
		if answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusInternalServerError {
			t.Fatalf("%q %q %q: %d", query, override, body, answer.StatusCode)
		}
	})
}
