package portal_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// The form of a device writes what the person changed in it, and not over what another
// person changed since it was shown.
func TestDevice_EditWritesWhatWasChanged(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	a := o.device(t, "edited", "SN-E", "phone", o.Policy)
	shown := url.Values{"was-identification": {a.Identification}, "identification": {a.Identification}, "was-tags": {""}, "tags": {""}}
	_, err := o.DB().EditAsset(t.Context(), a.CompanyID, a.ID, asset.Edit{Identification: new("Reception"), Tags: []string{"by another"}})
	if err != nil {
		t.Fatal(err)
	}
	send := func(change url.Values, status int) string {
		form := url.Values{}
		for _, values := range []url.Values{shown, change} {
			for name := range values {
				form[name] = values[name]
			}
		}
		admin.Send(o.base+"/devices/"+a.ID+"/edit", form).Want(t, status)
		now, err := o.DB().Asset(t.Context(), a.CompanyID, a.ID)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(now.Identification, now.Tags, now.CustomData)
	}
	for _, step := range []struct {
		change url.Values
		status int
		want   string
	}{
		{nil, 303, "Reception[by another] map[]"},
		{url.Values{"user": {" Ada Lovelace "}}, 303, "Reception[by another] map[user:Ada Lovelace]"},
		{url.Values{"was-user": {"Ada Lovelace"}, "user": {""}, "tags": {"a, b ,,a"}}, 303, "Reception[by another a b] map[]"},
		{url.Values{"identification": {" "}}, 400, "Reception[by another a b] map[]"},
	} {
		if got := send(step.change, step.status); got != step.want {
			t.Errorf("%v: %s, want %s", step.change, got, step.want)
		}
	}
}

// Two people who change the tags of a device at the same time keep what the other added and removed.
func TestDevice_EditsOfTagsByTwoPeople(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a := o.device(t, "edited", "SN-E", "phone", o.Policy)
	_, err := o.DB().EditAsset(t.Context(), a.CompanyID, a.ID, asset.Edit{Tags: []string{"x", "y"}})
	if err != nil {
		t.Fatal(err)
	}
	path := frame.DevicePath(a.ID)
	ada, bob := o.person(t, account.Admin), o.person(t, account.Operator)
	for _, p := range []*servertest.Browser{ada, bob} {
		if page := o.get(t, p, path, 200); !strings.Contains(page, `name="was-tags" value="x, y"`) {
			t.Error("the form does not say which tags it was shown with")
		}
	}
	for _, change := range []struct {
		by   *servertest.Browser
		tags string
		want string
	}{{ada, "y, aisle 3", "[y aisle 3]"}, {bob, "x, y, lost", "[y aisle 3 lost]"}, {bob, "y, x", "[y aisle 3 lost]"}} {
		change.by.Send(o.base+path+"/edit", url.Values{"tags": {change.tags}, "was-tags": {"x, y"}}).Want(t, 303)
		now, err := o.DB().Asset(t.Context(), a.CompanyID, a.ID)
		if err != nil || fmt.Sprint(now.Tags) != change.want {
			t.Errorf("%s: the tags are %v, want %s, %v", change.tags, now.Tags, change.want, err)
		}
	}
}

// An edit is undone for ten minutes, unless the device was changed since; of a job for all
// of its devices.
func TestDevice_UndoesAnEdit(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a := o.device(t, "edited", "SN-E", "phone", o.Policy)
	admin := o.person(t, account.Admin)
	page := frame.DevicePath(a.ID)
	ref := regexp.MustCompile(`name="ref" value="([^"]+)"`)
	edit := func(form url.Values) string {
		admin.Send(o.base+page+"/edit", form).Want(t, 303)
		if found := ref.FindStringSubmatch(o.get(t, admin, page, 200)); found != nil {
			return found[1]
		}
		t.Fatal("the page offers no undo")
		return ""
	}
	now := func() asset.Asset {
		got, err := o.DB().Asset(t.Context(), o.Company.ID, a.ID)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	made := edit(url.Values{"identification": {"Reception"}, "was-identification": {a.Identification}, "tags": {"x, y"},
		"other": {"room=1"}})
	if got := now(); got.Identification != "Reception" || len(got.Tags) != 2 || got.CustomData["room"] != "1" {
		t.Errorf("edited: %+v", got.Public())
	}
	admin.Send(o.base+page+"/undo", url.Values{"ref": {made}}).Want(t, 303)
	if got := now(); got.Identification != a.Identification || len(got.Tags) != 0 || len(got.CustomData) != 0 {
		t.Errorf("undone: %+v", got.Public())
	}
	if strings.Contains(o.get(t, admin, page, 200), `/undo"`) {
		t.Error("an undo can be undone")
	}
	made = edit(url.Values{"tags": {"x"}})
	edit(url.Values{"tags": {"x, z"}, "was-tags": {"x"}})
	admin.Send(o.base+page+"/undo", url.Values{"ref": {made}}).Want(t, 303)
	if len(now().Tags) != 2 {
		t.Error("an older edit was undone")
	}
	o.Advance(asset.UndoFor + time.Second)
	if strings.Contains(o.get(t, admin, page, 200), `/undo"`) {
		t.Error("an edit can be undone after ten minutes")
	}

	to := admin.Send(o.base+"/jobs", url.Values{"command": {"tags"}, "id": {a.ID}, "add": {"new\nz"}, "rate": {"600"}}).Want(t, 303).
		Header.Get("Location")
	o.says(t, admin, to, "Done")
	if len(now().Tags) != 3 {
		t.Errorf("tags of the job: %v", now().Tags)
	}
	undo := admin.Send(o.base+to+"/undo", url.Values{}).Want(t, 303).Header.Get("Location")
	o.says(t, admin, undo, "Done")
	if len(now().Tags) != 2 {
		t.Errorf("tags after the undo of the job: %v", now().Tags)
	}
}

// An asset that is not managed is archived on its page and restored there; one that is
// managed is not, and a person without the right does neither.
func TestDevice_Archives(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin, viewer := o.person(t, account.Admin), o.person(t, account.Viewer)
	managed := o.device(t, "managed", "SN-M", "phone", o.Policy)
	if _, err := o.DB().Import(t.Context(), o.Company.ID, []asset.Line{{Number: 2, Identification: "Spare phone"}},
		asset.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	ids, err := o.DB().AssetIDs(t.Context(), asset.Filter{CompanyID: o.Company.ID, Text: "Spare"}, asset.ByIdentification, false)
	if err != nil || len(ids) != 1 {
		t.Fatal(ids, err)
	}
	page := frame.DevicePath(ids[0])
	if !strings.Contains(o.get(t, admin, page, 200), page+"/archive") ||
		strings.Contains(o.get(t, admin, frame.DevicePath(managed.ID), 200), "/archive\"") {
		t.Error("archiving is not on offer where it is possible, or is where it is not")
	}
	viewer.Send(o.base+page+"/archive", url.Values{}).Want(t, 403)
	admin.Send(o.base+page+"/archive", url.Values{}).Want(t, 303)
	if strings.Contains(o.get(t, admin, "/devices", 200), "Spare phone") ||
		!strings.Contains(o.get(t, admin, "/devices?archived=true", 200), "Spare phone") {
		t.Error("the list has the archived asset, or the list of archived assets does not")
	}
	if !strings.Contains(o.get(t, admin, page, 200), page+"/restore") {
		t.Error("the page offers no way to restore it")
	}
	admin.Send(o.base+page+"/restore", url.Values{}).Want(t, 303)
	admin.Send(o.base+frame.DevicePath(managed.ID)+"/archive", url.Values{}).Want(t, 303)
	if list := o.get(t, admin, "/devices", 200); !strings.Contains(list, "Spare phone") || !strings.Contains(list, managed.Identification) {
		t.Error("the restored asset, or the managed one, is not in the list")
	}
}

// historyCode downloads the history of an archived asset, and returns the code of the file's name.
func (o *office) historyCode(t *testing.T, p *servertest.Browser, id string) string {
	t.Helper()
	answer := p.Send(o.base+frame.DevicePath(id)+"/history", nil).Want(t, 200)
	sum := sha256.Sum256(answer.Body)
	code := hex.EncodeToString(sum[:4])
	if name := answer.Header.Get("Content-Disposition"); name != `attachment; filename="asset-`+id+"-"+code+`.ndjson"` {
		t.Errorf("the file is called %s, its code is %s", name, code)
	}
	return code
}

// An archived asset is deleted by an administrator who has its history as it is now, and
// types its name; nothing else deletes it.
func TestDevice_Deletes(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin, viewer := o.person(t, account.Admin), o.person(t, account.Operator)
	if _, err := o.DB().Import(t.Context(), o.Company.ID, []asset.Line{{Number: 2, Identification: "Spare <b>phone"}},
		asset.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	ids, err := o.DB().AssetIDs(t.Context(), asset.Filter{CompanyID: o.Company.ID, Text: "Spare"}, asset.ByIdentification, false)
	if err != nil || len(ids) != 1 {
		t.Fatal(ids, err)
	}
	page := frame.DevicePath(ids[0])
	send := func(code, name string) string {
		t.Helper()
		return admin.Send(o.base+page+"/delete", url.Values{"code": {code}, "confirm": {name}}).Want(t, 303).Header.Get("Location")
	}
	o.says(t, admin, admin.Send(o.base+page+"/history", nil).Want(t, 303).Header.Get("Location"), "is not archived")
	o.says(t, admin, send("00000000", "Spare <b>phone"), "is not archived")

	admin.Send(o.base+page+"/archive", url.Values{}).Want(t, 303)
	for _, path := range []string{"/delete", "/history"} {
		o.get(t, viewer, page+path, 403)
	}
	viewer.Send(o.base+page+"/delete", url.Values{}).Want(t, 403)
	if !strings.Contains(o.get(t, admin, page, 200), page+"/delete") || strings.Contains(o.get(t, viewer, page, 200), page+"/delete") {
		t.Error("deleting is not on offer for an administrator, or is for another person")
	}
	code := o.historyCode(t, admin, ids[0])
	o.says(t, admin, send("", "Spare <b>phone"), "Nothing was deleted")
	o.says(t, admin, send(code, "Other phone"), "Nothing was deleted")
	o.says(t, admin, send("00000000", "Spare <b>phone"), "the code is not that")
	admin.Send(o.base+page+"/restore", url.Values{}).Want(t, 303)
	admin.Send(o.base+page+"/edit", url.Values{"identification": {"Spare tablet"}}).Want(t, 303)
	admin.Send(o.base+page+"/archive", url.Values{}).Want(t, 303)
	o.says(t, admin, send(code, "Spare tablet"), "the code is not that")

	code = o.historyCode(t, admin, ids[0])
	o.says(t, admin, send(" "+strings.ToUpper(code), "spare tablet"), "Deleted Spare tablet")
	o.get(t, admin, page, 404)
	o.get(t, admin, page+"/history", 404)
	if strings.Contains(o.get(t, admin, "/devices?archived=true", 200), page) {
		t.Error("the list has the deleted asset")
	}
}

// A form of a device that is refused is shown again with what was typed, and the reason at the field.
func TestDevice_ARefusedEditKeepsWhatWasTyped(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a := o.device(t, "edited", "SN-E", "phone", o.Policy)
	admin := o.person(t, account.Admin)
	path := frame.DevicePath(a.ID) + "/edit"
	form := url.Values{"identification": {"Reception <b>"}, "was-identification": {a.Identification}, "user": {"Ada"}, "was-user": {""},
		"tags": {strings.Repeat("x", 65)}, "was-tags": {""}, "other": {"room=1"}, "was-other": {""}}
	page := string(admin.Send(o.base+path, form).Want(t, 400).Body)
	for _, want := range []string{`value="Reception &lt;b&gt;"`, `name="was-identification" value="` + a.Identification + `"`,
		`value="Ada"`, `value="` + strings.Repeat("x", 65) + `"`, ">room=1</textarea>", `id="edit-tags-wrong"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the form does not have %s", want)
		}
	}
	form.Set("tags", "x")
	admin.Send(o.base+path, form).Want(t, 303)
	if now, err := o.DB().Asset(t.Context(), a.CompanyID, a.ID); err != nil || now.Identification != "Reception <b>" ||
		now.CustomData["room"] != "1" {
		t.Errorf("got %+v, %v", now, err)
	}
}

// The field of the other data takes what it can keep, and refuses the rest with the reason.
func TestDevice_OtherDataIsKeptOrRefused(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a := o.device(t, "edited", "SN-E", "phone", o.Policy)
	admin := o.person(t, account.Admin)
	data := func() map[string]string {
		now, err := o.DB().Asset(t.Context(), a.CompanyID, a.ID)
		if err != nil {
			t.Fatal(err)
		}
		return now.CustomData
	}
	path := frame.DevicePath(a.ID)
	edit := func(was, now string, status int) string {
		form := url.Values{"other": {now}, "was-other": {was}}
		return string(admin.Send(o.base+path+"/edit", form).Want(t, status).Body)
	}
	for _, wrong := range []string{"room", "room=1\r\nroom=2"} {
		page := edit("", "floor=3\r\n"+wrong, 400)
		for _, want := range []string{">floor=3\r\n" + wrong + "</textarea>", `id="edit-other-wrong"`,
			"KEY=VALUE, each key once: look at “room"} {
			if !strings.Contains(page, want) {
				t.Errorf("%q: the form does not have %q", wrong, want)
			}
		}
	}
	if got := data(); len(got) != 0 {
		t.Errorf("a form that was refused made %v", got)
	}
	edit("", "empty=\r\nroom=1", 303)
	edit("empty=\nroom=1", "empty=\r\nroom=2", 303)
	if got := data(); fmt.Sprint(got) != "map[empty: room:2]" {
		t.Errorf("the data is %v", got)
	}
	if _, err := o.DB().EditAsset(t.Context(), a.CompanyID, a.ID, asset.Edit{CustomData: map[string]*string{"a=b": new("c")}}); err != nil {
		t.Fatal(err)
	}
	if page := o.get(t, admin, path, 200); strings.Contains(page, `name="other"`) || !strings.Contains(page, "The other data has") {
		t.Error("the form does not say why it has no field of the other data")
	}
	if page := edit("", "room", 400); !strings.Contains(page, `id="edit-other-wrong"`) {
		t.Error("a refused form lost the field")
	}
}
