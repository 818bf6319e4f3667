package portal_test

import (
	"crypto/sha256"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/resource"
)

// A device that lost its key is shown at its asset and in a list, to those who may decide.
// While the asset's own device is in touch, a person types the asset's name.
func TestLostDevices_AreShownAndDecided(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin, viewer := o.person(t, account.Admin), o.person(t, account.Viewer)
	p := o.AgentPolicy(o.Company, "Kiosk")
	enroll := func(serial string, lost bool) (agentdevice.Device, error) {
		now, hash := o.Now(), sha256.Sum256([]byte(resource.NewID()))
		if err := o.DB().CreateAgentToken(t.Context(), agentdevice.Token{Hash: hash, CompanyID: o.Company.ID, PolicyID: p.ID,
			ExpiresAt: now.Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		d := agentdevice.Device{ID: resource.NewID(), Role: protocol.Manager, State: agentdevice.Active, EnrolledAt: now, SeenAt: now,
			Key: protocol.PublicKey{Algorithm: protocol.Ed25519, SPKI: resource.NewID()}, CommandAlgorithm: protocol.Ed25519}
		return o.DB().EnrollAgent(t.Context(), agentdevice.Enrollment{Hash: hash, Device: d, Again: now, Lost: lost},
			enrollment.Observation{Device: d.ID, Management: asset.Agent, SerialNumber: serial, Brand: "Acme",
				Model: "<b>Kiosk</b>", Enrolling: true,
				EnrolledAt: now, ReportedAt: now, ObservedAt: now})
	}
	d, err := enroll("SN-77", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := enroll("SN-77", true); !errors.Is(err, agentdevice.ErrWaiting) {
		t.Fatal(err)
	}
	path := "/devices/" + d.AssetID
	if page := o.get(t, admin, path, 200); !strings.Contains(page, path+"/asks") {
		t.Error("the asset does not show that a device asks to be enrolled again")
	}
	if page := o.get(t, admin, "/lost", 200); !strings.Contains(page, "SN-77") || strings.Contains(page, "<b>Kiosk") {
		t.Error("the list does not show the device, or shows its text as markup")
	}
	if page := o.get(t, viewer, path, 200); strings.Contains(page, path+"/asks") {
		t.Error("a person who cannot decide is sent to the decision")
	}
	o.get(t, viewer, path+"/asks", 403)
	a, err := o.DB().Asset(t.Context(), o.Company.ID, d.AssetID)
	if err != nil {
		t.Fatal(err)
	}
	requests, err := o.DB().EnrollmentRequests(t.Context(), o.Company.ID, d.AssetID)
	if err != nil || len(requests) != 1 {
		t.Fatal(requests, err)
	}
	left := func() int {
		all, err := o.DB().EnrollmentRequests(t.Context(), o.Company.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	confirm := path + "/asks/" + requests[0].ID + "/confirm"
	for name, typed := range map[string]url.Values{"without the name": {}, "with another name": {"confirm": {"Kiosk 9"}}} {
		admin.Send(o.base+confirm, typed)
		if left() != 1 {
			t.Fatalf("confirmed %s", name)
		}
	}
	admin.Send(o.base+"/devices/"+a.ID+"/asks/"+resource.NewID()+"/confirm", url.Values{"confirm": {a.Identification}})
	if left() != 1 {
		t.Fatal("another request was confirmed")
	}
	admin.Send(o.base+confirm, url.Values{"confirm": {a.Identification}})
	if left() != 0 {
		t.Error("the request was not confirmed")
	}
}
