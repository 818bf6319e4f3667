package platform

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	androidmanagement "google.golang.org/api/androidmanagement/v1"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/validate"
)

// operation is one command as the platform reports it.
type operation struct {
	Name     string
	Done     bool
	Error    *androidmanagement.Status
	Metadata androidmanagement.Command
}

// readOperation reads an operation. Metadata that cannot be read counts as
// empty: what the operation says by itself still holds. So does a command's status in
// the response, where the metadata has none.
func readOperation(o *androidmanagement.Operation) operation {
	read := operation{Name: o.Name, Done: o.Done, Error: o.Error}
	m := &read.Metadata
	var response struct {
		Type string `json:"@type"`
	}
	_ = json.Unmarshal(o.Response, &response)
	status := map[string]any{"StartLostModeStatus": &m.StartLostModeStatus, "StopLostModeStatus": &m.StopLostModeStatus,
		"ClearAppsDataStatus": &m.ClearAppsDataStatus}[response.Type[strings.LastIndexByte(response.Type, '.')+1:]]
	if status != nil {
		_ = json.Unmarshal(o.Response, status)
	}
	_ = json.Unmarshal(o.Metadata, m)
	return read
}

// device is the name of the device that the operation belongs to.
func (o operation) device() string {
	name, _, found := strings.Cut(o.Name, "/operations/")
	if !found {
		return ""
	}
	return name
}

// createdAt is when the platform took the command; zero if it does not say.
func (o operation) createdAt() time.Time { return instant(o.Metadata.CreateTime) }

// settled is the end of a done operation that carried a command of type t:
// whether it succeeded, and why, in the order in which the vendor wants its members
// read.
func (o operation) settled(t command.Type) (bool, string) {
	m := &o.Metadata
	switch {
	case m.ClearAppsDataStatus != nil && len(m.ClearAppsDataStatus.Results) > 0:
		return cleared(m.ClearAppsDataParams, m.ClearAppsDataStatus.Results)
	case m.StartLostModeStatus != nil && says(m.StartLostModeStatus.Status):
		return lostModeStarted(m.StartLostModeStatus.Status)
	case m.StopLostModeStatus != nil && says(m.StopLostModeStatus.Status):
		if m.StopLostModeStatus.Status == "NOT_IN_LOST_MODE" {
			return true, "the device was not in lost mode; nothing had to be done"
		}
		return true, carriedOut(t)
	case m.ErrorCode != "" && m.ErrorCode != "COMMAND_ERROR_CODE_UNSPECIFIED":
		return false, failedWith(m.ErrorCode, t)
	case o.Error != nil:
		return false, ended(o.Error, t)
	case m.ClearAppsDataStatus != nil:
		return cleared(m.ClearAppsDataParams, nil)
	}
	return true, carriedOut(t)
}

// says reports whether a command's own status says anything: if not, the operation's error counts.
func says(status string) bool { return status != "" && status != "STATUS_UNSPECIFIED" }

// carriedOut says what a device did.
func carriedOut(t command.Type) string {
	return cmp.Or(t.Row().Confirmed, "the device confirmed the command")
}

func lostModeStarted(status string) (bool, string) {
	switch status {
	case "SUCCESS":
		return true, carriedOut(command.StartLostMode)
	case "RESET_PASSWORD_RECENTLY":
		return false, "the device's password was changed within the last 12 hours; lost mode is possible after that"
	case "USER_EXIT_LOST_MODE_RECENTLY":
		return false, "the user ended lost mode within the last 12 hours; lost mode is possible after that"
	case "ALREADY_IN_LOST_MODE":
		return false, "the device was in lost mode already and still shows the earlier message; end lost mode first to show another"
	}
	return false, "the device did not enter lost mode: " + oneLine(status)
}

// cleared sums up what became of the data of each app that was named. The result of an app may be
// missing: what became of its data is not known then.
func cleared(named *androidmanagement.ClearAppsDataParams, results map[string]androidmanagement.PerAppResult) (bool, string) {
	apps := slices.Collect(maps.Keys(results))
	if named != nil {
		apps = append(apps, named.PackageNames...)
	}
	slices.Sort(apps)
	apps = slices.Compact(apps)
	var failures, silent []string
	for _, app := range apps {
		name := validate.Clean(app, 100)
		if result, has := results[app]; !has {
			silent = append(silent, name)
		} else if why := notCleared(result.ClearingResult); why != "" {
			failures = append(failures, name+": "+why)
		}
	}
	var sentences []string
	if len(failures) > 0 {
		sentences = append(sentences, "the data of these apps was not deleted: "+strings.Join(failures, "; "))
	}
	if len(silent) > 0 {
		sentences = append(sentences, "the device did not say what became of the data of these apps: "+strings.Join(silent, ", "))
	}
	if len(sentences) == 0 {
		return true, carriedOut(command.ClearAppData)
	}
	if len(apps) > len(failures)+len(silent) {
		sentences = append(sentences, "the data of the other apps was deleted")
	}
	return false, strings.Join(sentences, "; ")
}

func notCleared(result string) string {
	switch result {
	case "SUCCESS":
		return ""
	case "APP_NOT_FOUND":
		return "not installed"
	case "APP_PROTECTED":
		return "protected by the system"
	case "API_LEVEL":
		return "the device's Android version is too old"
	case "", "CLEARING_RESULT_UNSPECIFIED":
		return "no reason given"
	}
	return oneLine(result)
}

// failedWith says what the vendor's error codes mean.
func failedWith(code string, t command.Type) string {
	switch code {
	case "API_LEVEL":
		return "the device's Android version does not support this command"
	case "MANAGEMENT_MODE":
		return "the way in which the device is managed does not allow this command"
	case "INVALID_VALUE":
		if setsPassword(t) {
			return "the device does not accept the password: its policy, or its Android version, asks for another kind"
		}
		return "the device refused a value of the command as invalid"
	case "UNSUPPORTED":
		return "the device does not support this command; an update of its device policy app may help"
	case "UNKNOWN":
		return "the device reported an error without a reason"
	}
	return "the device reported an error: " + oneLine(code)
}

// setsPassword reports whether the vendor's words about a command may repeat a
// password.
func setsPassword(t command.Type) bool { return t.Row().Vendor == "RESET_PASSWORD" }

// ended says what an operation's error means.
func ended(status *androidmanagement.Status, t command.Type) string {
	const canceled, deadlineExceeded = 1, 4
	switch status.Code {
	case canceled:
		return "cancelled: the platform canceled the command before the device received it"
	case deadlineExceeded:
		return expired
	}
	if message := oneLine(status.Message); message != "" && t != "" && !setsPassword(t) {
		return "the platform ended the command with an error: " + message
	}
	return "the platform ended the command with an error and gave no reason"
}
