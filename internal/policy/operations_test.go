package policy_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
)

func (s *shelf) Revisions(_ context.Context, _, id string, limit int) ([]policy.Revision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := slices.Clone(s.revisions[id])
	slices.Reverse(newest)
	return newest[:min(limit, len(newest))], nil
}

// run calls an operation as a surface does and returns the result's JSON.
func run(t testing.TB, r *operation.Registry, tool string, p access.Principal, args string) (string, fault.Code) {
	t.Helper()
	k := operation.NewKernel(operation.Config{Now: time.Now})
	out := k.Run(t.Context(), r.Find(tool), p, operation.Meta{}, operation.Flat([]byte(args)))
	if out.Fault != nil {
		return "", out.Fault.Code
	}
	text, err := json.Marshal(out.Result)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), ""
}

func TestPolicies_Reads(t *testing.T) {
	t.Parallel()
	s, kept := service(t)
	registry := &operation.Registry{}
	policy.Define(registry, kept)
	agent, err := s.Create(t.Context(), policy.New{CompanyID: "c", CompanySlug: "acme", Name: "Kiosk", Type: policy.Agent,
		Changes: []policy.Change{{Setting: "CAMERA", Value: "BLOCK"}}}, operator)
	if err != nil {
		t.Fatal(err)
	}
	reader := access.Principal{Kind: access.APIKey, ID: "k", CompanyID: "c", CompanySlug: "acme", Permissions: access.PoliciesRead}
	text, code := run(t, registry, "get_policy_settings", reader, `{"policyId":"`+agent.PathName()+`"}`)
	var settings policy.Settings
	if err := json.Unmarshal([]byte(text), &settings); err != nil || code != "" {
		t.Fatal(err, code)
	}
	read := settings
	read.PolicyID, read.DisplayName, read.Version, read.Editable = agent.PathName(), "Kiosk", 1, false
	if diff := cmp.Diff(read, settings); diff != "" {
		t.Fatalf("settings (-want +got):\n%s", diff)
	}
	if got, want := len(settings.Settings), len(policy.Catalog()); got != want {
		t.Fatalf("%d settings, the catalog has %d", got, want)
	}
	if v := settings.Settings[6]; v.ID != "CAMERA" || v.Value != "BLOCK" || len(v.AllowedValues) != 2 {
		t.Errorf("got %+v", v)
	}
	want := `{"policyId":"` + agent.PathName() +
		`","revisions":[{"revision":1,"version":1,"savedAt":null,"savedBy":{"kind":"SYSTEM","id":"operator","name":"operator"},"displayName":"Kiosk","origin":"CREATE"}]}`
	if text, code := run(t, registry, "list_policy_revisions", reader, `{"policyId":"`+agent.ID+`"}`); text != want {
		t.Errorf("got %s %s\nwant %s", text, code, want)
	}

	stranger, limited := reader, reader
	stranger.CompanyID, stranger.CompanySlug = "d", "other"
	limited.Policies = []string{"another"}
	for _, tool := range []string{"get_policy_settings", "list_policy_revisions"} {
		for _, test := range []struct {
			by   access.Principal
			ref  string
			want fault.Code
		}{
			{reader, "enterprises/acme/assets/" + agent.ID, fault.NotFound},
			{reader, "nowhere", fault.NotFound},
			{stranger, agent.ID, fault.NotFound},
			{stranger, agent.PathName(), fault.NotFound},
			{limited, agent.ID, fault.NotFound},
			{access.Principal{Kind: access.APIKey, ID: "k", Permissions: access.All &^ access.PoliciesRead}, agent.ID, fault.Forbidden},
		} {
			if _, code := run(t, registry, tool, test.by, `{"policyId":"`+test.ref+`"}`); code != test.want {
				t.Errorf("%s of %s: got %q, want %q", tool, test.ref, code, test.want)
			}
		}
	}
	for _, limit := range []string{"0", "101"} {
		if _, code := run(t, registry, "list_policy_revisions", reader, `{"policyId":"`+agent.ID+`","limit":`+limit+`}`); code !=
			fault.InvalidArguments {
			t.Errorf("limit %s: got %q", limit, code)
		}
	}
	if _, err := s.Delete(t.Context(), "c", agent.ID); err != nil {
		t.Fatal(err)
	}
	if _, code := run(t, registry, "get_policy_settings", reader, `{"policyId":"`+agent.ID+`"}`); code != fault.NotFound {
		t.Errorf("a deleted policy: got %q", code)
	}
}
