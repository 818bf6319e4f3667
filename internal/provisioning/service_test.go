package provisioning_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/test/needs"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// catalog is one company with a few policies.
type catalog struct {
	company  company.Company
	policies map[string]policy.Policy
}

func (c catalog) Policy(_ context.Context, companyID, id string) (policy.Policy, error) {
	p, ok := c.policies[id]
	if !ok || companyID != c.company.ID {
		return policy.Policy{}, fault.New(fault.NotFound, "no such policy")
	}
	return p, nil
}

func (c catalog) CompanyByID(context.Context, string) (company.Company, error) {
	return c.company, nil
}

// issuer answers as it is told and remembers what it was asked.
type issuer struct {
	token provisioning.Token
	err   error
	usage provisioning.PersonalUsage
	life  time.Duration
	// withdrawn are the tokens that were deleted again.
	withdrawn []string
}

func (i *issuer) Issue(_ context.Context, _ company.Company, _ policy.Policy, w provisioning.Wanted) (provisioning.Token, error) {
	i.usage, i.life = w.Usage, w.Lifetime
	return i.token, i.err
}

func (i *issuer) Withdraw(_ context.Context, t provisioning.Token) error {
	i.withdrawn = append(i.withdrawn, t.Ref)
	return nil
}

// others are the methods that the service does not use.
type others interface{ provisioning.Codes }

// codes keeps codes in memory.
type codes struct {
	others
	kept map[string]provisioning.Code
	fail error // of IssueCode
}

func (c *codes) CreateCode(_ context.Context, code provisioning.Code) error {
	c.kept[code.ID] = code
	return nil
}

func (c *codes) IssueCode(_ context.Context, _, id, ref string, expires time.Time) error {
	code := c.kept[id]
	code.Ref, code.ExpiresAt = ref, expires
	c.kept[id] = code
	return c.fail
}

func (c *codes) DropCode(_ context.Context, _, id string) error {
	delete(c.kept, id)
	return nil
}

type fixture struct {
	catalog
	written *codes
	issuer  *issuer
	service *provisioning.Service
}

func newFixture() *fixture {
	f := &fixture{written: &codes{kept: map[string]provisioning.Code{}},
		issuer: &issuer{token: provisioning.Token{Payload: []byte(vendorPayload), ExpiresAt: start.Add(24 * time.Hour)}}}
	f.company = company.Company{ID: "c1", Slug: "acme", Enterprise: "enterprises/LC1"}
	f.policies = map[string]policy.Policy{}
	for _, p := range []policy.Policy{
		{ID: "plain", Type: policy.Platform, Name: "Plain"}, {ID: "gone", Type: policy.Platform, Deleted: true},
		{ID: "vr", Type: policy.Agent, VROnly: true}, {ID: "agent", Type: policy.Agent},
	} {
		p.CompanyID, p.CompanySlug = "c1", "acme"
		f.policies[p.ID] = p
	}
	f.service = &provisioning.Service{Catalog: f, Codes: f.written, Issuers: map[policy.Type]provisioning.Issuer{policy.Platform: f.issuer},
		Records: &recorder{}, PublicURL: "https://muster.example/", Now: func() time.Time { return start }}
	return f
}

func caller() access.Principal {
	return access.Principal{Kind: access.APIKey, ID: "k", CompanyID: "c1", CompanySlug: "acme", Permissions: access.All}
}

func TestCreate(t *testing.T) {
	t.Parallel()
	f := newFixture()
	for _, ref := range []string{"plain", "enterprises/acme/policies/plain"} {
		got, err := f.service.Create(t.Context(), caller(), provisioning.Request{PolicyID: ref, PersonalUsage: provisioning.Userless,
			Wifi: provisioning.Wifi{SSID: "site", Password: "marker-password", Security: provisioning.WPA}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]any
		if err := json.Unmarshal(text, &members); err != nil {
			t.Fatal(err)
		}
		picture := members["image"].(map[string]any)
		for member, want := range map[string]any{
			"policyId": "enterprises/acme/policies/plain", "policyName": "Plain", "personalUsage": "USERLESS",
			"expiresAt": "2026-11-22T12:00:00.000Z", "wifiSsid": "site", "portalUrl": "https://muster.example/policies/plain",
		} {
			if members[member] != want {
				t.Errorf("%s is %v, want %v", member, members[member], want)
			}
		}
		if picture["mimeType"] != "image/png" || len(members) != 7 {
			t.Errorf("%d members, image of type %v", len(members), picture["mimeType"])
		}
		if f.issuer.usage != provisioning.Userless || f.issuer.life != 24*time.Hour {
			t.Errorf("the issuer was asked for %s, %s", f.issuer.usage, f.issuer.life)
		}
		printed := fmt.Sprintf("%s %v %+v %#v", text, got, got, provisioning.Wifi{Password: "marker-password"})
		if strings.Contains(printed, "marker-password") {
			t.Errorf("the password is outside the picture: %s", printed)
		}
		if _, err := png.Decode(bytes.NewReader(got.Image.Data)); err != nil {
			t.Error(err)
		}
	}
}

func TestCreate_WithoutNetwork(t *testing.T) {
	t.Parallel()
	got, err := newFixture().service.Create(t.Context(), caller(),
		provisioning.Request{PolicyID: "plain", PersonalUsage: provisioning.Unspecified})
	text, _ := json.Marshal(got)
	if err != nil || strings.Contains(string(text), "wifiSsid") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestCreate_Fails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		change    func(*fixture, *access.Principal)
		policy    string
		want      fault.Code
		retryable bool
	}{
		{"no such policy", nil, "nothing", fault.NotFound, false},
		{"not an id", nil, "../../etc", fault.NotFound, false},
		{"another company's name", nil, "enterprises/other/policies/plain", fault.NotFound, false},
		{"another kind's name", nil, "enterprises/acme/assets/plain", fault.NotFound, false},
		{"beyond the user's limits", func(_ *fixture, p *access.Principal) { p.Policies = []string{"agent"} }, "plain",
			fault.NotFound, false},
		{"tombstone", nil, "gone", fault.Refused, false},
		{"VR-only", nil, "vr", fault.Unsupported, false},
		{"not connected", func(f *fixture, _ *access.Principal) { f.company.Enterprise = "" }, "plain", fault.Unsupported, false},
		{"tombstone, not connected", func(f *fixture, _ *access.Principal) { f.company.Enterprise = "" }, "gone", fault.Unsupported, false},
		{"vendor fails", func(f *fixture, _ *access.Principal) { f.issuer.err = fault.New(fault.Provider, "quota") }, "plain",
			fault.Provider, true},
		{"vendor fails in an unknown way", func(f *fixture, _ *access.Principal) { f.issuer.err = errors.New("secret internals") }, "plain",
			fault.Provider, true},
		{"vendor says what is not there", func(f *fixture, _ *access.Principal) { f.issuer.err = fault.New(fault.NotFound, "x") }, "plain",
			fault.Provider, true},
		{"enterprise ended", func(f *fixture, _ *access.Principal) { f.issuer.err = fault.New(fault.Unsupported, "x") }, "plain",
			fault.Unsupported, false},
		{"no payload", func(f *fixture, _ *access.Principal) { f.issuer.token.Payload = []byte("<html>") }, "plain", fault.Provider, true},
		{"no issuer", nil, "agent", fault.Provider, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, p := newFixture(), caller()
			if c.change != nil {
				c.change(f, &p)
			}
			f.service.Catalog = f.catalog
			_, err := f.service.Create(t.Context(), p, provisioning.Request{PolicyID: c.policy, Wifi: provisioning.Wifi{SSID: "x"}})
			if err == nil || fault.CodeOf(err) != c.want || fault.From(err).Retryable != c.retryable {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if err != nil && strings.Contains(fault.From(err).Detail, "internals") {
				t.Errorf("internals are revealed: %v", err)
			}
		})
	}
}

// TestImage_ForPeopleAndReaders looks at the picture itself.
func TestImage_ForPeopleAndReaders(t *testing.T) {
	t.Parallel()
	data, err := provisioning.Draw([]byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	paletted, ok := picture.(*image.Paletted)
	if !ok || len(paletted.Palette) != 2 {
		t.Fatalf("the picture is a %T", picture)
	}
	const modules, quiet = 21, 4 // version 1
	side := paletted.Rect.Dx()
	scale := side / (modules + 2*quiet)
	if scale < 6 || scale*(modules+2*quiet) != side || paletted.Rect.Dy() != side {
		t.Errorf("%d by %d pixels are %d a module", side, paletted.Rect.Dy(), scale)
	}
	for y := range side {
		for x := range side {
			outside := min(x, y) < quiet*scale || max(x, y) >= side-quiet*scale
			if r, _, _, _ := paletted.At(x, y).RGBA(); outside && r != 0xffff {
				t.Fatalf("the quiet zone is dark at %d, %d: %v", x, y, color.GrayModel.Convert(paletted.At(x, y)))
			}
		}
	}
}

// TestImage_ZbarReadsIt proves the picture on an independent reader.
func TestImage_ZbarReadsIt(t *testing.T) {
	t.Parallel()
	zbar := needs.Zbar().Of(t)
	for i, w := range []provisioning.Wifi{
		{},
		{SSID: "plain", Security: provisioning.Open},
		{SSID: "  spaces kept  ", Password: "p&<>'\"\\/ ~", Security: provisioning.WPA},
		{SSID: "Café Gäste ß", Password: "пароль-длинный", Security: provisioning.WPA, Hidden: true},
		{SSID: "日本語のネット🙂", Password: strings.Repeat("密码", 10) + "abc", Security: provisioning.WPA},
		{SSID: strings.Repeat("s", 32), Password: strings.Repeat("p", 63), Security: provisioning.WPA},
	} {
		f := newFixture()
		got, err := f.service.Create(t.Context(), caller(), provisioning.Request{PolicyID: "plain", Wifi: w})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "code.png")
		if err := os.WriteFile(file, got.Image.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		read, err := exec.CommandContext(t.Context(), zbar, "--raw", "--quiet", "-Sdisable", "-Sqr.enable", file).Output()
		if err != nil {
			t.Fatalf("code %d: zbarimg: %v", i, err)
		}
		want, err := provisioning.Merge([]byte(vendorPayload), w)
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.TrimSuffix(string(read), "\n"); !sameJSON(t, text, string(want)) || strings.Contains(text, `\u0026`) ||
			strings.Contains(text, `\u003c`) {
			t.Errorf("code %d reads\n%s, want\n%s", i, text, want)
		}
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var values [2]any
	for i, text := range []string{a, b} {
		if err := json.Unmarshal([]byte(text), &values[i]); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	return cmp.Equal(values[0], values[1])
}

// Over USB, AGENT policies are provisioned, VR-only ones too, and no others.
func TestBundle(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.service.Issuers[policy.Agent] = f.issuer
	var records recorder
	f.service.Records = &records
	for ref, want := range map[string]fault.Code{"vr": "", "enterprises/acme/policies/agent": "", "plain": fault.Unsupported,
		"gone": fault.Unsupported,
		"none": fault.NotFound, "enterprises/other/policies/vr": fault.NotFound} {
		t.Run(ref, func(t *testing.T) {
			f.issuer.life = 0
			token, target, err := f.service.Bundle(t.Context(), caller(), ref)
			if got := fault.CodeOf(err); err != nil && got != want || (err == nil) != (want == "") {
				t.Errorf("%s: %v, want %q", ref, err, want)
			}
			if issued := f.issuer.life != 0; issued != (want == "") {
				t.Errorf("%s: a token was made: %v", ref, issued)
			}
			if want == "" && (!bytes.Equal(token.Payload, []byte(vendorPayload)) || !strings.HasSuffix(ref, target.ID)) {
				t.Errorf("%s: %s %s", ref, target.ID, token.Payload)
			}
		})
	}
	if want := []activity.Action{activity.ProvisioningHanded, activity.ProvisioningHanded}; !slices.Equal(records, want) {
		t.Errorf("recorded %v, want %v", records, want)
	}
}

// recorder keeps which actions were recorded.
type recorder []activity.Action

func (r *recorder) RecordActivity(_ context.Context, _ string, e activity.Event) error {
	*r = append(*r, e.Action)
	return nil
}

// A token that the platform made is deleted if its caller may not have it any more.
func TestCreate_MovedSinceThePlatform(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.issuer.token.Ref = "made"
	f.service.Stands = func(context.Context) error { return access.ErrMoved }
	_, err := f.service.Create(t.Context(), caller(), provisioning.Request{PolicyID: "plain", PersonalUsage: provisioning.Disallowed})
	if !errors.Is(err, access.ErrMoved) || len(f.issuer.withdrawn) != 1 || f.issuer.withdrawn[0] != "made" {
		t.Errorf("%v, deleted %v", err, f.issuer.withdrawn)
	}
}

// A code is written before it is handed out; one that cannot be is deleted at its issuer,
// and one that was not made is not kept.
func TestCreate_KeepsTheCode(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.issuer.token.Ref = "enterprises/LC1/enrollmentTokens/1"
	request := provisioning.Request{PolicyID: "plain", PersonalUsage: provisioning.Disallowed,
		Limits: provisioning.Limits{Devices: 3, Tags: []string{"store-12"}}}
	token, _, err := f.service.Issue(t.Context(), caller(), request)
	kept := f.written.kept[token.Code]
	if err != nil || len(f.written.kept) != 1 {
		t.Fatalf("%d codes stored, %v", len(f.written.kept), err)
	}
	if kept.Ref != f.issuer.token.Ref || kept.MaxDevices != 3 || kept.Tags[0] != "store-12" || kept.Maker.ID != "k" {
		t.Fatalf("stored %+v", kept)
	}
	f.written.fail = errors.New("the disk is full")
	if _, _, err := f.service.Issue(t.Context(), caller(), request); fault.CodeOf(err) != fault.Provider || len(f.written.kept) != 1 ||
		len(f.issuer.withdrawn) != 1 {
		t.Errorf("not written: %v, %d kept, withdrawn %v", err, len(f.written.kept), f.issuer.withdrawn)
	}
	f.written.fail, f.issuer.err = nil, errors.New("no")
	if _, _, err := f.service.Issue(t.Context(), caller(), request); err == nil || len(f.written.kept) != 1 {
		t.Errorf("not made: %v, %d kept", err, len(f.written.kept))
	}
	f.issuer.err = nil
	for name, limits := range map[string]provisioning.Limits{"too many": {Devices: 100_001}, "less than none": {Devices: -1},
		"many tags": {Tags: make([]string, 11)}, "an empty tag": {Tags: []string{""}},
		"a turned tag": {Tags: []string{"a\u202eb"}}} {
		request.Limits = limits
		if _, _, err := f.service.Issue(t.Context(), caller(), request); fault.CodeOf(err) != fault.InvalidArguments ||
			len(f.written.kept) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
