package emulator

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/discovery"
	am "google.golang.org/api/androidmanagement/v1"
)

// The vendor's limits on a command's parameters, in characters. maxMessage is for each text of lost mode.
const (
	maxMessage    = 4096
	maxWipeReason = 200
)

// defaultLifetime is how long a command without a duration waits for its device.
const defaultLifetime = 10 * time.Minute

func issueCommand(e *Emulator, c *call, _ *enterprise, d *simulated) (any, error) {
	command := &am.Command{}
	if err := fromTree(c.body, command); err != nil {
		return nil, err
	}
	// The vendor ignores in requests the members that only its server sets.
	command.CreateTime, command.UserName, command.ErrorCode = "", "", ""
	command.ClearAppsDataStatus, command.EsimStatus, command.RequestDeviceInfoStatus = nil, nil, nil
	command.StartLostModeStatus, command.StopLostModeStatus = nil, nil
	if err := inferType(command); err != nil {
		return nil, err
	}
	if err := checkCommand(command); err != nil {
		return nil, err
	}
	lifetime, err := commandLifetime(command)
	if err != nil {
		return nil, err
	}
	return d.operationResource(e.newOperation(d, command, lifetime)), nil
}

// inferType sets a missing type from the parameters, as the vendor's server does. It refuses parameters of another type,
// and a command that has neither a type nor parameters.
func inferType(c *am.Command) error {
	given := map[string]bool{
		"CLEAR_APP_DATA":      c.ClearAppsDataParams != nil,
		"START_LOST_MODE":     c.StartLostModeParams != nil,
		"STOP_LOST_MODE":      c.StopLostModeParams != nil,
		"WIPE":                c.WipeParams != nil,
		"ADD_ESIM":            c.AddEsimParams != nil,
		"REMOVE_ESIM":         c.RemoveEsimParams != nil,
		"REQUEST_DEVICE_INFO": c.RequestDeviceInfoParams != nil,
	}
	if c.Type == "COMMAND_TYPE_UNSPECIFIED" {
		c.Type = ""
	}
	for kind, present := range given {
		switch {
		case !present || c.Type == kind:
		case c.Type == "":
			c.Type = kind
		default:
			return invalid("Command of type %s must not have the parameters of %s.", c.Type, kind)
		}
	}
	if c.Type == "" {
		return invalid("Command type must be specified.")
	}
	return nil
}

// checkCommand refuses what the vendor refuses in the parameters of a command whose type is set.
func checkCommand(c *am.Command) error {
	switch c.Type {
	case "CLEAR_APP_DATA":
		if c.ClearAppsDataParams == nil || len(c.ClearAppsDataParams.PackageNames) == 0 {
			return invalid("At least one package name must be specified for a CLEAR_APP_DATA command.")
		}
	case "START_LOST_MODE":
		return checkLostMode(c.StartLostModeParams)
	case "WIPE":
		if c.WipeParams == nil {
			return invalid("wipeParams must be specified for a WIPE command.")
		}
		if reason := c.WipeParams.WipeReason; reason != nil && utf8.RuneCountInString(reason.DefaultMessage) > maxWipeReason {
			return invalid("Wipe reason must be at most %d characters long.", maxWipeReason)
		}
	case "ADD_ESIM", "REMOVE_ESIM", "REQUEST_DEVICE_INFO":
		return fail(501, "The emulator does not have the command %s.", c.Type)
	}
	return nil
}

// checkLostMode requires an e-mail address, or one of the texts other than the organization.
func checkLostMode(p *am.StartLostModeParams) error {
	if p == nil {
		return invalid("startLostModeParams must be specified for a START_LOST_MODE command.")
	}
	texts := []*am.UserFacingMessage{p.LostMessage, p.LostPhoneNumber, p.LostStreetAddress, p.LostOrganization}
	some := p.LostEmailAddress != ""
	for i, text := range texts {
		if text == nil {
			continue
		}
		if utf8.RuneCountInString(text.DefaultMessage) > maxMessage {
			return invalid("User facing messages must be at most %d characters long.", maxMessage)
		}
		if i < 3 && (text.DefaultMessage != "" || len(text.LocalizedMessages) > 0) {
			some = true
		}
	}
	if !some {
		return invalid("At least one lost mode parameter other than the organization must be specified.")
	}
	return nil
}

// commandLifetime returns how long a command waits for its device. It writes defaultLifetime into a command without a
// duration.
func commandLifetime(c *am.Command) (time.Duration, error) {
	if c.Duration == "" {
		c.Duration = discovery.FormatDuration(defaultLifetime)
		return defaultLifetime, nil
	}
	lifetime, err := discovery.ParseDuration(c.Duration)
	if err != nil || lifetime <= 0 {
		return 0, invalid("Command duration must be positive.")
	}
	return lifetime, nil
}

// passwordKind classifies a new password. The emulator keeps this word instead of the password: it decides whether the
// device accepts the command.
func passwordKind(password string) string {
	switch {
	case password == "":
		return passwordNone
	case utf8.RuneCountInString(password) < 6 && !strings.ContainsFunc(password, func(r rune) bool { return !unicode.IsDigit(r) }):
		return passwordShortPIN
	default:
		return passwordGood
	}
}

// The kinds of passwordKind. A short PIN has up to five digits and nothing else.
const (
	passwordNone     = "none"
	passwordShortPIN = "short PIN"
	passwordGood     = "good"
)
