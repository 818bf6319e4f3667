package portal_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/servertest"
)

// commands is how many commands of the device reached dispatch.
func (o *office) commands(t *testing.T, a asset.Asset) int {
	t.Helper()
	_, total, err := o.DB().History(t.Context(), o.Company.ID, a.ID, operation.PageRequest{Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	return int(total)
}

// wipe sends the form of the wipe dialog.
func (o *office) wipe(p *servertest.Browser, a asset.Asset) servertest.Answer {
	return p.Send(o.base+"/devices/"+a.ID+"/commands/wipe_device", url.Values{"confirm": {a.Identification}, "once": {resource.NewID()}})
}

// A wipe takes a fresh proof of identity: a session that was left open is not enough.
func TestWipe_AsksForProof(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	a, admin := o.device(t, "d1", "S1", "Phone", o.Policy), o.person(t, account.Admin)
	sessions, err := o.DB().Sessions(t.Context(), admin.User.ID)
	if err != nil || len(sessions) != 1 {
		t.Fatal(sessions, err)
	}
	if err := o.DB().ProveSession(t.Context(), sessions[0].ID, o.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	answer := o.wipe(admin, a)
	if answer.Want(t, 303); !strings.HasPrefix(answer.Header.Get("Location"), "/account/prove") || o.commands(t, a) != 0 {
		t.Errorf("sent to %q, with %d commands", answer.Header.Get("Location"), o.commands(t, a))
	}
	if err := o.DB().ProveSession(t.Context(), sessions[0].ID, o.Now()); err != nil {
		t.Fatal(err)
	}
	if o.wipe(admin, a).Want(t, 303); o.commands(t, a) != 1 {
		t.Error("after the proof the wipe was not sent")
	}
}

// People share the company's limit with keys; a passkey gives them five more.
func TestWipe_LimitAndReserve(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.CLI(new(any), "company", "set", "--company", "acme", "--destructive-limit", "1/60m")
	admin := o.person(t, account.Admin)
	var devices []asset.Asset
	for _, key := range strings.Split("abcdefgh", "") {
		devices = append(devices, o.device(t, key, "S"+key, "Phone "+key, o.Policy))
	}
	sent := func() (n int) {
		for _, a := range devices {
			n += o.commands(t, a)
		}
		return n
	}
	o.wipe(admin, devices[0]).Want(t, 303)
	page := string(o.wipe(admin, devices[1]).Want(t, 422).Body)
	if sent() != 1 {
		t.Fatalf("%d wipes with a limit of one device", sent())
	}
	if !strings.Contains(page, "limit of destructive commands is reached") {
		t.Error("the page does not say why nothing was sent")
	}
	err := o.DB().AddPasskey(t.Context(), account.Passkey{ID: resource.NewID(), UserID: admin.User.ID, Name: "Key",
		Credential: json.RawMessage(`{}`), CreatedAt: o.Now().Add(-25 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range devices[1:] {
		o.wipe(admin, a)
	}
	if sent() != 6 {
		t.Errorf("%d wipes with a limit of one device and five more", sent())
	}
}
