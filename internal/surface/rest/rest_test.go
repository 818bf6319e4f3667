package rest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/surface/rest"
)

// The fixture: one small operation of each dialect. What the handler does is
// said by a field of the test.

type assetArgs struct {
	AssetID string `path:"assetId" doc:"The asset."`
}

type textArgs struct {
	AssetID string `path:"assetId" doc:"The asset."`
	Text    string `json:"text" rule:"required notblank maxchars=5" doc:"Some text."`
}

type policyArgs struct {
	PolicyID string `path:"policyId" doc:"The policy."`
	Note     string `json:"note" rule:"maxchars=5" doc:"A note."`
}

type listArgs struct {
	operation.PageRequest
	Status string `query:"status" rule:"enum=ACTIVE|INACTIVE" doc:"Only of this status."`
}

type result struct {
	ID      string `json:"id" doc:"What was asked for."`
	Text    string `json:"text,omitempty" doc:"The text."`
	unknown bool
}

func (r result) Unconfirmed() bool { return r.unknown }

type service struct {
	*rest.Server
	// handle stands for every handler.
	handle func(context.Context, operation.Call, string) (result, error)
	budget budget
}

type budget struct {
	left  operation.Allowance
	err   error
	spent int
}

func (b *budget) Spend(context.Context, string) (operation.Allowance, error) {
	b.spent++
	return b.left, b.err
}

type keys map[string]access.Principal

func (k keys) Authenticate(_ context.Context, text string) (access.Principal, error) {
	if p, ok := k[text]; ok {
		return p, nil
	}
	return access.Principal{}, fault.New(fault.Unauthorized, "API key missing, invalid, expired or revoked")
}

func principal(id string, p access.Permission) access.Principal {
	return access.Principal{Kind: access.APIKey, ID: id, CompanySlug: "acme", Permissions: p,
		Settings: access.Settings{DeviceCommands: true, PolicyChanges: true}}
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{
		handle: func(_ context.Context, _ operation.Call, id string) (result, error) { return result{ID: id}, nil },
		budget: budget{left: operation.Allowance{Spent: true, Limit: 10, Remaining: 9, Reset: 42 * time.Second, Window: time.Minute}},
	}
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	s.Server = rest.New(rest.Config{
		Registry:      s.registry(),
		Kernel:        operation.NewKernel(operation.Config{Limiter: &s.budget, ReadsPerMinute: 600, Now: now}),
		Authenticator: keys{"good": principal("k1", access.All), "poor": principal("k2", 0), "commander": principal("k3", access.DevicesCommand)},
		Now:           now,
	})
	return s
}

var commandFaults = []fault.Code{fault.NotFound, fault.Unsupported, fault.Refused, fault.Provider, fault.Unavailable}

func (s *service) registry() *operation.Registry {
	r := &operation.Registry{}
	commands := access.DevicesCommand | access.DevicesRead
	operation.Define(r, operation.Operation{Name: "lock_device", Title: "Lock", Description: "Locks the screen.", Method: "POST",
		Path: "/assets/{assetId}/commands/lock", Needs: commands, Gate: access.DeviceCommands, Budget: operation.BeforeValidation,
		Dialect: operation.FirstFour, Effect: operation.Writing, Faults: commandFaults, Unconfirmed: true},
		func(ctx context.Context, c operation.Call, a assetArgs) (result, error) {
			return s.handle(ctx, c, a.AssetID)
		})
	operation.Define(r, operation.Operation{Name: "launch_app", Title: "Launch", Description: "Opens an app.", Method: "POST",
		Path: "/assets/{assetId}/commands/launch-app", Needs: commands, Gate: access.DeviceCommands, Budget: operation.AfterValidation,
		Dialect: operation.Commands, Effect: operation.Writing, Faults: commandFaults, Unconfirmed: true},
		func(ctx context.Context, c operation.Call, a textArgs) (result, error) {
			return s.handle(ctx, c, a.AssetID)
		})
	operation.Define(r, operation.Operation{Name: "change_policy", Title: "Change", Description: "Proposes a change.", Method: "POST",
		Path: "/policies/{policyId}/changes", Created: true, Needs: access.PoliciesWrite, Gate: access.PolicyChanges, Budget: operation.AfterValidation,
		Dialect: operation.Policies, Effect: operation.Writing, Faults: []fault.Code{fault.NotFound, fault.StaleProposal, fault.ConfirmationRequired}},
		func(ctx context.Context, c operation.Call, a policyArgs) (result, error) {
			return s.handle(ctx, c, a.PolicyID)
		})
	operation.Define(r, operation.Operation{Name: "create_qr", Title: "QR", Description: "Makes a QR code.", Method: "POST",
		Path: "/policies/{policyId}/provisioning-qr-codes", Created: true, Needs: access.Provisioning, Budget: operation.AfterValidation,
		Dialect: operation.Provisioning, Effect: operation.Writing, Faults: []fault.Code{fault.NotFound, fault.Refused, fault.Provider}},
		func(ctx context.Context, c operation.Call, a policyArgs) (result, error) {
			return s.handle(ctx, c, a.PolicyID)
		})
	operation.Define(r, operation.Operation{Name: "get_asset", Title: "Asset", Description: "Returns an asset.", Method: "GET",
		Path: "/assets/{assetId}", Needs: access.DevicesRead, Dialect: operation.Reads, Faults: []fault.Code{fault.NotFound}},
		func(ctx context.Context, c operation.Call, a assetArgs) (result, error) {
			return s.handle(ctx, c, a.AssetID)
		})
	operation.Define(r, operation.Operation{Name: "count_assets", Title: "Count", Description: "Counts assets.", Method: "GET",
		Path: "/assets/count", Needs: access.DevicesRead, Dialect: operation.Reads},
		func(ctx context.Context, c operation.Call, a listArgs) (result, error) {
			return s.handle(ctx, c, "count")
		})
	return r
}

// send makes a request with the good key unless header says otherwise.
func (s *service) send(method, target, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("X-API-Key", "good")
	for i := 0; i < len(header); i += 2 {
		if header[i+1] == "" {
			r.Header.Del(header[i])
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.Wrap(http.NotFoundHandler()).ServeHTTP(w, r)
	return w
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	const lock = "/commands/lock"
	tests := []struct {
		path   string
		status int
		id     string // what the handler is given
	}{
		{"/assets/a1" + lock, 200, "a1"},
		{"/assets/enterprises%2Facme%2Fassets%2Fa1" + lock, 200, "enterprises/acme/assets/a1"},
		{"/assets/enterprises%2facme%2fassets%2fa1" + lock, 200, "enterprises/acme/assets/a1"},
		{"/assets/enterprises/acme/assets/a1" + lock, 200, "enterprises/acme/assets/a1"},
		{"/assets/enterprises/other/assets/a1" + lock, 200, "enterprises/other/assets/a1"},
		{"/assets/enterprises/acme/policies/a1" + lock, 200, "enterprises/acme/policies/a1"},
		{"/assets/enterprises" + lock, 200, "enterprises"},
		{"/assets/%00%ff" + lock, 200, "\x00\xff"},
		{"/policies/enterprises/acme/policies/p1/changes", 201, "enterprises/acme/policies/p1"},
		{"/policies/enterprises%2Facme%2Fpolicies%2Fp1/changes", 201, "enterprises/acme/policies/p1"},

		{"/assets/enterprises/acme%2Fassets%2Fa1" + lock, 404, ""},
		{"/assets/enterprises/acme/assets" + lock, 404, ""},
		{"/assets//a1" + lock, 404, ""},
		{"//assets/a1" + lock, 404, ""},
		{"/assets/a1//commands/lock", 404, ""},
		{"/assets/a1/commands/lock/", 404, ""},
		{"/assets/x/../a1" + lock, 404, ""},
		{"/assets/.." + lock, 404, ""},
		{"/assets/%2e%2e" + lock, 404, ""},
		{"/assets/a1/commands/LOCK", 404, ""},
		{"/assets/a1/commands/explode", 404, ""},
		{"/nothing", 404, ""},
		{"/", 404, ""},
		{"", 404, ""},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			got := ""
			s.handle = func(_ context.Context, _ operation.Call, id string) (result, error) {
				got = id
				return result{ID: "x"}, nil
			}
			body := ""
			if strings.HasSuffix(test.path, "/changes") {
				body = "{}"
			}
			w := s.send("POST", "/api/v1"+test.path, body)
			if w.Code != test.status || got != test.id {
				t.Errorf("status %d, id %q; want %d, %q", w.Code, got, test.status, test.id)
			}
			if test.status == 404 && w.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("an unknown address answers %s %s", w.Header().Get("Content-Type"), w.Body)
			}
		})
	}
}
