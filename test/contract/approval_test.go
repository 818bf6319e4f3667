package contract_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/signature"
	"github.com/musterhq/muster/internal/surface/cli"
	"github.com/musterhq/muster/test/expect"
)

// approvalSite is a company that wants approvals, with a key that changes policies and
// a person with a passkey.
type approvalSite struct {
	*testing.T
	env     *servertest.Env
	replica *servertest.Replica
	company company.Company
	policy  policy.Policy
	client  servertest.Client
	ada     *servertest.PortalClient
	key     *servertest.Authenticator
}

func newApprovalSite(t *testing.T, env *servertest.Env, rule access.ApprovalRule) *approvalSite {
	t.Helper()
	s := &approvalSite{T: t, env: env, replica: env.Start(servertest.OnLocalhost(t)), company: env.Company("acme", servertest.Everything())}
	env.CLI(new(any), "company", "set", "--company", "acme", "--approver-age", "0s")
	s.policy = env.Policy(s.company, "Warehouse", policy.Platform)
	admin := env.Browser(s.company, account.Admin).User
	s.rule(admin, rule)
	s.client = s.replica.As(env.Key(s.company, access.PoliciesRead|access.PoliciesWrite))
	s.ada, s.key = s.replica.PortalClient(t, admin), servertest.NewAuthenticator(t, s.replica.PublicURL())
	s.ada.AddPasskey(s.key).Want(t, 200)
	return s
}

// rule sets the setting; the replicas know it a second later.
func (s *approvalSite) rule(by account.User, rule access.ApprovalRule) {
	s.Helper()
	if _, err := s.env.DB().ChangeControls(s.Context(), s.company.ID, by, func(to *company.Company) {
		to.Settings.Controls.ApplyApproval = rule
	}); err != nil {
		s.Fatal(err)
	}
}

func (s *approvalSite) propose(setting, value string) map[string]any {
	s.Helper()
	s.env.Advance(time.Minute) // a budget of its own
	return s.client.Post("/policies/"+s.policy.ID+"/changes", args{"changes": change(setting, value)}, "X-Muster-Reason",
		"the <b>boss</b> says so").Want(s.T, 201).Members(s.T)
}

// page is the page of approval, reached by the address that apply answered.
func (s *approvalSite) page(id string) servertest.Page {
	s.Helper()
	return s.ada.Get("/approvals/" + id)
}

// decide signs one of the page's forms.
func (s *approvalSite) decide(page servertest.Page, id, what string, more ...string) servertest.Page {
	s.Helper()
	form := page
	_, form.Body, _ = strings.Cut(page.Body, `action="/approvals/`+id+"/"+what+`"`)
	return s.ada.Post("/approvals/"+id+"/"+what, append(more, "token", form.Field(s.T, "token"), "answer", s.key.Get(form.Options(s.T)))...)
}

// TestApproval_EndToEnd: a key proposes and cannot apply; a person approves with a
// passkey in the portal; the key applies; the approval verifies without a database.
func TestApproval_EndToEnd(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		s := newApprovalSite(t, env, access.ApproveAll)
		made := s.propose("CAMERA", "BLOCK")
		id := made["proposalId"].(string)
		url := s.replica.PublicURL() + "/approvals/" + id
		waits := made["approval"].(map[string]any)
		expect.Equal(t, "approval", expect.Values{"members": {members(waits), "at by required state url"},
			"required": {waits["required"], true},
			"state":    {waits["state"], "WAITING"}, "url": {waits["url"], url}, "by": {waits["by"], nil}, "at": {waits["at"], nil}})
		if expires, err := time.Parse(time.RFC3339, made["expiresAt"].(string)); err != nil || expires.Sub(env.Now()) < 23*time.Hour {
			t.Errorf("expires %v", made["expiresAt"])
		}
		apply := "/policy-proposals/" + id + "/apply"
		for range 2 {
			refused := s.client.Post(apply, args{"confirmation": "Warehouse"}, "Idempotency-Key", "once").Want(t, 422).Members(t)
			if refused["code"] != "confirmation_required" || refused["approvalRequired"] != true || refused["approvalUrl"] != url ||
				!strings.Contains(refused["detail"].(string), "does not replace") {
				t.Errorf("refused with %v", refused)
			}
		}
		if now := s.client.Get("/policy-proposals/"+id).Want(t, 200).Members(t); now["status"] != "PENDING" {
			t.Errorf("after the refusal %v", now)
		}
		page := s.page(id).Want(t, 200)
		for _, text := range []string{"Camera", "What the caller says", "the &lt;b&gt;boss&lt;/b&gt; says so", "API key", "Time left"} {
			if !strings.Contains(page.Body, text) {
				t.Errorf("the page lacks %q: %s", text, page.Body)
			}
		}
		if done := s.decide(page, id, "approve").Want(t, 200); !strings.Contains(done.Body, "approved it already") {
			t.Errorf("after approving: %.3000s", done.Body)
		}
		if again := s.decide(page, id, "approve"); !strings.Contains(again.Body, "done already") { // the token is spent
			t.Errorf("a second time: %.2000s", again.Body)
		}
		now := s.client.Get("/policy-proposals/"+id).Want(t, 200).Members(t)["approval"].(map[string]any)
		if now["state"] != "APPROVED" || now["by"] == nil || now["at"] == nil {
			t.Errorf("approved as %v", now)
		}
		s.client.Post(apply, args{}, "Idempotency-Key", "once").Want(t, 200)
		s.client.Post(apply, args{}).Want(t, 409)
		s.exported(id, "muster/approval/1")
		s.recorded(activity.ProposalMade, activity.ProposalApproved, activity.ProposalApplied)
	})
}

// exported exports the signature, and checks it with the company's keys.
func (s *approvalSite) exported(id, domain string) {
	s.Helper()
	var file, keys json.RawMessage
	s.env.CLI(&file, "approval", "export", "--company", "acme", id)
	s.env.CLI(&keys, "approval", "keys", "--company", "acme") // of the address with which the service started
	trust, err := signature.ParseTrust(keys)
	if err != nil {
		s.Fatal(err)
	}
	file = append(file, '\n')
	signed, err := signature.Verify(file, &trust)
	if err != nil {
		s.Fatal(err)
	}
	if c := signed.Countersignature; c == nil || !slices.Contains(c.Rights, "POLICIES_WRITE") {
		s.Errorf("countersigned %+v", c)
	}
	if head, err := signed.Head(); err != nil || head.Domain != domain || head.Subject != id {
		s.Errorf("exported %+v, %v", head, err)
	}
	for i := range len(file) * 8 {
		file[i/8] ^= 1 << (i % 8)
		if _, err := signature.Verify(file, &trust); err == nil {
			s.Errorf("bit %d is not missed", i)
		}
		file[i/8] ^= 1 << (i % 8)
	}
}

// signs makes an exported file of a document, as a program that has the passkey can by hand.
func signs(t *testing.T, key *servertest.Authenticator, document []byte, of signature.TrustedKey) []byte {
	t.Helper()
	options, err := json.Marshal(args{"publicKey": args{"challenge": base64.RawURLEncoding.EncodeToString(signature.Challenge(document)),
		"rpId":             "localhost",
		"allowCredentials": []args{{"type": "public-key", "id": of.CredentialID}}, "userVerification": "required"}})
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Response struct{ AuthenticatorData, ClientDataJSON, Signature string }
	}
	if err := json.Unmarshal([]byte(key.Get(string(options))), &answer); err != nil {
		t.Fatal(err)
	}
	bytesOf := func(text string) []byte {
		raw, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	public, r := bytesOf(of.PublicKey), answer.Response
	low, err := signature.LowS(public, bytesOf(r.Signature))
	if err != nil {
		t.Fatal(err)
	}
	file, err := signature.Signed{Document: document, Assertion: signature.Assertion{ClientData: bytesOf(r.ClientDataJSON),
		AuthenticatorData: bytesOf(r.AuthenticatorData), CredentialID: bytesOf(of.CredentialID), PublicKey: public,
		Signature: low}}.Export()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestApproval_HandMadeByAViewer: a file that a viewer signs by hand, about what the service
// never had, proves a passkey of the company and no decision.
func TestApproval_HandMadeByAViewer(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	s := newApprovalSite(t, env, access.ApproveAll)
	user, key := env.Browser(s.company, account.Viewer).User, servertest.NewAuthenticator(t, s.replica.PublicURL())
	s.replica.PortalClient(t, user).AddPasskey(key).Want(t, 200)
	var keys json.RawMessage
	env.CLI(&keys, "approval", "keys", "--company", "acme", "--public-url", strings.ToUpper(s.replica.PublicURL())+"/")
	trust, err := signature.ParseTrust(keys)
	if err != nil {
		t.Fatal(err)
	}
	its := slices.IndexFunc(trust.Keys, func(k signature.TrustedKey) bool { return k.User.ID == user.ID })
	if its < 0 || slices.Contains(trust.Keys[its].Rights, "POLICIES_WRITE") {
		t.Fatalf("the viewer's key is number %d of %+v", its, trust.Keys)
	}
	document, err := signature.Canonical(signature.Change{Head: signature.Head{Domain: signature.PolicyChange, Subject: "prp_neverexisted",
		Company: "acme", Decision: signature.Approve, Approver: trust.Keys[its].User, At: signature.Time(env.Now())}})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	file, known := filepath.Join(folder, "file"), filepath.Join(folder, "keys")
	if err := errors.Join(os.WriteFile(file, signs(t, key, document, trust.Keys[its]), 0o600),
		os.WriteFile(known, keys, 0o600)); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	verify := cli.ApprovalVerify{File: file, Trust: known}
	exit, ok := errors.AsType[*cli.ExitError](verify.Run(&cli.Env{Context: t.Context(), Out: &out}))
	if !ok || exit.Code != 2 || !strings.HasPrefix(exit.Text, "signed, acceptance not proved") ||
		strings.Contains(out.String(), "approved") {
		t.Errorf("%v, and prints %s", exit, out.String())
	}
}

// recorded wants entries of the activity log, in any order.
func (s *approvalSite) recorded(actions ...activity.Action) {
	s.Helper()
	entries, err := s.env.DB().Activity(s.Context(), activity.Filter{CompanyID: s.company.ID}, activity.Cursor{}, 100)
	if err != nil {
		s.Fatal(err)
	}
	for _, want := range actions {
		found := false
		for _, e := range entries {
			found = found || e.Action == want
		}
		if !found {
			s.Errorf("%s is not recorded", want)
		}
	}
}

// TestApproval_OverMCP: the tool error has the address, and a client that can open it
// is asked to; the same call succeeds once a person has approved.
func TestApproval_OverMCP(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	s := newApprovalSite(t, env, access.ApproveAll)
	id := s.propose("CAMERA", "BLOCK")["proposalId"].(string)
	call := args{"proposalId": id}
	agent := servertest.WithKey(t, s.replica.PublicURL(), s.client.Key)
	var failed map[string]any
	for _, one := range []servertest.Assistant{agent, agent.Legacy()} {
		if err := json.Unmarshal([]byte(one.Call("apply_policy_proposal", call).Content[0].Text), &failed); err != nil ||
			failed["approvalRequired"] != true || failed["approvalUrl"] != s.replica.PublicURL()+"/approvals/"+id ||
			failed["code"] != "confirmation_required" {
			t.Errorf("%v, %v", failed, err)
		}
	}
	opens := agent.Saying("io.modelcontextprotocol/clientCapabilities", args{"elicitation": args{"url": args{}}})
	asks := func(params map[string]any) (result struct {
		ResultType    string
		IsError       bool
		InputRequests map[string]struct {
			Method string
			Params struct{ Mode, URL string }
		}
	}) {
		t.Helper()
		params["name"], params["arguments"] = "apply_policy_proposal", call
		reply := opens.Request("tools/call", params)
		if err := json.Unmarshal(reply.Result, &result); err != nil {
			t.Fatalf("%v: %s", err, reply.Body)
		}
		return result
	}
	question := asks(args{})
	if q := question.InputRequests["approval"]; question.ResultType != "input_required" || q.Params.Mode != "url" ||
		q.Params.URL != s.replica.PublicURL()+"/approvals/"+id {
		t.Errorf("asked %+v", question)
	}
	answered := args{"inputResponses": args{"approval": args{"action": "accept"}}}
	if again := asks(answered); !again.IsError || again.InputRequests != nil { // saying so is no approval
		t.Errorf("asked again %+v", again)
	}
	s.decide(s.page(id), id, "approve").Want(t, 200)
	if done := asks(answered); done.IsError || done.InputRequests != nil {
		t.Errorf("after the approval %+v", done)
	}
}

// TestApproval_Declined: the proposal ends, and says that a person declined it.
func TestApproval_Declined(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	s := newApprovalSite(t, env, access.ApproveRisky)
	if made := s.propose("CAMERA", "BLOCK"); made["approval"] != nil { // neither HIGH nor warned of
		t.Errorf("approval %v", made["approval"])
	}
	made := s.propose("CONFIGURE_WIFI", "BLOCK")
	id := made["proposalId"].(string)
	page := s.page(id).Want(t, 200)
	if !strings.Contains(page.Body, "Devices forget Wi-Fi networks") {
		t.Errorf("no warning: %s", page.Body)
	}
	if done := s.decide(page, id, "decline").Want(t, 200); !strings.Contains(done.Body, "declined it") {
		t.Errorf("after declining: %.2000s", done.Body)
	}
	now := s.client.Get("/policy-proposals/"+id).Want(t, 200).Members(t)
	if now["status"] != "FAILED" || now["approval"].(map[string]any)["state"] != "DECLINED" {
		t.Errorf("declined %v", now)
	}
	if refused := s.client.Post("/policy-proposals/"+id+"/apply", args{}).Want(t, 409).Members(t); !strings.Contains(
		refused["detail"].(string), "a person declined it") {
		t.Errorf("refused with %v", refused)
	}
	s.exported(id, "muster/approval/1")
	s.recorded(activity.ProposalDeclined)
}

// TestDecline_TellsTheCaller: the reason of a decline is in the proposal, in the refusal of a
// command and in what explain says of both.
func TestDecline_TellsTheCaller(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant, replica := authorizing(t, env)
		env.CLI(new(any), "company", "set", "--company", "acme", "--apply-approval", "all")
		client, ada := tenant.Client(replica, access.All), newDecider(t, env, replica, tenant.Company, account.Manager)
		declines := func(path, form, reason string) {
			t.Helper()
			ready := ada.Post(path+form, "decision", "DECLINE", "reason", reason).Want(t, 200)
			ada.Post(path+form, "token", ready.Field(t, "token"), "answer", ada.key.Get(ready.Options(t))).Want(t, 200)
		}
		explained := func(tool string, arguments args) {
			t.Helper()
			if e := explain(t, client, tool, arguments); e.Approval == nil || !e.Approval.Required || e.Approval.State != "DECLINED" {
				t.Errorf("explain says of %s %+v", tool, e.Approval)
			}
		}
		made := client.Post("/policies/"+tenant.Policy.ID+"/changes", args{"changes": change("CAMERA", "BLOCK")}).Want(t, 201).
			Members(t)["proposalId"].(string)
		declines("/approvals/"+made, "/decline", " not before <Friday> ")
		now := client.Get("/policy-proposals/"+made).Want(t, 200).Members(t)
		if got := now["approval"].(map[string]any); got["reason"] != "not before <Friday>" || got["state"] != "DECLINED" ||
			now["status"] != "FAILED" {
			t.Errorf("declined %v", now)
		}
		explained("apply_policy_proposal", args{"proposalId": made})

		wipe := "/assets/" + tenant.Devices(replica, servertest.FullyManaged(), 1)[0].AssetID + "/commands/wipe"
		declines(strings.TrimPrefix(awaitsPerson(t, client.Post(wipe, nil)), replica.PublicURL()), "", "it was found")
		if detail := client.Post(wipe, nil).Want(t, 403).Members(t)["detail"].(string); !strings.Contains(detail, "it was found") {
			t.Errorf("refused with %s", detail)
		}
		explained("wipe_device", args{"assetId": strings.Split(wipe, "/")[2]})
	})
}

// TestApproval_ThePageAnswers every visitor who cannot decide.
func TestApproval_ThePageAnswers(t *testing.T) {
	t.Parallel()
	env := servertest.New(t)
	s := newApprovalSite(t, env, access.ApproveAll)
	id := s.propose("CAMERA", "BLOCK")["proposalId"].(string)
	path := "/approvals/" + id
	shown := func(v *servertest.PortalClient, want string) {
		t.Helper()
		page := v.Get(path)
		if !strings.Contains(page.Body, want) || strings.Contains(page.Body, "data-passkey") {
			t.Errorf("want %q: %s", want, page.Body)
		}
	}
	if page := s.replica.SignedOut(t).Get(path); !strings.HasPrefix(page.Path, "/signin?next=%2Fapprovals%2F") {
		t.Errorf("signed out: %s", page.Path)
	}
	shown(s.replica.PortalClient(t, env.Browser(s.company, account.Viewer).User), "permission to")
	bare := s.replica.PortalClient(t, env.Browser(s.company, account.Admin).User)
	shown(bare, "/account/passkeys/new")
	env.CLI(new(any), "company", "set", "--company", "acme", "--approver-age", "1h")
	env.Advance(2 * time.Second)
	shown(s.ada, "You can decide from")
	env.CLI(new(any), "company", "set", "--company", "acme", "--approver-age", "0s")
	env.Advance(2 * time.Second)
	if page := s.page(id); !strings.Contains(page.Body, "data-passkey") {
		t.Errorf("old enough: %s", page.Body)
	}
	waiting := s.ada.Get("/proposals").Want(t, 200)
	if !strings.Contains(waiting.Body, `href="`+path+`"`) {
		t.Errorf("it is not in the list of what waits: %s", waiting.Body)
	}
	env.Advance(25 * time.Hour)
	fresh := s.replica.PortalClient(t, env.Browser(s.company, account.Admin).User)
	shown(fresh, "It has expired")
	if page := fresh.Get("/approvals/prp_7q2m9x4c6v1b8n3z5k0w4t6r2y"); page.Status != 404 {
		t.Errorf("unknown: %d", page.Status)
	}
}
