package portal_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/enrollment"
)

// A device's page says in the catalog's words which settings it does not follow, why, and
// what follows, for both kinds of device. Words of the device are not among the reasons.
func TestDevice_ComplianceInTheCatalogsWords(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	admin := o.person(t, account.Admin)
	agents := o.AgentPolicy(o.Company, "Agents")
	report := func(m asset.Management, policyID, device, details string) string {
		t.Helper()
		now := o.Now()
		report := json.RawMessage(`{"reportedAt":"` + now.Format("2006-01-02T15:04:05Z") +
			`","policyCompliant":false,"nonComplianceDetails":` + details + `}`)
		change, err := o.DB().Observe(t.Context(), enrollment.Observation{CompanyID: o.Company.ID, Device: device,
			Management: m, Enrolling: true,
			EnrolledAt: now, ReportedAt: now, ObservedAt: now, PolicyID: policyID, AppliedPolicy: policyID, AppliedVersion: 1,
			StatusReport: report})
		if err != nil {
			t.Fatal(err)
		}
		return change.AssetID
	}
	for _, c := range []struct {
		name, id   string
		says, none []string
	}{
		{"platform", report(asset.Platform, o.Policy.ID, "enterprises/LC/devices/c1",
			`[{"settingName":"deviceConnectivityManagement","fieldPath":"deviceConnectivityManagement.usbDataAccess","nonComplianceReason":"API_LEVEL"},
			{"settingName":"passwordRequirements","nonComplianceReason":"USER_ACTION"},{"settingName":"kioskCustomization","nonComplianceReason":"<b>odd</b>"}]`),
			[]string{"Does not follow its policy", "USB data transfer", "version of Android does not have this setting",
				"until Android is updated", "First reported",
				"Screen lock", "A setting that is not in the catalog", "kioskCustomization", "a reason that Muster does not know",
				"neither blocks nor erases it"},
			[]string{"odd</span>", "api level"}},
		{"agent", report(asset.Agent, agents.ID, "c2",
			`[{"settingName":"CAMERA","nonComplianceReason":"failed","specificNonComplianceReason":"call this number"},
			{"settingName":"SMS","nonComplianceReason":"rolled_back"},{"settingName":"BLUETOOTH","nonComplianceReason":"unsupported"}]`),
			[]string{"Camera", "could not set it", "SMS", "cut the device off from the network", "Bluetooth",
				"does not make the device non-compliant"}, nil},
		{"silent about settings", report(asset.Platform, o.Policy.ID, "enterprises/LC/devices/c3", `[]`),
			[]string{"did not report which settings"}, nil},
	} {
		for _, tab := range []string{"", "/policy"} {
			page := o.get(t, admin, "/devices/"+c.id+tab, 200)
			_, panel, _ := strings.Cut(page, `aria-label="Compliance"`)
			panel, _, _ = strings.Cut(panel, "</section>")
			for _, want := range c.says {
				if !strings.Contains(panel, want) {
					t.Errorf("%s%s: no %q in %s", c.name, tab, want, panel)
				}
			}
			for _, wrong := range append(c.none, "call this number", "<b>odd") {
				if strings.Contains(panel, wrong) {
					t.Errorf("%s%s: %q is shown", c.name, tab, wrong)
				}
			}
		}
	}
}
