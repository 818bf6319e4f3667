package agentserver

import (
	"encoding/json"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/operation"
)

// notApplied is a setting of the policy that the device does not have, in the
// words that platform devices use.
type notApplied struct {
	Setting string                `json:"settingName"`
	Reason  protocol.SettingState `json:"nonComplianceReason"`
	Detail  string                `json:"specificNonComplianceReason,omitempty"`
}

// maxShort bounds the settings of a report that a device does not have: there
// are fewer settings than that.
const maxShort = 100

// compliance is what a policy report says, as members of a status report. What
// has no meaning on the device is no shortcoming.
func compliance(r protocol.PolicyReport, now time.Time) (json.RawMessage, error) {
	short := []notApplied{}
	for _, s := range r.Settings {
		if len(short) == maxShort {
			break
		}
		if s.State != protocol.Applied && s.State != protocol.NotApplicable {
			short = append(short, notApplied{s.ID, s.State, s.Detail})
		}
	}
	return json.Marshal(map[string]any{"policyCompliant": len(short) == 0, "nonComplianceDetails": short, "reportedAt": operation.Timestamp{Time: now}})
}
