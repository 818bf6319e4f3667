package contract_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/surface/mcp"
)

// costSite is a company with one device, on a service of which nothing runs beside the calls.
type costSite struct {
	*servertest.Tenant
	till    *till
	key     string
	phone   *signer
	service protocol.PublicKey // of the service, which signs commands
	asset   string
	// proposed is a policy of the platform, to which changes are proposed.
	proposed string
	rounds   int
}

func newCostSite(t *testing.T, env *servertest.Env) *costSite {
	t.Helper()
	tenant, replica := env.NewAgentSite("acme"), env.Start()
	token, _ := servertest.AgentToken(t, tenant.Client(replica, access.All).QRCode(tenant.Policy, map[string]any{}))
	s := &costSite{Tenant: tenant, till: &till{}, key: env.Key(tenant.Company, access.All), phone: newSigner(t),
		proposed: env.Policy(tenant.Company, "Phones", policy.Platform).ID}
	replica.Stop() // its loops would allocate
	made, err := service.New(t.Context(), env.Config(), service.Options{Now: env.Now, Logger: slog.New(slog.DiscardHandler), Shared: true,
		Spent: s.till.spent})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := made.Close(); err != nil {
			t.Error(err)
		}
	})
	s.till.handler = made.Handler()
	s.enroll(t, token)
	return s
}

// enroll enrolls the device, and has it report the policy that it is to have.
func (s *costSite) enroll(t *testing.T, token string) {
	t.Helper()
	facts := json.RawMessage(`{"serialNumber":"SN-1","manufacturer":"Cost","brand":"cost","model":"Cost 1","sdk":34,"osVersion":"14"}`)
	r := protocol.EnrollRequest{Token: token, Key: s.phone.public, Facts: facts, AgentVersion: "1", Role: protocol.Manager,
		Time: s.Now().UnixMilli()}
	r.Proof = s.phone.sign(t, r.Message())
	_, answer := s.till.serve(t, request("POST", protocol.Base+"/enroll", r), http.StatusOK)
	var sealed protocol.Envelope
	answer.JSON(t, &sealed)
	enrolled, err := sealed.OpenEnrolled("", s.phone.public, r.Proof)
	if err != nil {
		t.Fatal(err)
	}
	s.phone.id, s.service = enrolled.DeviceID, enrolled.CommandKey.Key
	device, err := s.DB().AgentDevice(t.Context(), enrolled.DeviceID)
	if err != nil {
		t.Fatal(err)
	}
	s.asset = device.AssetID
	if _, err := s.DB().NumberRound(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.checkIn(t, protocol.CheckinRequest{AgentVersion: "1", Capabilities: []protocol.Capability{protocol.Reboot},
		Policy: &protocol.PolicyReport{
			PolicyRef: protocol.PolicyRef{ID: device.PolicyID, Version: device.PolicyVersion}}})
}

// round makes one call of each operation and returns what each cost.
func (s *costSite) round(t *testing.T) map[string]price {
	t.Helper()
	s.Advance(time.Minute) // a budget of its own
	s.rounds++
	costs := map[string]price{}
	costs["GET asset"], _ = s.call(t, "GET", "/assets/"+s.asset, nil, http.StatusOK)
	costs["GET page of 20 with totals"], _ = s.call(t, "GET", "/assets?size=20", nil, http.StatusOK)
	costs["GET count"], _ = s.call(t, "GET", "/assets/count", nil, http.StatusOK)
	costs["GET events, one"], _ = s.call(t, "GET", "/events?limit=1", nil, http.StatusOK)
	setting := []string{"CAMERA", "SCREEN_CAPTURE"}[s.rounds%2]
	costs["POST proposal"], _ = s.call(t, "POST", "/policies/"+s.proposed+"/changes", map[string]any{"changes": change(setting, "BLOCK")},
		http.StatusCreated)
	costs["POST command"], _ = s.call(t, "POST", "/assets/"+s.asset+"/commands/reboot", nil, http.StatusOK)
	var ids []string
	costs["check-in with a command"], ids = s.fetch(t)
	costs["acknowledgment, done"] = s.acknowledge(t, ids, protocol.Done)
	costs["MCP get_asset"] = s.tool(t, "get_asset")
	costs["MCP reboot_device"] = s.tool(t, "reboot_device")
	_, ids = s.fetch(t)
	costs["acknowledgment, accepted"] = s.acknowledge(t, ids, protocol.Accepted)
	costs["acknowledgment, failed"] = s.acknowledge(t, ids, protocol.Failed)
	costs["check-in, idle"], _ = s.checkIn(t, protocol.CheckinRequest{AgentVersion: "1"})
	report := json.RawMessage(fmt.Sprintf(`{"batteryLevel":%d}`, 50+s.rounds))
	costs["check-in with a status report"], _ = s.checkIn(t, protocol.CheckinRequest{AgentVersion: "1",
		Status: &protocol.StatusReport{At: s.Now().UnixMilli(), Values: report, Specifications: map[string]string{"osVersion": "15"}}})
	return costs
}

// call calls an operation of REST.
func (s *costSite) call(t *testing.T, method, path string, body any, status int) (price, servertest.Answer) {
	t.Helper()
	r := request(method, "/api/v1"+path, body)
	r.Header.Set("X-Api-Key", s.key)
	return s.till.serve(t, r, status)
}

// tool calls an operation of the asset over MCP.
func (s *costSite) tool(t *testing.T, name string) price {
	t.Helper()
	r := request("POST", mcp.Path, map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
		"name": name, "arguments": map[string]any{"assetId": s.asset}, "_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion":    servertest.ModernProtocol,
			"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "test", "version": "1"},
			"io.modelcontextprotocol/clientCapabilities": map[string]any{}}}})
	for header, value := range map[string]string{"X-Api-Key": s.key, "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": servertest.ModernProtocol, "Mcp-Method": "tools/call", "Mcp-Name": name} {
		r.Header.Set(header, value)
	}
	cost, answer := s.till.serve(t, r, http.StatusOK)
	var reply struct{ Result struct{ IsError bool } }
	if answer.JSON(t, &reply); reply.Result.IsError {
		t.Fatalf("%s: %s", name, answer.Body)
	}
	return cost
}

// checkIn checks the device in.
func (s *costSite) checkIn(t *testing.T, body protocol.CheckinRequest) (price, protocol.CheckinResponse) {
	t.Helper()
	r := request("POST", protocol.Base+"/checkin", body)
	s.phone.sealed(t, r, body, s.Now())
	cost, got := s.till.serve(t, r, http.StatusOK)
	var answer protocol.CheckinResponse
	got.JSON(t, &answer)
	return cost, answer
}

// fetch checks the device in, which must get one command, and returns its id.
func (s *costSite) fetch(t *testing.T) (price, []string) {
	t.Helper()
	cost, answer := s.checkIn(t, protocol.CheckinRequest{AgentVersion: "1"})
	if len(answer.Commands) != 1 {
		t.Fatalf("the check-in brings %d commands, want 1", len(answer.Commands))
	}
	var sent protocol.Command
	if err := answer.Commands[0].Open(s.service, protocol.KindCommand, &sent); err != nil {
		t.Fatal(err)
	}
	return cost, []string{sent.ID}
}

// acknowledge has the device say what became of commands.
func (s *costSite) acknowledge(t *testing.T, ids []string, state protocol.AckState) price {
	t.Helper()
	body := protocol.CheckinRequest{AgentVersion: "1"}
	for _, id := range ids {
		body.Acks = append(body.Acks, protocol.Ack{CommandID: id, State: state, Outcome: "", At: s.Now().UnixMilli()})
	}
	cost, answer := s.checkIn(t, body)
	if len(answer.Acked) != len(ids) || len(answer.Commands) != 0 {
		t.Fatalf("acknowledged %v, and brings %d commands; want %v and none", answer.Acked, len(answer.Commands), ids)
	}
	return cost
}

// request is a request to a handler; a nil body sends none.
func request(method, path string, body any) *http.Request {
	var text []byte
	if body != nil {
		text, _ = json.Marshal(body) // the test's own values
	}
	r := httptest.NewRequest(method, path, bytes.NewReader(text))
	r.Header.Set("Content-Type", "application/json")
	return r
}

// signer is a device's key, and the sequence of its requests.
type signer struct {
	id       string
	key      protocol.PrivateKey
	public   protocol.PublicKey
	sequence int64
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	key, err := protocol.NewPrivateKey(protocol.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.Public()
	if err != nil {
		t.Fatal(err)
	}
	return &signer{key: key, public: public}
}

func (s *signer) sign(t *testing.T, message []byte) string {
	t.Helper()
	sig, err := s.key.Sign(message)
	if err != nil {
		t.Fatal(err)
	}
	return sig
}

// sealed signs a request.
func (s *signer) sealed(t *testing.T, r *http.Request, body any, now time.Time) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	s.sequence++
	signed := protocol.Request{Method: r.Method, Path: r.URL.RequestURI(), Device: s.id, Time: now.UnixMilli(),
		Sequence: s.sequence, Body: text}
	for header, value := range map[string]string{protocol.HeaderDevice: s.id, protocol.HeaderSignature: s.sign(t, signed.Message()),
		protocol.HeaderTime: strconv.FormatInt(signed.Time, 10), protocol.HeaderSequence: strconv.FormatInt(signed.Sequence, 10)} {
		r.Header.Set(header, value)
	}
}
