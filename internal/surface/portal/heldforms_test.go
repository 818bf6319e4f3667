package portal_test

import (
	"maps"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/job"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
)

// form is a form of the portal, as a person sends it.
type form struct {
	pattern string
	// ready returns its address and its fields.
	ready func(d *desk) (path string, fields url.Values)
	// signer: it takes a passkey, or the one who has it.
	signer bool
	// inert: it changes nothing here.
	inert bool
	// goesOn: it is carried out although the portal is stopped.
	goesOn bool
	// own: every signed-in person may send it.
	own bool
}

// forms are all of them, in an order in which each can be sent.
func forms() []form {
	at := func(path string, fields url.Values) func(*desk) (string, url.Values) {
		return func(*desk) (string, url.Values) { return path, fields }
	}
	ofPolicy := func(action string, fields url.Values) func(*desk) (string, url.Values) {
		return func(d *desk) (string, url.Values) {
			p := d.newPolicy()
			fields := maps.Clone(fields)
			fields.Set("version", strconv.Itoa(p.Version))
			return "/policies/" + p.ID + "/" + action, fields
		}
	}
	ofConnection := func(action string, fields url.Values) func(*desk) (string, url.Values) {
		return func(d *desk) (string, url.Values) {
			return "/access/connections/" + d.connection() + "/" + action, fields
		}
	}
	decides := func(action string) func(*desk) (string, url.Values) {
		return func(d *desk) (string, url.Values) {
			path := "/approvals/" + d.proposed()
			return path + "/" + action, d.signs(path, `action="`+path+"/"+action+`"`)
		}
	}
	return []form{
		{pattern: "/account/sessions/{session}/end", goesOn: true, own: true, ready: func(d *desk) (string, url.Values) {
			u, err := d.DB().UserByID(d.Context(), d.Company.ID, d.plain.User.ID)
			d.check(err)
			s := account.Session{ID: resource.NewID(), TokenHash: access.HashSecret(resource.NewID()), UserID: u.ID,
				CompanyID: u.CompanyID, CreatedAt: d.Now(), SeenAt: d.Now(), PasswordHash: u.PasswordHash}
			d.check(d.DB().CreateSession(d.Context(), s))
			return "/account/sessions/" + s.ID + "/end", url.Values{}
		}},
		{pattern: "/account/prove", goesOn: true, own: true, ready: at("/account/prove", url.Values{"password": {servertest.Password}})},
		{pattern: "/account/prove/company", goesOn: true, own: true, inert: true, ready: at("/account/prove/company", url.Values{})},
		{pattern: "/account/prove/passkey", goesOn: true, own: true, signer: true, ready: func(d *desk) (string, url.Values) {
			return "/account/prove/passkey", d.signs("/account/prove", "<form")
		}},
		{pattern: "/users", ready: at("/users",
			url.Values{"email": {"new@acme.test"}, "name": {"New"}, "role": {"viewer"}, "scope": {"all"}})},
		{pattern: "/users/{user}", ready: func(d *desk) (string, url.Values) {
			return "/users/" + d.other().User.ID, url.Values{"name": {"Other"}, "role": {"operator"}, "scope": {"all"}}
		}},
		{pattern: "/users/{user}/disabled", goesOn: true, ready: func(d *desk) (string, url.Values) {
			return "/users/" + d.other().User.ID + "/disabled", url.Values{"disabled": {"true"}}
		}},
		{pattern: "/users/{user}/disabled", ready: func(d *desk) (string, url.Values) {
			u := d.other()
			u.Change(func(u *account.User) { u.Disabled = true })
			return "/users/" + u.User.ID + "/disabled", url.Values{"disabled": {"false"}}
		}},
		{pattern: "/users/{user}/invitation", ready: func(d *desk) (string, url.Values) {
			u := d.other()
			u.Change(func(u *account.User) { u.PasswordHash = "" })
			return "/users/" + u.User.ID + "/invitation", url.Values{}
		}},
		{pattern: "/access/gates", ready: at("/access/gates", url.Values{"gate": {"provisioning"}, "on": {"false"}})},
		{pattern: "/access/keys", ready: func(d *desk) (string, url.Values) {
			return "/access/keys",
				url.Values{"name": {"New"}, "permission": {"DEVICES_READ"}, "expires": {"90"},
					"once": {d.page(d.plain, "/access/keys/new").Field(d.T, "once")}}
		}},
		{pattern: "/access/computer",
			ready: at("/access/computer", url.Values{"challenge": {strings.Repeat("a", 43)}, "name": {"laptop"}, "preset": {"read-only"}})},
		{pattern: "/access/keys/{key}/revoke", ready: func(d *desk) (string, url.Values) {
			k, _ := apikey.New(d.Company.ID, "k", "operator", access.All, d.Now(), time.Time{})
			d.check(d.DB().CreateKey(d.Context(), k))
			return "/access/keys/" + k.ID + "/revoke", url.Values{}
		}},
		{pattern: "/access/connections/{connection}/scopes", ready: ofConnection("scopes", url.Values{"scope": {"DEVICES_READ"}})},
		{pattern: "/access/connections/{connection}/freeze", ready: ofConnection("freeze", url.Values{"frozen": {"true"}})},
		{pattern: "/access/connections/{connection}/revoke", ready: ofConnection("revoke", url.Values{})},
		{pattern: "/access/controls",
			ready: at("/access/controls", url.Values{"limited": {"true"}, "limit": {"5"}, "minutes": {"60"}, "age": {"0"}})},
		{pattern: "/access/controls/approval", ready: at("/access/controls/approval",
			url.Values{"applyApproval": {"ALL"}, "destructiveApproval": {"true"}, "secondPerson": {"true"}})},
		{pattern: "/access/controls/{id}/cancel", goesOn: true, ready: func(d *desk) (string, url.Values) {
			return "/access/controls/" + d.waits(func(s *access.Settings) { s.KeepActivity -= 24 * time.Hour }) + "/cancel", url.Values{}
		}},
		// While all is stopped, this is refused, and that is noted.
		{pattern: "/access/controls/{id}/confirm", goesOn: true, signer: true, ready: func(d *desk) (string, url.Values) {
			path := "/access/controls/" + d.waits(func(s *access.Settings) { s.Controls.DestructiveLimit.Devices = 20 }) + "/confirm"
			return path, d.signs(path, `action="`+path+`"`)
		}},
		{pattern: "/approvals/{id}/approve", signer: true, ready: decides("approve")},
		{pattern: "/approvals/{id}/decline", signer: true, ready: decides("decline")},
		{pattern: "/authorizations/{id}", signer: true, ready: func(d *desk) (string, url.Values) {
			d.client = d.Client(d.replica, access.All)
			address := d.client.Post("/assets/"+d.phone.ID+"/commands/wipe", map[string]any{}).Want(d.T, 403).
				Members(d.T)["approvalUrl"].(string)
			_, id, _ := strings.Cut(address, "/authorizations/")
			return "/authorizations/" + id, d.signs("/authorizations/"+id, `action="/authorizations/`+id+`"`)
		}},
		{pattern: "/settings", ready: at("/settings", url.Values{"name": {"Another"}, "inactiveAfter": {"30"}, "keepActivity": {"500"}})},
		{pattern: "/settings/signin", ready: at("/settings/signin",
			url.Values{"name": {"Idp"}, "issuer": {"https://idp.test"}, "clientId": {"c"}, "domains": {"acme.test"}, "role": {"viewer"}})},
		{pattern: "/settings/platform", inert: true, ready: at("/settings/platform", url.Values{})}, // the company is connected
		{pattern: "/settings/platform/finish", inert: true, ready: at("/settings/platform/finish", url.Values{})},
		{pattern: "/settings/updates", ready: at("/settings/updates", url.Values{"paused": {"true"}})},
		{pattern: "/settings/webhooks", ready: func(d *desk) (string, url.Values) {
			return "/settings/webhooks", url.Values{"url": {"https://192.0.2.1/new"}, "all": {"true"},
				"once": {d.page(d.plain, "/settings/webhooks/new").Field(d.T, "once")}}
		}},
		{pattern: "/settings/webhooks/{webhook}/test", ready: ofWebhook("test")},
		{pattern: "/settings/webhooks/{webhook}/replay", ready: ofWebhook("replay")},
		{pattern: "/settings/webhooks/{webhook}/rotate", ready: ofWebhook("rotate")},
		{pattern: "/settings/webhooks/{webhook}/finish", ready: ofWebhook("finish")},
		{pattern: "/settings/webhooks/{webhook}/enable", ready: ofWebhook("enable")},
		{pattern: "/settings/webhooks/{webhook}/delete", ready: ofWebhook("delete")},
		{pattern: "/activity/verify", inert: true, ready: at("/activity/verify", url.Values{})},
		{pattern: "/devices/import", ready: at("/devices/import", url.Values{}), inert: true}, // TestImport_HeldFile sends files
		{pattern: "/overview/notice/dismiss", ready: at("/overview/notice/dismiss", url.Values{})},
		{pattern: "/policies", ready: at("/policies", url.Values{"name": {"New"}, "type": {"PLATFORM"}})},
		{pattern: "/policies/{id}/review", ready: ofPolicy("review", url.Values{"s.CAMERA": {"BLOCK"}})},
		{pattern: "/policies/{id}/details", ready: ofPolicy("details", url.Values{"name": {"Renamed"}})},
		{pattern: "/policies/{id}/copy", ready: ofPolicy("copy", url.Values{"name": {"Copied"}})},
		{pattern: "/policies/{id}/push", ready: ofPolicy("push", url.Values{})},
		{pattern: "/policies/{id}/delete", ready: ofPolicy("delete", url.Values{})},
		{pattern: "/policies/{id}/save", ready: func(d *desk) (string, url.Values) {
			p := d.AgentPolicy(d.Company, resource.NewID())
			return "/policies/" + p.ID + "/save", url.Values{"version": {strconv.Itoa(p.Version)}, "s.CAMERA": {"BLOCK"}}
		}},
		{pattern: "/policies/{id}/system-update", ready: func(d *desk) (string, url.Values) {
			p := d.AgentPolicy(d.Company, resource.NewID())
			return "/policies/" + p.ID + "/system-update", url.Values{"version": {strconv.Itoa(p.Version)}, "type": {policy.Postpone}}
		}},
		{pattern: "/policies/{id}/restore", ready: func(d *desk) (string, url.Values) {
			p := d.AgentPolicy(d.Company, resource.NewID())
			d.plain.Send(d.base+"/policies/"+p.ID+"/save", url.Values{"version": {strconv.Itoa(p.Version)}, "s.CAMERA": {"BLOCK"}}).
				Want(d.T, 303)
			return "/policies/" + p.ID + "/restore", url.Values{"version": {strconv.Itoa(p.Version + 1)},
				"revision": {strconv.Itoa(p.Version)}}
		}},
		{pattern: "/proposals/{id}/apply", ready: func(d *desk) (string, url.Values) {
			p := d.newPolicy()
			to := d.plain.Send(d.base+"/policies/"+p.ID+"/review",
				url.Values{"version": {strconv.Itoa(p.Version)}, "s.CAMERA": {"BLOCK"}}).Want(d.T, 303).Header.Get("Location")
			return to + "/apply", url.Values{"confirmation": {p.Name}, "once": {resource.NewID()}}
		}},
		{pattern: "/proposals/{id}/again", ready: func(d *desk) (string, url.Values) {
			return "/proposals/" + d.proposed() + "/again",
				url.Values{}
		}},
		{pattern: "/views", ready: at("/views", url.Values{"name": {"Mine"}, "query": {"q=a"}})},
		{pattern: "/views/{id}/drop", ready: func(d *desk) (string, url.Values) {
			v := asset.SavedView{ID: resource.NewID(), CompanyID: d.Company.ID, UserID: d.plain.User.ID,
				Name: resource.NewID(), Query: "q=b",
				CreatedAt: d.Now()}
			d.check(d.DB().SaveView(d.Context(), v))
			return "/views/" + v.ID + "/drop", url.Values{}
		}},
		{pattern: "/enrol", ready: func(d *desk) (string, url.Values) {
			return "/enrol", url.Values{"policy": {d.Policy.ID}, "personalUsage": {"DISALLOWED"}}
		}},
		{pattern: "/enrol/codes/{id}/revoke", ready: func(d *desk) (string, url.Values) {
			c := provisioning.Code{ID: resource.NewID(), CompanyID: d.Company.ID, PolicyID: d.Policy.ID, Management: d.Policy.Type,
				CreatedAt: d.Now(), ExpiresAt: d.Now().Add(time.Hour)}
			d.check(d.DB().CreateCode(d.Context(), c))
			return "/enrol/codes/" + c.ID + "/revoke", url.Values{}
		}},
		{pattern: "/jobs", ready: func(d *desk) (string, url.Values) {
			return "/jobs", url.Values{"once": {resource.NewID()}, "command": {"lock"}, "id": {d.phone.ID},
				"at-utc": {d.Now().Add(time.Hour).Format(time.RFC3339)}}
		}},
		{pattern: "/jobs/{id}/{step}", ready: func(d *desk) (string, url.Values) {
			j := job.Job{ID: resource.NewID(), CompanyID: d.Company.ID, Command: "lock", Status: job.Running, Rate: 1,
				Total: 1, CreatedAt: d.Now(),
				StartsAt: d.Now().Add(time.Hour), NextAt: d.Now().Add(time.Hour)}
			_, err := d.DB().CreateJob(d.Context(), j, []string{d.phone.ID})
			d.check(err)
			return "/jobs/" + j.ID + "/cancel", url.Values{}
		}},
		{pattern: "/jobs/{id}/undo", ready: func(d *desk) (string, url.Values) {
			j := job.Job{ID: resource.NewID(), CompanyID: d.Company.ID, Command: job.Tags, Status: job.Running, Rate: 1,
				Total: 1, CreatedAt: d.Now(),
				StartsAt: d.Now().Add(time.Hour), NextAt: d.Now().Add(time.Hour)}
			_, err := d.DB().CreateJob(d.Context(), j, []string{d.phone.ID})
			d.check(err)
			_, err = d.DB().MoveJob(d.Context(), d.Company.ID, j.ID, job.Canceled, "")
			d.check(err)
			d.edited(d.phone, job.RequestID(j.ID))
			return "/jobs/" + j.ID + "/undo", url.Values{"once": {resource.NewID()}}
		}},
		{pattern: "/devices/{id}/archive", ready: func(d *desk) (string, url.Values) {
			return "/devices/" + d.spare() + "/archive", url.Values{}
		}},
		{pattern: "/devices/{id}/restore", ready: func(d *desk) (string, url.Values) {
			id := d.spare()
			d.check(d.DB().ArchiveAssets(d.Context(), d.Company.ID, []string{id}, true))
			return "/devices/" + id + "/restore", url.Values{}
		}},
		{pattern: "/devices/{id}/delete", ready: func(d *desk) (string, url.Values) {
			id := d.spare()
			d.check(d.DB().ArchiveAssets(d.Context(), d.Company.ID, []string{id}, true))
			a, err := d.DB().Asset(d.Context(), d.Company.ID, id)
			d.check(err)
			return "/devices/" + id + "/delete", url.Values{"code": {d.historyCode(d.T, d.signer, id)}, "confirm": {a.Identification}}
		}},
		{pattern: "/devices/{id}/undo", ready: func(d *desk) (string, url.Values) {
			ref := resource.NewID()
			d.edited(d.headset, ref)
			return "/devices/" + d.headset.ID + "/undo", url.Values{"ref": {ref}}
		}},
		{pattern: "/devices/{id}/edit", ready: func(d *desk) (string, url.Values) {
			return "/devices/" + d.headset.ID + "/edit", url.Values{"identification": {d.headset.Identification},
				"tags": {resource.NewID()}}
		}},
		{pattern: "/devices/{id}/commands/{operation}", ready: func(d *desk) (string, url.Values) {
			return "/devices/" + d.phone.ID + "/commands/wipe_device",
				url.Values{"once": {resource.NewID()}, "confirm": {d.phone.Identification}}
		}},
		{pattern: "/devices/{id}/enroll", ready: func(d *desk) (string, url.Values) {
			return "/devices/" + d.headset.ID + "/enroll", url.Values{"confirm": {d.headset.Identification}}
		}},
		{pattern: "/devices/{id}/asks/{request}/confirm", ready: func(d *desk) (string, url.Values) {
			return "/devices/" + d.headset.ID + "/asks/" + d.lostDevice() + "/confirm", url.Values{"confirm": {d.headset.Identification}}
		}},
		{pattern: "/devices/{id}/asks/{request}/decline", ready: func(d *desk) (string, url.Values) {
			return "/devices/" + d.headset.ID + "/asks/" + d.lostDevice() + "/decline", url.Values{}
		}},
		{pattern: "/devices/{id}/merge", ready: func(d *desk) (string, url.Values) {
			kept := asset.Asset{ID: resource.NewID(), CompanyID: d.Company.ID, CompanySlug: "acme",
				Identification: "Kept", CreatedAt: d.Now()}
			d.check(d.Admin().Assets.ImportAssets(d.Context(), []asset.Asset{kept}))
			return "/devices/" + kept.ID + "/merge", url.Values{"other": {d.duplicate.ID}, "confirm": {"Kept"}}
		}},
		{pattern: "/access/controls/stop", ready: at("/access/controls/stop", url.Values{"reason": {"because"}})},
		{pattern: "/access/controls/resume", goesOn: true, ready: at("/access/controls/resume", url.Values{})},
		{pattern: "/account/recovery", own: true, signer: true, ready: at("/account/recovery", url.Values{})},
		{pattern: "/account/passkeys", own: true, signer: true, ready: func(d *desk) (string, url.Values) {
			page, another := d.page(d.signer, "/account/passkeys/new"), servertest.NewAuthenticator(d.T, d.base)
			return "/account/passkeys",
				url.Values{"token": {page.Field(d.T, "token")}, "name": {"Another"}, "answer": {another.Create(page.Options(d.T))}}
		}},
		{pattern: "/account/passkeys/{passkey}/remove", own: true, signer: true, ready: func(d *desk) (string, url.Values) {
			all, err := d.DB().Passkeys(d.Context(), d.signer.User.ID)
			d.check(err)
			return "/account/passkeys/" + all[0].ID + "/remove", url.Values{}
		}},
		{pattern: "/account/mail", own: true, ready: at("/account/mail", url.Values{"event": {"proposal.waiting"}})},
		{pattern: "/account/password", own: true, ready: at("/account/password",
			url.Values{"current": {servertest.Password}, "password": {"another long password"}, "again": {"another long password"}})},
	}
}

// edited makes an edit of a device that can be undone.
func (d *desk) edited(a asset.Asset, ref string) {
	ctx := access.WithActor(d.Context(), access.OperatorActor(""), ref)
	_, err := d.DB().EditAsset(ctx, d.Company.ID, a.ID, asset.Edit{AddTags: []string{resource.NewID()}})
	d.check(err)
}

// spare makes an asset that was never enrolled, and returns its id.
func (d *desk) spare() string {
	name := resource.NewID()
	_, err := d.DB().Import(d.Context(), d.Company.ID, []asset.Line{{Number: 2, Identification: name}}, asset.ImportOptions{})
	d.check(err)
	ids, err := d.DB().AssetIDs(d.Context(), asset.Filter{CompanyID: d.Company.ID, Text: name}, asset.ByIdentification, false)
	d.check(err)
	return ids[0]
}
