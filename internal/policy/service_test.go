package policy_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
)

// shelf keeps policies in memory, as the Store's contract says.
type shelf struct {
	policy.Store
	mu        sync.Mutex
	policies  map[string]policy.Policy
	revisions map[string][]policy.Revision
}

func (s *shelf) Policy(_ context.Context, companyID, id string) (policy.Policy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.policies[id]
	if !ok || p.CompanyID != companyID {
		return p, fault.New(fault.NotFound, "no such policy")
	}
	return p, nil
}

func (s *shelf) keep(p policy.Policy, r policy.Revision) {
	r.PolicyID, r.Revision, r.Version, r.Name, r.Document = p.ID, p.Version, p.Version, p.Name, p.Document
	r.Description, r.Labels, r.Group = p.Description, p.Labels, p.Group
	s.policies[p.ID] = p
	s.revisions[p.ID] = append(s.revisions[p.ID], r)
}

func (s *shelf) CreatePolicy(_ context.Context, p policy.Policy, by policy.Author, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.policies {
		if policy.SameName(other.Name, p.Name) {
			return fault.New(fault.Refused, "the name is taken")
		}
	}
	s.keep(p, policy.Revision{SavedBy: by, Origin: policy.FromCreate})
	return nil
}

func (s *shelf) SavePolicy(_ context.Context, next policy.Policy, expected int, r policy.Revision) (policy.Policy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.policies[next.ID].Version != expected {
		return next, fault.New(fault.StaleProposal, "saved again")
	}
	next.Version = expected + 1
	s.keep(next, r)
	return next, nil
}

func (s *shelf) DeletePolicy(_ context.Context, _, id string, _ time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.policies[id]
	p.Deleted = true
	s.policies[id] = p
	return 0, nil
}

func (s *shelf) Revision(_ context.Context, _, id string, number int) (policy.Revision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number < 1 || number > len(s.revisions[id]) {
		return policy.Revision{}, fault.New(fault.NotFound, "no such revision")
	}
	return s.revisions[id][number-1], nil
}

func service(t testing.TB) (policy.Service, *shelf) {
	s := &shelf{policies: map[string]policy.Policy{}, revisions: map[string][]policy.Revision{}}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	return policy.Service{Store: s, Checker: vendor(t), Now: func() time.Time { return now }}, s
}

var operator = policy.Author{Kind: "SYSTEM", ID: "operator", Name: "operator"} // read only

func TestCreate(t *testing.T) {
	t.Parallel()
	s, kept := service(t)
	p, err := s.Create(t.Context(), policy.New{CompanyID: "c", CompanySlug: "acme", Name: "  Warehouse ", Type: policy.Platform,
		Changes: []policy.Change{{Setting: "CAMERA", Value: "block"}, {Setting: "REPORT_DISPLAY_INFO", Value: "DISABLED"}}}, operator)
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "Warehouse" || p.Version != 1 || !strings.HasPrefix(p.PathName(), "enterprises/acme/policies/") {
		t.Errorf("created %+v", p)
	}
	values, err := policy.View(p.Type, p.Document)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		want := policy.NotSet
		switch {
		case v.ID == "CAMERA":
			want = "BLOCK"
		case v.ID == "REPORT_DISPLAY_INFO":
			want = "DISABLED"
		case v.ID == policy.ApplicationReportLevel:
			want = "INSTALLED_APPS"
		case v.Group == "REPORTING":
			want = "ENABLED"
		}
		if v.Value != want {
			t.Errorf("%s is %s, want %s", v.ID, v.Value, want)
		}
	}
	if r := kept.revisions[p.ID]; len(r) != 1 || r[0].SavedBy != operator {
		t.Errorf("revisions %+v", r)
	}
	agent, err := s.Create(t.Context(), policy.New{CompanyID: "c", CompanySlug: "acme", Name: "Kiosk", Type: policy.Agent, VROnly: true},
		operator)
	if err != nil || string(agent.Document) != `{"settings":{}}` {
		t.Errorf("agent policy %s, %v", agent.Document, err)
	}
}

func TestCreate_Refuses(t *testing.T) {
	t.Parallel()
	s, _ := service(t)
	if _, err := s.Create(t.Context(), policy.New{CompanyID: "c", Name: "Größe ς", Type: policy.Agent}, operator); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		new  policy.New
		want fault.Code
	}{
		{"blank name", policy.New{Name: " \t", Type: policy.Platform}, fault.InvalidArguments},
		{"long name", policy.New{Name: strings.Repeat("ü", 51), Type: policy.Platform}, fault.InvalidArguments},
		{"50 characters", policy.New{Name: " " + strings.Repeat("ü", 50) + " ", Type: policy.Platform}, ""},
		{"control character", policy.New{Name: "a\x00b", Type: policy.Platform}, fault.InvalidArguments},
		{"taken", policy.New{Name: " GRÖßE Σ ", Type: policy.Platform}, fault.Refused},
		{"no type", policy.New{Name: "x"}, fault.InvalidArguments},
		{"unknown setting", policy.New{Name: "x", Type: policy.Agent, Changes: []policy.Change{{Setting: "X", Value: "Y"}}},
			fault.InvalidArguments},
		{"not the vendor's", policy.New{Name: "x", Type: policy.Platform, Document: []byte(`{"camera":"off"}`)}, fault.Refused},
		{"not an object", policy.New{Name: "x", Type: policy.Platform, Document: []byte(`[]`)}, fault.InvalidArguments},
		{"not ours", policy.New{Name: "x", Type: policy.Agent, Document: []byte(`{"settings":{"CAMERA":"OFF"}}`)}, fault.Refused},
		{"too large", policy.New{Name: "x", Type: policy.Platform,
			Document: []byte(`{"shortSupportMessage":{"defaultMessage":"` + strings.Repeat("x", 1<<20) + `"}}`)}, fault.Refused},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.new.CompanyID = "c"
			if _, err := s.Create(t.Context(), test.new, operator); fault.CodeOf(err) != test.want {
				t.Errorf("%s: got %v, want %q", test.name, err, test.want)
			}
		})
	}
}

func TestSave(t *testing.T) {
	t.Parallel()
	s, kept := service(t)
	p, err := s.Create(t.Context(), policy.New{CompanyID: "c", Name: "Shop", Type: policy.Platform, Labels: []string{"a"}}, operator)
	if err != nil {
		t.Fatal(err)
	}
	newName := "Shop 2"
	next, err := s.Save(t.Context(), "c", p.ID, 1, policy.Edit{Name: &newName, Changes: []policy.Change{{Setting: "SMS", Value: "block"}}},
		operator)
	if err != nil || next.Version != 2 || next.Name != newName || !slices.Equal(next.Labels, p.Labels) {
		t.Fatalf("saved %+v, %v", next, err)
	}
	if got := read(t, policy.Platform, string(next.Document), "SMS"); got != "BLOCK" {
		t.Errorf("SMS is %s", got)
	}
	if _, err := s.Save(t.Context(), "c", p.ID, 1, policy.Edit{Name: &newName}, operator); fault.CodeOf(err) != fault.StaleProposal {
		t.Errorf("a save of an old version: %v", err)
	}
	if same, err := s.Save(t.Context(), "c", p.ID, 2, policy.Edit{Name: &newName}, operator); err != nil || same.Version != 2 {
		t.Errorf("a save of nothing: %+v, %v", same, err)
	}
	if r := kept.revisions[p.ID]; len(r) != 2 || r[1].Origin != policy.FromPortal {
		t.Errorf("revisions %+v", r)
	}
	if _, err := s.Save(t.Context(), "other", p.ID, 2, policy.Edit{}, operator); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("another company's policy: %v", err)
	}
	d, err := s.Diff(t.Context(), next, 1, 0)
	if err != nil || len(d.Moves) != 1 || d.Moves[0].Setting.ID != "SMS" {
		t.Errorf("diff %+v, %v", d, err)
	}
	if d.Name == nil || d.Labels || len(d.Others) != 0 {
		t.Errorf("the diff has name %v, labels %v, others %v", d.Name, d.Labels, d.Others)
	}
	if _, err := s.Diff(t.Context(), next, 1, 9); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a diff with no such revision: %v", err)
	}
	if _, err := s.Delete(t.Context(), "c", p.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Current(t.Context(), "c", p.ID); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a deleted policy: %v", err)
	}
}
