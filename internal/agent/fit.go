package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/musterhq/muster/internal/agent/protocol"
)

const (
	// maxAcks is the most acknowledgments in one check-in. With as many of the longest, and
	// nothing that the device reports of itself, it is smaller than protocol.MaxBody.
	maxAcks = 32
	// maxReporting is how large a check-in may be in bytes. The service keeps a report of
	// protocol.MaxBody, and adds to it.
	maxReporting = protocol.MaxBody - 16<<10
	// appsNoteSize is the most bytes that the note about left-out apps adds to a report.
	appsNoteSize = 200
)

// sendCheckIn sends a check-in, with fewer apps if it is too large. What is too large nevertheless,
// or is refused for its form, goes without what the device reports of itself and is not sent
// again: the device stays managed. request becomes what was sent.
func (a *Agent) sendCheckIn(ctx context.Context, request *protocol.CheckinRequest, answer *protocol.CheckinResponse) (int64, error) {
	body, err := a.fit(ctx, request)
	if err == nil {
		var sequence int64
		sequence, err = a.link.exchange(ctx, http.MethodPost, "/checkin", body, answer)
		if refused, ok := errors.AsType[*refusal](err); !ok || refused.Answer.Code != protocol.Malformed {
			return sequence, err
		}
	}
	a.options.Log.WarnContext(ctx, "the report is left out of the check-in", "error", err)
	if err := a.withoutReport(request); err != nil {
		return 0, err
	}
	return a.link.call(ctx, "/checkin", request, answer)
}

// fit encodes a check-in. It fails if that is too large, or if the device reported what
// cannot be encoded.
func (a *Agent) fit(ctx context.Context, request *protocol.CheckinRequest) ([]byte, error) {
	body, err := json.Marshal(request)
	if err == nil && len(body) > maxReporting && request.Status != nil {
		a.options.Log.WarnContext(ctx, "apps left out of a report that is too large", "bytes", len(body))
		less := *request.Status
		less.Values = fewerApps(less.Values, len(body)-maxReporting+appsNoteSize)
		request.Status = &less
		body, err = json.Marshal(request)
	}
	if err == nil && len(body) > maxReporting {
		err = fmt.Errorf("a check-in of %d bytes is too large", len(body))
	}
	return body, err
}

// fewerApps are the values of a report without as many apps as have that many bytes.
func fewerApps(values json.RawMessage, excess int) json.RawMessage {
	var members map[string]json.RawMessage
	var apps []json.RawMessage
	var troubles []string
	if json.Unmarshal(values, &members) != nil || json.Unmarshal(members["applications"], &apps) != nil {
		return values
	}
	_ = json.Unmarshal(members["agentErrors"], &troubles) // there may be none
	all := len(apps)
	for ; excess > 0 && len(apps) > 0; apps = apps[:len(apps)-1] {
		excess -= len(apps[len(apps)-1]) + len(",")
	}
	troubles = append(troubles, fmt.Sprintf("the report lists %d of %d apps: a check-in has no room for more", len(apps), all))
	members["applications"], _ = json.Marshal(apps) // what was read can be written
	members["agentErrors"], _ = json.Marshal(troubles)
	text, _ := json.Marshal(members)
	return text
}

// withoutReport takes out of a check-in what the device reports of itself, but for the states
// of its policy. The commands that asked for a report have failed.
func (a *Agent) withoutReport(request *protocol.CheckinRequest) error {
	for _, e := range a.journal.Entries(Done) {
		if reports(e.Command.Type) && e.Result == protocol.Done {
			if err := a.finish(e, protocol.Failed, "the service does not take the report"); err != nil {
				return err
			}
		}
	}
	request.Acks, request.Status, request.Location = a.someAcks(), nil, nil
	a.troublesUnsent = false
	if request.Policy == nil {
		return nil
	}
	policy := protocol.PolicyReport{PolicyRef: request.Policy.PolicyRef}
	for _, s := range request.Policy.Settings {
		policy.Settings = append(policy.Settings, protocol.SettingReport{ID: s.ID, State: s.State})
	}
	request.Policy = &policy
	return nil
}

// someAcks are the acknowledgments in the next check-in.
func (a *Agent) someAcks() []protocol.Ack {
	acks := a.acks()
	return acks[:min(len(acks), maxAcks)]
}
