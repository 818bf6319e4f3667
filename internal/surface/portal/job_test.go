package portal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/job"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
)

// A job for all that match reaches the devices beyond the page, whose filter is that of the
// list, and has one entry in the log, which unfolds. The same form sent twice is one job.
func TestJob_AllThatMatch(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	devices := o.Devices(o.replica, servertest.FullyManaged(), 3)
	o.device(t, "other", "SN-X", "Phone", o.other)
	admin := o.person(t, account.Admin)
	match := "policy=" + o.Policy.ID
	plan := o.get(t, admin, "/bulk?command=reboot&all=1&match="+url.QueryEscape(match)+"&id="+o.id(devices[0].AssetID), 200)
	if !strings.Contains(plan, "Restart: 3 devices") {
		t.Error("the plan does not name the number of devices")
	}
	form := url.Values{"once": {resource.NewID()}, "command": {"reboot"}, "all": {"1"}, "match": {match}, "rate": {"600"},
		"note-reason": {"Freezes <b>"}}
	to := admin.Send(o.base+"/jobs", form).Want(t, 303).Header.Get("Location")
	if again := admin.Send(o.base+"/jobs", form).Want(t, 303).Header.Get("Location"); again != to {
		t.Errorf("the same form made %s and %s", to, again)
	}
	form["once"], form["total"] = []string{resource.NewID()}, []string{"2"}
	page := string(admin.Send(o.base+"/jobs", form).Want(t, 422).Body)
	if !strings.Contains(page, "3 devices match now, and 2 were shown") || !strings.Contains(page, "Restart: 3 devices") {
		t.Error("more devices than were shown get it, or the new plan is not shown")
	}
	o.says(t, admin, to, "Done")
	for _, d := range devices {
		if n := len(o.Client(o.replica, access.All).History(d.AssetID)); n != 1 {
			t.Errorf("%d commands for %s", n, d.AssetID)
		}
	}
	page = o.get(t, admin, to, 200)
	for _, want := range []string{"3 of 3 have a result", "policy=", "Freezes &lt;b&gt;", admin.User.Name} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of the job does not say %q", want)
		}
	}
	log := o.get(t, admin, "/activity", 200)
	if n := len(regexp.MustCompile(`created the job`).FindAllString(log, -1)); n != 1 || strings.Contains(log, "restarted") {
		t.Errorf("%d entries of the job in the log, or one of each device", n)
	}
	unfolded := o.get(t, admin, to+"?part=results", 200)
	if n := strings.Count(unfolded, "<tr>"); n != 4 {
		t.Errorf("%d rows unfold, want a head and 3 devices", n)
	}
	if own := o.get(t, admin, "/devices/"+o.id(devices[0].AssetID)+"/activity", 200); !strings.Contains(own, "estart") {
		t.Error("the device's own log leaves the job's command out")
	}
	failed := admin.Send(o.base+"/jobs", url.Values{"once": {resource.NewID()}, "command": {"message"}, "title": {"T"}, "body": {"B"},
		"id": {o.id(devices[0].AssetID)}, "rate": {"600"}}).Want(t, 303).Header.Get("Location")
	o.says(t, admin, failed, "Done")
	if done := o.get(t, admin, failed, 200); !strings.Contains(page, `data-tone="ok">Done`) ||
		!strings.Contains(done, `data-tone="warn">Done, 1 without success`) {
		t.Error("a job whose device has an error looks like one that succeeded")
	}
	list := o.get(t, admin, "/jobs", 200)
	if !strings.Contains(list, `data-tone="warn">Done, 1 without success`) || strings.Count(list, `data-tone="ok">Done<`) != 1 {
		t.Errorf("the list does not tell the job whose device has an error from the one that succeeded: %s", list)
	}
}

// A person who was limited to a policy since sees of their own job only what they may see.
func TestJob_OfAPersonWhoWasLimited(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	seen, hidden := o.device(t, "d1", "S1", "Phone", o.Policy), o.device(t, "d2", "S2", "Secret", o.other)
	admin := o.person(t, account.Admin)
	to := admin.Send(o.base+"/jobs", url.Values{"once": {resource.NewID()}, "command": {"reboot"}, "id": {seen.ID, hidden.ID},
		"rate": {"600"}}).Want(t, 303).Header.Get("Location")
	for _, want := range []string{"Phone", "Secret"} {
		if !strings.Contains(o.get(t, admin, to, 200), want) {
			t.Errorf("the page does not name %s", want)
		}
	}
	if _, err := o.DB().UpdateUser(t.Context(), o.Company.ID, admin.User.ID, func(u *account.User) error {
		u.Role, u.Rights, u.Policies = account.Viewer, account.ViewDevices|account.ViewPolicies, []string{o.Policy.ID}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	page := o.get(t, admin, to, 200)
	if !strings.Contains(page, "Phone") || strings.Contains(page, "Secret") || strings.Contains(page, hidden.ID) ||
		!strings.Contains(page, "A device that you may not see") {
		t.Errorf("the page names what the person may not see, or leaves out what they may: %s", page)
	}
}

// A job whose maker lost the right says who, and is not offered to be resumed.
func TestJob_WhoseMakerLostTheRight(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a, admin, maker := o.device(t, "d1", "S1", "Phone", o.Policy), o.person(t, account.Admin), o.person(t, account.Manager)
	maker.Change(func(u *account.User) { u.Role, u.Rights = account.Viewer, account.ViewDevices|account.ViewPolicies })
	j := job.Job{ID: resource.NewID(), CompanyID: o.Company.ID, Command: "reboot", Status: job.Running, Rate: 1,
		Total: 1, CreatedAt: o.Now(),
		Maker: access.Actor{Kind: access.User, ID: maker.User.ID, Name: maker.User.Name}, StartsAt: o.Now(), NextAt: o.Now()}
	if _, err := o.DB().CreateJob(t.Context(), j, []string{a.ID}); err != nil {
		t.Fatal(err)
	}
	path := "/jobs/" + j.ID
	o.says(t, admin, path, "Paused: its maker, "+maker.User.Name+", may not send commands any more.")
	const says = " is paused: its maker, "
	if page := o.get(t, admin, "/needs-you", 200); count(page) != "1" || !strings.Contains(plain(page), says) ||
		!strings.Contains(page, `href="`+path+`"`) {
		t.Errorf("the list of what needs people counts %q, and leaves the job out: %.900s", count(page), plain(page))
	}
	if page := o.get(t, admin, path, 200); strings.Contains(page, path+"/resume") || !strings.Contains(page, path+"/cancel") {
		t.Error("the job is offered to be resumed, or not to be canceled")
	}
	admin.Send(o.base+path+"/resume", url.Values{"once": {resource.NewID()}}).Want(t, 303)
	if page := o.get(t, admin, path, 200); !strings.Contains(page, "Paused: ") {
		t.Error("the job was resumed")
	}
	maker.Change(func(u *account.User) { u.Rights |= account.CommandDevices })
	if page := o.get(t, admin, path, 200); !strings.Contains(page, path+"/resume") {
		t.Error("with the right again, the job is not offered to be resumed")
	}
}

// The plan for all that match says how many devices it has looked at, and that the job has all of them.
// A job for selected devices leaves out those that cannot get it.
func TestJob_PlanSaysWhatItChecked(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin, spare := o.person(t, account.Admin), make([]asset.Asset, 101)
	for i := range spare {
		spare[i] = asset.Asset{ID: resource.NewID(), CompanyID: o.Company.ID, Identification: fmt.Sprintf("Spare %03d", i)}
	}
	if err := o.Admin().Assets.ImportAssets(t.Context(), spare); err != nil {
		t.Fatal(err)
	}
	a := o.device(t, "d1", "S1", "Phone", o.Policy)
	for path, says := range map[string]string{
		"all=1": "The job has all 102. 99 of the first 100 cannot get it, for the reason in the list; the others are checked when " +
			"it is their turn.",
		"id=" + a.ID + "&id=" + spare[0].ID: "1 of 2 devices cannot get it, for the reason in the list, and is left out.",
	} {
		if page := plain(o.get(t, admin, "/bulk?command=reboot&"+path, 200)); !strings.Contains(page, says) {
			t.Errorf("%s: the plan does not say %q: %.3000s", path, says, page)
		}
	}
	if page := o.get(t, admin, "/bulk?command=tags&all=1", 200); strings.Contains(page, "cannot get it") {
		t.Error("tags are said not to be possible")
	}
}

// The page of a job that was canceled offers the devices that it did not reach for another job, and
// that one has these alone.
func TestJob_AgainForTheRest(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a, b, admin := o.device(t, "d1", "S1", "Phone", o.Policy), o.device(t, "d2", "S2", "Tablet", o.other), o.person(t, account.Admin)
	o.device(t, "d3", "S3", "Other", o.Policy)
	to := admin.Send(o.base+"/jobs", url.Values{"once": {resource.NewID()}, "command": {"reboot"}, "id": {a.ID, b.ID},
		"at-utc": {o.Now().Add(time.Hour).Format(time.RFC3339)}}).Want(t, 303).Header.Get("Location")
	if page := o.get(t, admin, to+"?result=WAITING", 200); strings.Contains(page, "A new job for") {
		t.Error("devices that still get the command are offered for another job")
	}
	if page := o.get(t, admin, to+"?result=CANCELED", 200); strings.Contains(page, "Phone") {
		t.Error("devices that wait are listed as canceled")
	}
	admin.Send(o.base+to+"/cancel", url.Values{"once": {resource.NewID()}}).Want(t, 303)
	if page := o.get(t, admin, to, 200); !strings.Contains(page, "0 of 2 have a result") {
		t.Error("devices that were not reached count as having a result")
	}
	match := "job=" + o.id(to) + "&result=CANCELED"
	if page := o.get(t, admin, to+"?result=CANCELED", 200); !strings.Contains(page, "A new job for 2 devices") ||
		!strings.Contains(page, strings.ReplaceAll(match, "&", "&amp;")) {
		t.Errorf("the rest is not offered for another job: %.2000s", plain(page))
	}
	path := "/bulk?command=reboot&all=1&match=" + url.QueryEscape(match)
	if plan := o.get(t, admin, path, 200); !strings.Contains(plan, "Restart: 2 devices") || strings.Contains(plan, "Other") {
		t.Errorf("the plan is not of the rest: %.2000s", plain(plan))
	}
	limited := o.person(t, account.Manager, o.Policy.ID)
	o.get(t, limited, path, 404)
	o.get(t, admin, strings.Replace(path, "CANCELED", "NOPE", 1), 400)
	again := admin.Send(o.base+"/jobs", url.Values{"once": {resource.NewID()}, "command": {"reboot"}, "all": {"1"}, "match": {match},
		"total": {"2"}}).Want(t, 303).Header.Get("Location")
	if page := o.get(t, admin, again, 200); !strings.Contains(page, "Restart: 2 devices") {
		t.Error("the new job is not for the rest")
	}
}

// id is the short id of an asset's path name.
func (o *office) id(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// says waits until a page says something.
func (o *office) says(t *testing.T, who *servertest.Browser, path, want string) {
	t.Helper()
	o.Eventually(path+" says "+want, func() error {
		if !strings.Contains(o.get(t, who, path, 200), want) {
			return errors.New("not yet")
		}
		return nil
	})
}

func TestJob_RefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a := o.device(t, "d1", "S1", "Phone", o.Policy)
	admin := o.person(t, account.Admin)
	for name, c := range map[string]struct {
		form url.Values
		says string
	}{
		"no device":    {url.Values{"command": {"lock"}, "id": {resource.NewID()}}, "o device matches"},
		"too fast":     {url.Values{"command": {"lock"}, "id": {a.ID}, "rate": {"1000"}}, "from 1 to 600"},
		"no time":      {url.Values{"command": {"lock"}, "id": {a.ID}, "at-utc": {"tomorrow"}}, "a day and a time"},
		"no tags":      {url.Values{"command": {"tags"}, "id": {a.ID}}, "Must be given"},
		"a long tag":   {url.Values{"command": {"tags"}, "id": {a.ID}, "add": {strings.Repeat("x", 65)}}, "64"},
		"a bad filter": {url.Values{"command": {"lock"}, "all": {"1"}, "match": {"batteryBelow=many"}}, "batteryBelow"},
	} {
		page := string(admin.Send(o.base+"/jobs", c.form).Body)
		if page == "" { // there is no plan to show
			page = o.get(t, admin, "/devices", 200)
		}
		if !strings.Contains(page, c.says) {
			t.Errorf("%s: the page does not say %q", name, c.says)
		}
	}
	if page := o.get(t, admin, "/jobs", 200); !strings.Contains(page, "no job yet") {
		t.Error("a job was made")
	}
	viewer := o.person(t, account.Viewer)
	viewer.Send(o.base+"/jobs", url.Values{"command": {"lock"}, "id": {a.ID}}).Want(t, 403)
	made := admin.Send(o.base+"/jobs", url.Values{"command": {"lock"}, "id": {a.ID}, "at": {"2099-01-01T00:00"}})
	if made.Status != 400 {
		t.Errorf("a start in many years: %d", made.Status)
	}
}

// A plan that is refused is shown again with what was typed, and the reason at the field.
func TestJob_ARefusedPlanKeepsWhatWasTyped(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a := o.device(t, "d1", "S1", "Phone", o.Policy)
	admin := o.person(t, account.Admin)
	once := resource.NewID()
	form := url.Values{"once": {once}, "command": {"tags"}, "id": {a.ID}, "add": {strings.Repeat("x", 65)}, "remove": {"Hello <b>"},
		"rate": {"17"}, "at": {"2027-03-04T05:06"}, "at-utc": {"2027-03-04T05:06:00Z"}, "note-reason": {"Because <b>"}}
	page := string(admin.Send(o.base+"/jobs", form).Want(t, 400).Body)
	for _, want := range []string{`value="` + once + `"`, `name="id" value="` + a.ID + `"`, strings.Repeat("x", 65), "Hello &lt;b&gt;",
		`value="17"`, `value="2027-03-04T05:06"`, `value="2027-03-04T05:06:00Z"`, `value="Because &lt;b&gt;"`, `id="bulk-add-wrong"`,
		"In the time of this computer; without JavaScript, in UTC."} {
		if !strings.Contains(page, want) {
			t.Errorf("the plan does not have %s", want)
		}
	}
	form.Set("add", "Shift")
	admin.Send(o.base+"/jobs", form).Want(t, 303)
}

// A job whose start is past is refused at the field; the minute that it is counts as now.
func TestJob_StartsNotInThePast(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a := o.device(t, "d1", "S1", "Phone", o.Policy)
	admin := o.person(t, account.Admin)
	for ago, status := range map[time.Duration]int{time.Hour: 400, job.MaxBehind + time.Second: 400, time.Minute: 303, 0: 303,
		-time.Hour: 303} {
		at := o.Now().Add(-ago).Format(time.RFC3339Nano)
		answer := admin.Send(o.base+"/jobs", url.Values{"once": {resource.NewID()}, "command": {"reboot"}, "id": {a.ID}, "at-utc": {at}})
		if answer.Status != status || strings.Contains(string(answer.Body), `id="bulk-at-wrong"`) != (status == 400) {
			t.Errorf("%s ago: got %d, want %d", ago, answer.Status, status)
		}
	}
}

// A person who is limited to policies finds their own job below newer ones of others.
func TestJobs_OwnOnesBelowOthers(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a := o.device(t, "d1", "S1", "Phone", o.Policy)
	limited := o.person(t, account.Manager, o.Policy.ID)
	for i := range 202 {
		maker := access.Actor{Kind: access.User, ID: "another", Name: "Another"}
		if i == 0 {
			maker = access.Actor{Kind: access.User, ID: limited.User.ID, Name: limited.User.Name}
		}
		at := o.Now().Add(time.Duration(i) * time.Second)
		j := job.Job{ID: resource.NewID(), CompanyID: o.Company.ID, Command: "reboot", Maker: maker, Status: job.Running, Rate: 1, Total: 1,
			Filter: fmt.Sprint("filter ", i), CreatedAt: at, StartsAt: at.Add(time.Hour), NextAt: at.Add(time.Hour)}
		if _, err := o.DB().CreateJob(t.Context(), j, []string{a.ID}); err != nil {
			t.Fatal(err)
		}
		if _, err := o.DB().MoveJob(t.Context(), o.Company.ID, j.ID, job.Canceled, ""); err != nil {
			t.Fatal(err)
		}
	}
	if page := o.get(t, limited, "/jobs", 200); !strings.Contains(page, "filter 0") || strings.Contains(page, "Another") {
		t.Error("the own job is not listed, or one of another is")
	}
}

// A plan to move devices knows the policy that is chosen: those of the other management, and
// those that use it already, are not part of it.
func TestJob_PlanOfAMoveKnowsThePolicy(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a, b := o.device(t, "d1", "S1", "Phone", o.Policy), o.device(t, "d2", "S2", "Tablet", o.other)
	agents := o.Env.Policy(o.Company, "For agents", policy.Agent)
	admin := o.person(t, account.Admin)
	path := "/bulk?command=change-policy&id=" + a.ID + "&id=" + b.ID + "&policyId="
	for to, want := range map[string]struct {
		label, says string
		barred      int
		ids         []string
	}{
		o.other.ID: {"1 device", "The device already uses this policy.", 1, []string{a.ID}},
		agents.ID:  {"0 devices", "The policy is for", 2, nil},
		"":         {"2 devices", "", 0, []string{a.ID, b.ID}},
	} {
		part := string(admin.Send(o.base+path+to, nil, "HX-Request", "true", "HX-Request-Type", "partial").Want(t, 200).Body)
		if !strings.Contains(part, "Change policy: "+want.label) || !strings.Contains(part, want.says) {
			t.Errorf("%q: the plan does not say %q, %q: %s", to, want.label, want.says, part)
		}
		if n := strings.Count(part, "Not possible"); n != want.barred {
			t.Errorf("%q: %d devices are not possible, want %d", to, n, want.barred)
		}
		if says := strings.Contains(part, fmt.Sprint(want.barred, " of 2 devices cannot get it")); says != (want.barred > 0) {
			t.Errorf("%q: how many of the devices are left out is said: %v", to, says)
		}
		for _, id := range []string{a.ID, b.ID} {
			if has := strings.Contains(part, `name="id" value="`+id+`"`); has != slices.Contains(want.ids, id) {
				t.Errorf("%q: %s is sent: %v", to, id, has)
			}
		}
	}
}

// However many policies of one type there are, a device can be moved to each of the other type; where a form does not offer all,
// it says so.
func TestPolicies_ManyOfATypeLeaveRoomForTheOther(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a, admin := o.device(t, "d1", "S1", "Phone", o.Policy), o.person(t, account.Admin)
	for n := range 1001 {
		p := policy.Policy{ID: resource.NewID(), CompanyID: o.Company.ID, Name: fmt.Sprintf("A %04d", n), Type: policy.Agent,
			Document: json.RawMessage(`{}`)}
		if err := o.DB().CreatePolicy(t.Context(), p, policy.Author{}, ""); err != nil {
			t.Fatal(err)
		}
	}
	const more = "There are more policies"
	for path, want := range map[string]struct{ other, agents, more bool }{
		"/devices/" + a.ID: {other: true}, "/bulk?command=change-policy&id=" + a.ID: {true, true, true},
		"/devices": {agents: true, more: true},
	} {
		page := o.get(t, admin, path, 200)
		if got := strings.Contains(page, `<option value="`+o.other.ID+`"`); got != want.other {
			t.Errorf("%s offers the other policy of the platform: %t, want %t", path, got, want.other)
		}
		if got := strings.Contains(page, ">A 0999</option>"); got != want.agents || strings.Contains(page, ">A 1000</option>") {
			t.Errorf("%s offers a thousand policies of agents: %t, want %t", path, got, want.agents)
		}
		if got := strings.Contains(page, more); got != want.more {
			t.Errorf("%s says %q: %t, want %t", path, more, got, want.more)
		}
	}
}
