package browser_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/servertest"
)

// TestTrail_TimeSlider: the slider goes to where a device was, by keyboard and by
// button, the address shows the same to others, and what comes live does not
// take a person away from where they look.
func TestTrail_TimeSlider(t *testing.T) {
	t.Parallel()
	tenant, replica, tab := enter(t, account.Admin)
	device := tenant.Devices(replica, servertest.FullyManaged(), 1)[0]
	report := func(step int, at time.Time) {
		a, err := tenant.DB().Asset(t.Context(), tenant.Company.ID, device.AssetID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tenant.DB().Observe(t.Context(), enrollment.Observation{CompanyID: a.CompanyID, Device: a.Device.Name,
			Management: a.Device.Management,
			ReportedAt: tenant.Now(), ObservedAt: tenant.Now(), StatusReport: a.Device.StatusReport,
			Location: &asset.Location{Latitude: 52.5 + float64(step)/1000, Longitude: 13.4, AccuracyMeters: 30,
				ReportedAt: at}}); err != nil {
			t.Fatal(err)
		}
	}
	for step := range 5 {
		report(step, tenant.Now().Add(time.Duration(step-6)*time.Minute))
	}
	tab.Go("/devices/" + device.AssetID + "/location")
	says := func(latitude float64) {
		t.Helper()
		tab.Sees("[data-spot-says]", fmt.Sprintf("%.5f, 13.40000", latitude))
		tab.Waits(fmt.Sprintf(`document.querySelector("tr[data-place][aria-current=true]").innerText.includes("%.5f")`, latitude))
	}
	says(52.504)
	if before := tab.Eval(`document.querySelector("[data-here]").getAttribute("cy")`); before != "0.00" {
		t.Errorf("the mark is at %s, not at the last place", before)
	}
	tab.Eval(`(document.querySelector("#trail").focus(), "")`)
	tab.Press(kb.ArrowLeft)
	says(52.503)
	tab.Click("[data-step='-1']")
	says(52.502)
	if moved := tab.Eval(`document.querySelector("[data-here]").getAttribute("cy")`); moved == "0.00" {
		t.Error("the mark did not move")
	}
	report(9, tenant.Now())
	tab.Eval(`(portal.refresh(null), "")`) // as a hint of the service's own does
	tab.Waits(`document.querySelectorAll("tr[data-place]").length === 6`)
	says(52.502)
	path := tab.Path()
	if !strings.Contains(path, "at=") {
		t.Errorf("the address is %s", path)
	}
	tab.Go(path)
	says(52.502)
	if bad := tab.Bad() + tab.Axe(); bad != "" {
		t.Error(bad)
	}
}
