package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/servertest"
)

// forger signs requests with a device's own key, as who has stolen it could.
type forger struct {
	device string
	key    protocol.PrivateKey
}

func newForger(t *testing.T, p *servertest.AgentDevice) forger {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.Options.Dir, "identity.json"))
	if err != nil {
		t.Fatal(err)
	}
	var identity struct {
		DeviceID string
		Key      []byte
	}
	if err := json.Unmarshal(text, &identity); err != nil {
		t.Fatal(err)
	}
	key, err := protocol.ParsePrivateKey(identity.Key)
	if err != nil {
		t.Fatal(err)
	}
	return forger{identity.DeviceID, key}
}

// send signs a request and sends it, changed after it was signed.
func (f forger) send(t *testing.T, url string, r protocol.Request, change func(*http.Request)) (int, protocol.Refusal) {
	t.Helper()
	sig, err := f.key.Sign(r.Message())
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), r.Method, url+r.Path, bytes.NewReader(r.Body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{protocol.HeaderDevice: r.Device, protocol.HeaderSignature: sig,
		protocol.HeaderTime: strconv.FormatInt(r.Time, 10), protocol.HeaderSequence: strconv.FormatInt(r.Sequence, 10)} {
		request.Header.Set(name, value)
	}
	if change != nil {
		change(request)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var refused protocol.Refusal
	_ = json.NewDecoder(response.Body).Decode(&refused) // also of an answer that is no refusal
	return response.StatusCode, refused
}

// Replayed, tampered, foreign, stale and future requests are refused, on
// whichever replica they arrive, and change nothing.
func TestAgentTrust_ForgedRequestsAreRefused(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, here, there := env.NewAgentSite("acme"), env.Start(), env.Start()
		phone, other := tenant.AgentDevice(here), tenant.AgentDevice(here)
		phone.MustCheckIn()
		other.MustCheckIn()
		mine, foreign := newForger(t, phone), newForger(t, other)
		sequence := int64(100_000)
		fresh := func() protocol.Request {
			sequence++
			return protocol.Request{Method: "POST", Path: protocol.Base + "/checkin", Device: mine.device, Time: env.Now().UnixMilli(),
				Sequence: sequence, Body: []byte(`{"agentVersion":"1"}`)}
		}
		original := fresh()
		if status, _ := mine.send(t, here.PublicURL(), original, nil); status != 200 {
			t.Fatalf("a good request: %d", status)
		}
		at := func(d time.Duration) func(*protocol.Request) {
			return func(r *protocol.Request) { r.Time = env.Now().Add(d).UnixMilli() }
		}
		for what, c := range map[string]struct {
			by     forger
			change func(*protocol.Request) // before it is signed
			after  func(*http.Request)
			status int
			code   protocol.ErrorCode
		}{
			"replayed":        {mine, func(r *protocol.Request) { *r = original }, nil, 409, protocol.Replayed},
			"an older number": {mine, func(r *protocol.Request) { r.Sequence = 5 }, nil, 409, protocol.Replayed},
			"stale":           {mine, at(-11 * time.Minute), nil, 401, protocol.ClockSkew},
			"future":          {mine, at(11 * time.Minute), nil, 401, protocol.ClockSkew},
			"foreign device":  {foreign, func(*protocol.Request) {}, nil, 401, protocol.BadSignature},
			"no such device":  {mine, func(r *protocol.Request) { r.Device = "missing" }, nil, 401, protocol.BadSignature},
			"tampered number": {mine, func(*protocol.Request) {}, func(r *http.Request) {
				r.Header.Set(protocol.HeaderSequence, "99999999")
			}, 401, protocol.BadSignature},
			"tampered path": {mine, func(*protocol.Request) {}, func(r *http.Request) { r.URL.Path = protocol.Base + "/unenroll" }, 401,
				protocol.BadSignature},
			"tampered query": {mine, func(*protocol.Request) {}, func(r *http.Request) { r.URL.RawQuery = "v=1" }, 401,
				protocol.BadSignature},
			"no signature": {mine, func(*protocol.Request) {}, func(r *http.Request) { r.Header.Del(protocol.HeaderSignature) }, 401,
				protocol.BadSignature},
			"an API key in its stead": {mine, func(*protocol.Request) {}, func(r *http.Request) {
				r.Header = http.Header{"X-Api-Key": {env.Key(tenant.Company, access.All)}}
			}, 401, protocol.BadSignature},
		} {
			t.Run(what, func(t *testing.T) {
				for name, replica := range map[string]*servertest.Replica{"here": here, "there": there} {
					r := fresh()
					c.change(&r)
					status, refused := c.by.send(t, replica.PublicURL(), r, c.after)
					if status != c.status || refused.Code != c.code {
						t.Errorf("%s, %s: %d %s, want %d %s", what, name, status, refused.Code, c.status, c.code)
					}
					if corrects := c.code == protocol.Replayed || c.code == protocol.ClockSkew; corrects != (refused.Signed != nil) {
						t.Errorf("%s, %s: the refusal is signed: %v", what, name, refused.Signed != nil)
					}
				}
			})
		}
		phone.MustCheckIn() // it goes on after the highest number that was taken
		servertest.AwaitStatus(t, tenant, tenant.Client(here, access.All), phone.AssetID, "ACTIVE")
	})
}

// A service that does not know the device, as after a restore of an old
// database, or another that took over its address, does not free it.
func TestAgentTrust_ForeignServiceReleasesNoDevice(t *testing.T) {
	t.Parallel()
	env, strange := servertest.New(t), servertest.New(t)
	tenant := env.NewAgentSite("acme", "CAMERA=BLOCK")
	replica, stranger := env.Start(), strange.Start()
	phone := tenant.AgentDevice(replica)
	phone.MustCheckIn()
	phone.Reach(stranger)
	if err := phone.CheckIn(); err == nil || errors.Is(err, agent.ErrEnded) {
		t.Errorf("at a stranger's service: %v", err)
	}
	if s := phone.Device.State(); s.Settings["CAMERA"] != "BLOCK" || s.Released {
		t.Errorf("the device is %+v", s)
	}
	phone.Reach(replica)
	phone.MustCheckIn()
}
