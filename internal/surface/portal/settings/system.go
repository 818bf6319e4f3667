package settings

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/rollout"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// System is the state of the service, for administrators who have no shell. It says nothing
// of other companies.
type System struct {
	Version, Revision string
	Engine            string // of the database
	Schema, Size      int64  // the version of its tables; bytes
	Replicas          int    // that run now
	DiskFree          int64  // bytes; of an embedded database alone
	BackedUp          time.Time
	PlatformOn        bool // the service has access to the platform
	MailOn            bool
	// Lag is how old the last notification of the platform was when this replica applied
	// it, at NotifiedAt; zero: it applied none since it started.
	Lag            time.Duration
	NotifiedAt     time.Time
	Commands, Jobs int  // of the company that are under way
	Loops          bool // a background loop of this replica is down
	Checks         []Check
}

// Check is a finding of muster doctor.
type Check struct {
	Name           string
	Fine, Failed   bool
	Detail, Remedy string
}

func (c Check) tone() frame.Tone {
	switch {
	case c.Fine:
		return frame.OK
	case c.Failed:
		return frame.Bad
	}
	return frame.Warn
}

func (c Check) word() string {
	return map[frame.Tone]string{frame.OK: "OK", frame.Bad: "Failed", frame.Warn: "Warning"}[c.tone()]
}

// system serves the page of the service's state, whole or its live part.
func (s *Section) system(v *frame.Visit) error {
	state, err := s.System(v.Context(), v.Company.ID)
	if err != nil {
		return err
	}
	return v.Show("System", frame.SettingsPath, systemPage(v, state, frame.TroubleOf(v)))
}

// bytesText is a number of bytes for people, in binary units.
func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}

// queueText is a count that ends at 10,000.
func queueText(n int) string { return frame.Either(n >= 10_000, "10,000 or more", strconv.Itoa(n)) }

// connectionText is the company's connection to the platform as a tone and words.
func connectionText(v *frame.Visit, s System, t company.Trouble) (frame.Tone, string) {
	switch {
	case !s.PlatformOn:
		return frame.Idle, "The service has no access to the platform"
	case v.Company.Enterprise == "":
		return frame.Idle, "This company is not connected"
	case !t.LostSince.IsZero():
		return frame.Bad, "Google no longer has the enterprise of this company"
	case !t.Disconnecting.IsZero():
		return frame.Warn, "The enterprise is being given up"
	}
	return frame.OK, "Connected"
}

// Updates is what a company sees of the agent's versions: its own devices alone. Each method fails as
// the database does.
type Updates interface {
	// Rollouts returns the rollouts of all versions.
	Rollouts(ctx context.Context) ([]rollout.Rollout, error)
	// AgentVersions counts the company's devices by the version that they run.
	AgentVersions(ctx context.Context, companyID string) ([]rollout.Count, error)
	// UpdateTroubles returns up to limit devices of the company on which a version failed.
	UpdateTroubles(ctx context.Context, companyID string, limit int) ([]rollout.Trouble, error)
	// AgentPause returns since when a company's devices get no updates; zero: they do.
	AgentPause(ctx context.Context, companyID string) (time.Time, error)
	// SetAgentPause stops or allows the updates of a company's devices.
	SetAgentPause(ctx context.Context, companyID string, on bool) error
}

// maxTroubles is how many devices the page names.
const maxTroubles = 50

// updatesView is what the page of the agent's versions shows.
type updatesView struct {
	Paused   time.Time // zero: not
	Versions []rollout.Count
	Rollouts []rollout.Rollout
	Troubles []rollout.Trouble
}

func (s *Section) updates(v *frame.Visit) (err error) {
	var u updatesView
	if u.Paused, err = s.Updates.AgentPause(v.Context(), v.Company.ID); err != nil {
		return err
	}
	if u.Versions, err = s.Updates.AgentVersions(v.Context(), v.Company.ID); err != nil {
		return err
	}
	if u.Rollouts, err = s.Updates.Rollouts(v.Context()); err != nil {
		return err
	}
	if v.May(account.ViewDevices) {
		u.Troubles, err = s.Updates.UpdateTroubles(v.Context(), v.Company.ID, maxTroubles)
	}
	return v.ShowUnless(err, "Agent updates", frame.SettingsPath, updatesPage(v, u))
}

// pauseUpdates holds back the company's devices, or no longer. Those of others go on.
func (s *Section) pauseUpdates(v *frame.Visit) error {
	on := v.Form.Get("paused") == "true"
	return v.Finish(frame.UpdatesPath, s.Updates.SetAgentPause(v.Context(), v.Company.ID, on), frame.Either(on,
		"No device that has not begun gets a new version of the agent.", "Devices get new versions of the agent again."))
}
