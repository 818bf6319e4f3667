package portal_test

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// proofs says of every address that changes something whether it takes a fresh proof of
// identity: never, always, or for some forms, of which it has one that takes it and one
// that does not. A new address fails the test until it is listed.
var proofs = map[string]struct{ takes, not url.Values }{
	"/account/password":                  {takes: url.Values{}},
	"/account/passkeys":                  {takes: url.Values{}},
	"/account/passkeys/{passkey}/remove": {takes: url.Values{}},
	"/account/recovery":                  {takes: url.Values{}},
	"/account/sessions/{session}/end":    {not: url.Values{}},
	"/account/mail":                      {not: url.Values{}},
	"/account/prove":                     {not: url.Values{}},
	"/account/prove/passkey":             {not: url.Values{}},
	"/account/prove/company":             {not: url.Values{}},
	"/users":                             {takes: url.Values{}},
	"/users/{user}":                      {takes: url.Values{}},
	"/users/{user}/disabled":             {takes: url.Values{"disabled": {"true"}}},
	"/users/{user}/invitation":           {takes: url.Values{}},
	"/access/gates":                      {takes: url.Values{"on": {"true"}}, not: url.Values{"on": {"false"}}},
	"/access/keys": {takes: url.Values{"permission": {"DEVICES_COMMAND"}},
		not: url.Values{"permission": {"DEVICES_READ", "POLICIES_READ"}}},
	"/access/computer":                        {takes: url.Values{}},
	"/access/keys/{key}/revoke":               {not: url.Values{}},
	"/access/connections/{connection}/scopes": {takes: url.Values{"scope": {"PROVISIONING"}}, not: url.Values{"scope": {"DEVICES_READ"}}},
	"/access/connections/{connection}/freeze": {takes: url.Values{"frozen": {"false"}}, not: url.Values{"frozen": {"true"}}},
	"/access/connections/{connection}/revoke": {not: url.Values{}},
	"/access/controls":                        {takes: url.Values{}},
	"/access/controls/approval":               {takes: url.Values{}},
	"/access/controls/resume":                 {takes: url.Values{}},
	"/access/controls/stop":                   {not: url.Values{}},
	"/access/controls/{id}/cancel":            {not: url.Values{}},
	"/access/controls/{id}/confirm":           {not: url.Values{}}, // takes a passkey itself
	"/approvals/{id}/approve":                 {not: url.Values{}}, // is signed
	"/approvals/{id}/decline":                 {not: url.Values{}},
	"/authorizations/{id}":                    {not: url.Values{}},
	"/settings":                               {takes: url.Values{"keepActivity": {"399"}}, not: url.Values{"keepActivity": {"400"}}},
	"/settings/signin":                        {takes: url.Values{}},
	"/settings/platform":                      {not: url.Values{}},
	"/settings/platform/finish":               {not: url.Values{}},
	"/settings/updates":                       {not: url.Values{}},
	"/settings/webhooks":                      {takes: url.Values{}},
	"/settings/webhooks/{webhook}/test":       {not: url.Values{}},
	"/settings/webhooks/{webhook}/replay":     {not: url.Values{}},
	"/settings/webhooks/{webhook}/rotate":     {takes: url.Values{}},
	"/settings/webhooks/{webhook}/finish":     {not: url.Values{}},
	"/settings/webhooks/{webhook}/enable":     {takes: url.Values{}},
	"/settings/webhooks/{webhook}/delete":     {takes: url.Values{}},
	"/activity/verify":                        {not: url.Values{}},
	"/overview/notice/dismiss":                {not: url.Values{}},
	"/devices/import":                         {not: url.Values{}},
	"/policies":                               {not: url.Values{}},
	"/policies/{id}/review":                   {not: url.Values{}},
	"/policies/{id}/save":                     {not: url.Values{}},
	"/policies/{id}/details":                  {not: url.Values{}},
	"/policies/{id}/system-update":            {not: url.Values{}},
	"/policies/{id}/copy":                     {not: url.Values{}},
	"/policies/{id}/restore":                  {not: url.Values{}},
	"/policies/{id}/push":                     {not: url.Values{}},
	"/policies/{id}/delete":                   {not: url.Values{}},
	"/proposals/{id}/apply":                   {not: url.Values{}},
	"/proposals/{id}/again":                   {not: url.Values{}},
	"/jobs":                                   {not: url.Values{}},
	"/jobs/{id}/undo":                         {not: url.Values{}},
	"/devices/{id}/archive":                   {not: url.Values{}},
	"/devices/{id}/restore":                   {not: url.Values{}},
	"/devices/{id}/delete":                    {takes: url.Values{}},
	"/devices/{id}/undo":                      {not: url.Values{}},
	"/jobs/{id}/{step}":                       {not: url.Values{}},
	"/views":                                  {not: url.Values{}},
	"/views/{id}/drop":                        {not: url.Values{}},
	"/enrol":                                  {not: url.Values{}},
	"/enrol/codes/{id}/revoke":                {not: url.Values{}},
	"/devices/{id}/edit":                      {not: url.Values{}},
	"/devices/{id}/enroll":                    {takes: url.Values{}},
	"/devices/{id}/merge":                     {takes: url.Values{}},
	"/devices/{id}/asks/{request}/confirm":    {takes: url.Values{}},
	"/devices/{id}/asks/{request}/decline":    {not: url.Values{}},
}

// Every address that changes something says whether it takes a fresh proof of identity.
func TestProof_OfEveryAddress(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	stale := o.person(t, account.Admin)
	o.Advance(account.ReauthFresh + time.Second)
	asks := func(path string, form url.Values) bool {
		t.Helper()
		answer := stale.Send(o.base+path, form, frame.ProofHeader, "asked")
		if missing := answer.Header.Get(frame.ProofHeader) != ""; missing != (answer.Status == 403) || !missing && answer.Status != 204 {
			t.Errorf("%s %v: %d %s", path, form, answer.Status, answer.Body)
		}
		return answer.Status == 403
	}
	check := func(path string, form url.Values, want bool) {
		t.Helper()
		if form == nil {
			return
		}
		if got := asks(path, form); got != want {
			t.Errorf("%s with %v takes a proof: %t, want %t", path, form, got, want)
		}
	}
	value := regexp.MustCompile(`\{[a-z]+\}`)
	for _, route := range o.replica.Pages() {
		method, path, _ := strings.Cut(route.Pattern, " ")
		if method != "POST" {
			continue
		}
		if strings.Contains(path, "{operation}") { // below
			continue
		}
		one, listed := proofs[path]
		if !listed {
			t.Errorf("%s does not say here whether it takes a proof", path)
		}
		check(value.ReplaceAllString(path, "x"), one.takes, true)
		check(value.ReplaceAllString(path, "x"), one.not, false)
	}
	for _, row := range command.Catalog() {
		check("/devices/x/commands/"+row.Operation, url.Values{}, row.Destructive)
	}
}

// Without a proof a form does nothing and leads to the proof, which leads to the page of
// the form; a form whose script asks first does nothing either.
func TestProof_ComesBeforeTheChange(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin, colleague := o.person(t, account.Admin), o.person(t, account.Viewer)
	phone := o.device(t, "d1", "SN1", "Phone", o.Policy)
	o.Advance(account.ReauthFresh + time.Second)
	disabled := func() bool {
		u, err := o.DB().UserByID(t.Context(), o.Company.ID, colleague.User.ID)
		if err != nil {
			t.Fatal(err)
		}
		return u.Disabled
	}
	path, form := "/users/"+colleague.User.ID+"/disabled", url.Values{"disabled": {"true"}}
	if at := admin.Send(o.base+path, form).Want(t, 303).Header.Get("Location"); at != "/account/prove?next="+
		url.QueryEscape("/users/"+colleague.User.ID) || disabled() {
		t.Errorf("without a proof: to %s, disabled %t", at, disabled())
	}
	all := command.Catalog()
	destructive := all[slices.IndexFunc(all, func(row *command.Row) bool { return row.Destructive })]
	wipe := "/devices/" + phone.ID + "/commands/" + destructive.Operation
	if at := admin.Send(o.base+wipe, url.Values{}).Want(t, 303).Header.Get("Location"); at != "/account/prove?next="+
		url.QueryEscape("/devices/"+phone.ID) || o.commands(t, phone) != 0 {
		t.Errorf("a destructive command: to %s, %d sent", at, o.commands(t, phone))
	}
	partial := []string{"Hx-Request", "true", "Hx-Request-Type", "partial"}
	dialog := admin.Send(o.base+"/account/prove", url.Values{"password": {"wrong"}}, partial...).Want(t, 401)
	if dialog.Header.Get(frame.ProofHeader) == "" || strings.Contains(string(dialog.Body), "<html") ||
		!strings.Contains(string(dialog.Body), "did not prove it") {
		t.Errorf("a wrong password in the dialog: %s", dialog.Body)
	}
	admin.Send(o.base+"/account/prove", url.Values{"password": {servertest.Password}}, partial...).Want(t, 204)
	admin.Send(o.base+path, form, frame.ProofHeader, "asked").Want(t, 204)
	if disabled() {
		t.Error("a request that only asks changed something")
	}
	if admin.Send(o.base+path, form).Want(t, 303); !disabled() {
		t.Error("after the proof nothing was done")
	}
}

// A connection that has scopes beyond reading keeps them, and loses some, without a proof.
func TestProof_OfWhatAConnectionGains(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	person := o.person(t, account.Admin)
	person.Connect(o.base, "mcp:devices:read", "mcp:devices:command")
	all, err := o.DB().Connections(t.Context(), o.Company.ID)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	o.Advance(account.ReauthFresh + time.Second)
	for _, c := range []struct {
		scopes []string
		takes  bool
	}{{[]string{"DEVICES_READ"}, false}, {[]string{"DEVICES_READ", "POLICIES_READ"}, false},
		{[]string{"DEVICES_READ", "DEVICES_COMMAND"}, false},
		{[]string{"DEVICES_READ", "DEVICES_COMMAND", "PROVISIONING"}, true}} {
		answer := person.Send(o.base+"/access/connections/"+all[0].ID+"/scopes", url.Values{"scope": c.scopes}, frame.ProofHeader, "asked")
		if answer.Status == 403 != c.takes {
			t.Errorf("%v: %d", c.scopes, answer.Status)
		}
	}
}

// Changing the password proves nothing: the new session is as fresh as the old one. The
// new password is another one.
func TestPassword_IsNoProof(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	change := func(to string, status int) {
		t.Helper()
		admin.Send(o.base+"/account/password", url.Values{"current": {servertest.Password}, "password": {to}, "again": {to}}).Want(t,
			status)
	}
	change(servertest.Password, 422)
	o.Advance(account.ReauthFresh - time.Minute)
	session := func() account.Session {
		all, err := o.DB().Sessions(t.Context(), admin.User.ID)
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		return all[0]
	}
	before := session()
	change("another long password", 303)
	if after := session(); after.ID == before.ID || !after.ProvedAt.Equal(before.ProvedAt) {
		t.Errorf("the new session is proved at %v, the old one at %v", after.ProvedAt, before.ProvedAt)
	}
}

// A shorter retention waits as other loosenings do; a longer one, and the other settings,
// take effect at once. An approval rule that is missing from the form is refused.
func TestControls_Retention(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	ada := o.person(t, account.Admin)
	settings := func() (string, access.Settings) {
		c, err := o.DB().CompanyByID(t.Context(), o.Company.ID)
		if err != nil {
			t.Fatal(err)
		}
		return c.Name, c.Settings
	}
	save := func(name, keep string) {
		t.Helper()
		ada.Send(o.base+"/settings", url.Values{"name": {name}, "inactiveAfter": {"30"}, "keepActivity": {keep}}).Want(t, 303)
	}
	save("One", "500")
	if name, s := settings(); name != "One" || s.KeepActivity != 500*24*time.Hour {
		t.Errorf("longer: %s, %s", name, s.KeepActivity)
	}
	save("Two", "40")
	if name, s := settings(); name != "Two" || s.KeepActivity != 500*24*time.Hour {
		t.Errorf("shorter: %s, %s", name, s.KeepActivity)
	}
	if page := o.get(t, ada, "/access/controls", 200); !strings.Contains(page, "How long activity is kept: 500 days → 40 days") {
		t.Error("the page does not say what waits")
	}
	o.Advance(access.LoosenAfter)
	if err := o.DB().ApplyLoosenings(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, s := settings(); s.KeepActivity != 40*24*time.Hour {
		t.Errorf("after a day: %s", s.KeepActivity)
	}
	ada = o.person(t, account.Admin)
	before, _ := settings()
	ada.Send(o.base+"/access/controls/approval", url.Values{"secondPerson": {"true"}}).Want(t, 400)
	if after, s := settings(); after != before || s.Controls.ApplyApproval == "" || s.Controls.SecondPerson {
		t.Errorf("a form without a rule: %+v", s.Controls)
	}
	for age, status := range map[string]int{"168": 303, "168.1": 422, "8760": 422} {
		ada.Send(o.base+"/access/controls", url.Values{"limit": {"25/60m"}, "age": {age}}).Want(t, status)
	}
}

// A view whose filter cannot be read is refused, and says why.
func TestSaveView_UnreadableFilter(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.person(t, account.Viewer).Send(o.base+"/views", url.Values{"name": {"n"}, "query": {"%_"}}).Want(t, 400)
}

// Forms whose address may take a proof say so to the script of the page.
func TestProof_FormsSaySo(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin, colleague := o.person(t, account.Admin), o.person(t, account.Viewer)
	phone := o.device(t, "d1", "SN1", "Phone", o.Policy)
	value, form := regexp.MustCompile(`\{[a-z]+\}`), regexp.MustCompile(`<form[^>]* action="([^"]+)"[^>]*>`)
	patterns := map[string]*regexp.Regexp{"": regexp.MustCompile(`^/devices/[^/]+/commands/wipe_device$`)}
	for path, one := range proofs {
		if one.takes != nil {
			patterns[path] = regexp.MustCompile("^" + value.ReplaceAllString(path, "[^/]+") + "$")
		}
	}
	seen := map[string]bool{}
	for _, page := range []string{"/account", "/users/new", "/users/" + colleague.User.ID, "/access",
		"/access/keys/new", "/access/controls",
		"/settings", "/settings/signin", "/settings/webhooks/new", "/devices/" + phone.ID, "/devices/" + phone.ID + "/enroll"} {
		for _, found := range form.FindAllStringSubmatch(o.get(t, admin, page, 200), -1) {
			for path, pattern := range patterns {
				if !pattern.MatchString(found[1]) {
					continue
				}
				if seen[path] = true; !strings.Contains(found[0], "data-proof") {
					t.Errorf("%s: the form %s does not ask for a proof", page, found[0])
				}
			}
		}
	}
	if len(seen) < 9 {
		t.Errorf("forms were found for %v alone", seen)
	}
}
