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
// empty: what the operation says by itself still holds.
func readOperation(o *androidmanagement.Operation) operation {
	read := operation{Name: o.Name, Done: o.Done, Error: o.Error}
	_ = json.Unmarshal(o.Metadata, &read.Metadata)
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
	case m.ClearAppsDataStatus != nil:
		return cleared(m.ClearAppsDataStatus.Results)
	case m.StartLostModeStatus != nil:
		return lostModeStarted(m.StartLostModeStatus.Status)
	case m.StopLostModeStatus != nil:
		if m.StopLostModeStatus.Status == "NOT_IN_LOST_MODE" {
			return true, "the device was not in lost mode; nothing had to be done"
		}
		return true, carriedOut(t)
	case m.ErrorCode != "" && m.ErrorCode != "COMMAND_ERROR_CODE_UNSPECIFIED":
		return false, failedWith(m.ErrorCode, t)
	case o.Error != nil:
		return false, ended(o.Error, t)
	}
	return true, carriedOut(t)
}

// carriedOut says what a device did.
func carriedOut(t command.Type) string {
	return cmp.Or(t.Row().Confirmed, "the device confirmed the command")
}

func lostModeStarted(status string) (bool, string) {
	switch status {
	case "SUCCESS", "", "STATUS_UNSPECIFIED":
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

// cleared sums up what became of each app's data.
func cleared(results map[string]androidmanagement.PerAppResult) (bool, string) {
	var failures []string
	for _, app := range slices.Sorted(maps.Keys(results)) {
		if why := notCleared(results[app].ClearingResult); why != "" {
			failures = append(failures, validate.Clean(app, 100)+": "+why)
		}
	}
	if len(failures) == 0 {
		return true, carriedOut(command.ClearAppData)
	}
	text := "the data of these apps was not deleted: " + strings.Join(failures, "; ")
	if done := len(results) - len(failures); done > 0 {
		text += "; the data of the other apps was deleted"
	}
	return false, text
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
