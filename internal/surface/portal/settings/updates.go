package settings

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/rollout"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// Updates is what a company sees of the agent's versions: its own devices alone.
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
	if u.Troubles, err = s.Updates.UpdateTroubles(v.Context(), v.Company.ID, maxTroubles); err != nil {
		return err
	}
	return v.Show("Agent updates", frame.SettingsPath, updatesPage(v, u))
}

// pauseUpdates holds back the company's devices, or no longer. Those of others go on.
func (s *Section) pauseUpdates(v *frame.Visit) error {
	on := v.Form.Get("paused") == "true"
	if err := s.Updates.SetAgentPause(v.Context(), v.Company.ID, on); err != nil {
		return err
	}
	text := "Devices get new versions of the agent again."
	if on {
		text = "No device that has not begun gets a new version of the agent."
	}
	return v.Redirect(frame.UpdatesPath, frame.Done(text))
}
