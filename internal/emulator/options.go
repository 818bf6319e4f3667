package emulator

import (
	"cmp"
	"errors"
	"log/slog"
	"strings"
	"time"
)

// The project, topic and subscription that exist from the start. A service that
// was told only the emulator's address uses these.
const (
	DefaultProject      = "muster"
	DefaultTopic        = "device-management"
	DefaultSubscription = "device-management-muster"
)

// DefaultLatency is how long a simulated device takes to carry out a command or
// to apply a policy, unless it was told otherwise.
const DefaultLatency = 200 * time.Millisecond

// Options are what an emulator is made from. Only Now is required.
type Options struct {
	// Now is the clock. In a testing/synctest bubble time.Now is the bubble's.
	Now func() time.Time
	// PublicURL is the address under which the emulator is reached, used in
	// sign-up addresses. If empty it is taken from each request.
	PublicURL string
	// Logger gets a line for each call that is not emulated, and for trouble.
	Logger *slog.Logger
	// DataDir keeps the state in files, so that the next emulator made with it
	// goes on where this one stopped. If empty the state is in memory only.
	DataDir string
	// Settings are the settings to begin with, and to return to at a reset. The
	// zero value is the default; see [DefaultSettings].
	Settings Settings
	// CheckAnswers checks every answer and notification against the discovery
	// document before it is sent, and answers 500 where one is wrong. It is for
	// tests of the emulator itself.
	CheckAnswers bool
}

func (o *Options) complete() error {
	if o.Now == nil {
		return errors.New("emulator: Options.Now is missing: give it a clock")
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.PublicURL = strings.TrimSuffix(o.PublicURL, "/")
	return o.Settings.check()
}

// Settings can be changed while the emulator runs. The zero value is the
// default: no quota, no authorization, every notification delivered once.
type Settings struct {
	// Quota limits the vendor's API, as the vendor does per project.
	Quota Quota `json:"quota"`
	// RequireAuthorization refuses calls without a bearer token that the token
	// endpoint gave out.
	RequireAuthorization bool `json:"requireAuthorization"`
	// StrictPubSub refuses topics and subscriptions that were not created; else
	// they are made on demand.
	StrictPubSub bool `json:"strictPubSub"`
	// PullWaitMS is how long a pull with nothing to deliver waits; 0 is 5000.
	PullWaitMS int `json:"pullWaitMs"`
	// Notifications says how reliable the notifications are.
	Notifications Reliability `json:"notifications"`
	// Quirks choose between behaviors that could not be verified at Google.
	Quirks Quirks `json:"quirks"`
}

// Quota is a limit on vendor calls, shared by all callers. Zero requests mean no
// limit.
type Quota struct {
	Requests   int `json:"requests"`
	PerSeconds int `json:"perSeconds"`
}

// Reliability is how many notifications are lost, doubled or late. Shares are
// from 0 to 1. Equal seeds give equal choices.
type Reliability struct {
	LoseShare      float64 `json:"loseShare"`
	DuplicateShare float64 `json:"duplicateShare"`
	DelayShare     float64 `json:"delayShare"`
	DelayMS        int     `json:"delayMs"`
	Seed           uint64  `json:"seed"`
}

// Quirks are behaviors of the vendor that are unknown or rare. Each is off by
// default; see the package's documentation.
type Quirks struct {
	// EntityNotFoundAs500 answers calls on a missing device with 500 and
	// "Requested entity was not found." instead of 404.
	EntityNotFoundAs500 bool `json:"entityNotFoundAs500"`
	// MissingPolicyAs404 answers a token or a device patch that names a policy
	// that does not exist with 404 instead of 400.
	MissingPolicyAs404 bool `json:"missingPolicyAs404"`
	// NoOpPatchBumpsVersion raises a policy's version also when nothing changed.
	NoOpPatchBumpsVersion bool `json:"noOpPatchBumpsVersion"`
	// EchoDefaults keeps false and empty members of a policy in answers.
	EchoDefaults bool `json:"echoDefaults"`
	// EchoNewPassword returns newPassword in a command's metadata.
	EchoNewPassword bool `json:"echoNewPassword"`
	// PasswordRules refuses, from Android 14 on, a PIN of fewer than six digits,
	// and lost mode for 12 hours after a password was reset.
	PasswordRules bool `json:"passwordRules"`
	// SilentCancel sends no COMMAND notification for a canceled command.
	SilentCancel bool `json:"silentCancel"`
	// SilentExpiry sends no COMMAND notification for an expired command.
	SilentExpiry bool `json:"silentExpiry"`
	// ExpiredWithoutError ends an expired command with errorCode UNKNOWN and no
	// error, instead of error code 4.
	ExpiredWithoutError bool `json:"expiredWithoutError"`
	// UserRemovalKeepsRecord keeps the record of a device whose user removed the
	// work profile.
	UserRemovalKeepsRecord bool `json:"userRemovalKeepsRecord"`
	// LostInState answers LOST also in the state of a device in lost mode, not in its
	// appliedState alone.
	LostInState bool `json:"lostInState"`
	// UnapprovedProject reports factoryResetDisabled as PROJECT_NOT_PERMITTED, as
	// for projects whose quota was not lifted.
	UnapprovedProject bool `json:"unapprovedProject"`
}

func (s Settings) check() error {
	r := s.Notifications
	for name, share := range map[string]float64{"loseShare": r.LoseShare, "duplicateShare": r.DuplicateShare, "delayShare": r.DelayShare} {
		if share < 0 || share > 1 {
			return errors.New("notifications." + name + " must be from 0 to 1")
		}
	}
	if r.DelayMS < 0 || s.PullWaitMS < 0 || s.Quota.Requests < 0 || s.Quota.PerSeconds < 0 {
		return errors.New("settings must not be negative")
	}
	if s.Quota.Requests > 0 && s.Quota.PerSeconds == 0 {
		return errors.New("quota.perSeconds must be at least 1")
	}
	return nil
}
