package agentserver_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/asset"
)

// FuzzCheckIn has a device that is compromised check in with anything, plain or
// compressed, rightly signed. It is answered 200 or 400; the service keeps
// working, and its inventory can be read.
func FuzzCheckIn(f *testing.F) {
	w := makeWorld(f)
	p := w.enroll(protocol.Ed25519)
	p.mustCheckIn()
	sequence := int64(1_000_000)
	for _, seed := range []string{
		`{"agentVersion":"1","bootId":"b","capabilities":["wipe"],"acks":[{"commandId":"x","state":"DONE","outcome":"o","at":1}]}`,
		`{"status":{"at":1795000000000,"values":{"batteryLevel":80},"specifications":{"osVersion":"14"}},"location":{"latitude":1e308,"longitude":-1,"accuracyMeters":0,"at":-1}}`,
		`{"policy":{"id":"p","version":-1,"etag":"","settings":[{"id":"CAMERA","state":"applied"}]}}`,
		`{"status":{"at":9223372036854775807,"values":null}}`, `{"status":{"values":[1,2]}}`, `[]`, `null`, ``, "\xff\x00",
		`{"acks":null,"acks":[{}]}`,
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, zipped bool) {
		if zipped {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, _ = z.Write(body) // to memory
			_ = z.Close()
			body = b.Bytes()
		}
		sequence++
		w.link.Now = later(w.link.Now, time.Second) // or it would be refused for sending too much
		answer := w.forge(t, p, sequence, body, zipped)
		if answer.Code != http.StatusOK && answer.Code != http.StatusBadRequest {
			t.Fatalf("answered %d %s", answer.Code, answer.Body)
		}
		var members map[string]any
		if err := json.Unmarshal(answer.Body.Bytes(), &members); err != nil {
			t.Fatalf("the answer %q: %v", answer.Body, err)
		}
		a, err := w.db.Asset(context.Background(), w.company.ID, p.assetID)
		if err != nil || a.Status != asset.Active {
			t.Fatalf("the asset is %+v: %v", a, err)
		}
		if _, err := json.Marshal(a.Device); err != nil {
			t.Fatalf("the asset cannot be shown: %v", err)
		}
	})
}

func later(now func() time.Time, by time.Duration) func() time.Time {
	at := now().Add(by)
	return func() time.Time { return at }
}

// signed is a request of the device, rightly signed, at the service's own time.
func (w *world) signed(tb testing.TB, p *phone, method, path string, sequence int64, body []byte) *http.Request {
	tb.Helper()
	r := protocol.Request{Method: method, Path: path, Device: p.agent.DeviceID(),
		Time: w.link.Now().UnixMilli(), Sequence: sequence, Body: body}
	sig, err := keyOf(tb, p.options.Dir).Sign(r.Message())
	if err != nil {
		tb.Fatal(err)
	}
	request := httptest.NewRequestWithContext(context.Background(), r.Method, w.server.URL+r.Path, bytes.NewReader(body))
	request.RequestURI = ""
	for name, value := range map[string]string{protocol.HeaderDevice: r.Device, protocol.HeaderSignature: sig,
		protocol.HeaderTime: strconv.FormatInt(r.Time, 10), protocol.HeaderSequence: strconv.FormatInt(r.Sequence, 10)} {
		request.Header.Set(name, value)
	}
	return request
}

// forge sends a check-in of the device.
func (w *world) forge(tb testing.TB, p *phone, sequence int64, body []byte, zipped bool) *httptest.ResponseRecorder {
	tb.Helper()
	request := w.signed(tb, p, http.MethodPost, protocol.Base+"/checkin", sequence, body)
	if zipped {
		request.Header.Set("Content-Encoding", "gzip")
	}
	answer := httptest.NewRecorder()
	w.server.Config.Handler.ServeHTTP(answer, request)
	return answer
}

func keyOf(tb testing.TB, dir string) protocol.PrivateKey {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "identity.json"))
	if err != nil {
		tb.Fatal(err)
	}
	var identity struct{ Key []byte }
	if err := json.Unmarshal(text, &identity); err != nil {
		tb.Fatal(err)
	}
	key, err := protocol.ParsePrivateKey(identity.Key)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}
