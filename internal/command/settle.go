package command

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/validate"
)

// Feedback is what a channel learned of a command after its answer.
type Feedback struct {
	// CommandID is our own id of the command, if the channel knows it; else
	// Ref is the channel's.
	CommandID string
	Ref       string
	// Observation, if its AssetID is not empty, lets feedback whose Ref is not
	// known find the UNCONFIRMED command that it belongs to.
	Sighting Observation

	Succeeded bool
	Outcome   string    // for the history; may be the device's own text
	At        time.Time // the time of the device's own word; zero: only the channel spoke
	// Ends is the delivery of the command that ends with this word; nil: none.
	Ends *Outstanding
}

// Observation is a command that a channel has and the service does not know by
// its Ref: one whose answer was lost (contract 3.3).
type Observation struct {
	AssetID  string
	Type     Type
	IssuedAt time.Time // by the channel's clock
}

// ClockSkew is how far a channel's clock may be off when an Observation is matched.
const ClockSkew = time.Minute

// Settle makes a command final by the device's or the channel's word. It
// returns the updated command, and false if it was already final: final
// states never change. A command that was not sent here is fault.NotFound.
func (s *Service) Settle(ctx context.Context, f Feedback) (Command, bool, error) {
	id, err := s.find(ctx, f)
	if err != nil {
		return Command{}, false, err
	}
	step := Transition{From: []State{Prepared, Sent, Unconfirmed}, To: Failed, Ref: f.Ref, Ends: f.Ends,
		Outcome: validate.Clean(f.Outcome, maxText), Feedback: f.At.UTC()}
	if f.At.IsZero() {
		step.Feedback = time.Time{}
	}
	outcome := "error"
	if f.Succeeded { // that the outcome was not known no longer holds
		step.To, step.ClearOutcome, outcome = Succeeded, true, "success"
	} else if step.Outcome == "" {
		step.Outcome = "failed; no reason was given"
	}
	now, taken, err := s.Store.Advance(ctx, id, step)
	if err == nil && taken {
		s.finished(now.Type, outcome)
	}
	return now, taken, err
}

// find returns the id of the command that the feedback is of.
func (s *Service) find(ctx context.Context, f Feedback) (string, error) {
	if f.CommandID != "" {
		return f.CommandID, nil
	}
	c, err := s.Store.CommandByRef(ctx, f.Ref)
	if fault.CodeOf(err) == fault.NotFound && f.Sighting.AssetID != "" {
		c, err = s.Adopt(ctx, f.Ref, f.Sighting)
	}
	return c.ID, err
}

// Adopt gives an open command whose answer was lost the channel's name of it:
// the command of the asset and type, without a name, that was created closest
// to the sighting and within the time that an attempt may take. fault.NotFound
// if there is none. The command stays UNCONFIRMED until its word comes.
func (s *Service) Adopt(ctx context.Context, ref string, seen Observation) (Command, error) {
	none := fault.New(fault.NotFound, "no command awaits this name")
	const attempts = 5 // each other one lost the command to another call
	for range attempts {
		open, err := s.Store.OpenOf(ctx, seen.AssetID)
		if err != nil {
			return Command{}, err
		}
		best, found := s.closest(open, seen)
		if !found {
			return Command{}, none
		}
		now, taken, err := s.Store.Advance(ctx, best.ID, Transition{From: []State{best.State}, To: best.State, Ref: ref})
		switch {
		case err != nil:
			return Command{}, err
		case taken:
			return now, nil
		case now.Ref == ref: // the sender has given it its name since
			return now, nil
		}
		// It moved, perhaps from PREPARED to UNCONFIRMED: the word of the channel comes once,
		// and is not given up while a command may await it.
	}
	return Command{}, none
}

// closest is the command of the asset and type, without a name, that was created closest to
// the sighting.
func (s *Service) closest(open []Command, seen Observation) (best Command, found bool) {
	var distance time.Duration
	for _, c := range open {
		if c.Type != seen.Type || c.Ref != "" || c.State != Prepared && c.State != Unconfirmed {
			continue
		}
		after := seen.IssuedAt.Sub(c.CreatedAt)
		if after < -ClockSkew || after > 2*SendLimit+ClockSkew {
			continue
		}
		if !found || after.Abs() < distance {
			best, distance, found = c, after.Abs(), true
		}
	}
	return best, found
}

// lostAfter is after how long a change of policy that the service alone makes, and whose outcome is not known, was made or
// never is: long after the attempt has ended.
const lostAfter = 10 * time.Minute

// PolicyApplied settles the changes of policy of a device that reports which
// policy it has applied: the newest to that policy succeeded, and those before
// it were overtaken. at is the device's own time of report. For a device with an agent the
// policy is also the one that is assigned, which only the service changes: a later change of
// which it is not known whether it was made has failed after lostAfter.
func (s *Service) PolicyApplied(ctx context.Context, assetID, policyID string, m asset.Management, at time.Time) error {
	open, err := s.Store.OpenOf(ctx, assetID)
	if err != nil {
		return err
	}
	var newest time.Time // change to that policy
	for _, c := range open {
		if c.Type == ChangePolicy && c.PolicyID == policyID && c.CreatedAt.After(newest) {
			newest = c.CreatedAt
		}
	}
	for _, c := range open {
		later := c.CreatedAt.After(newest)
		lost := m == asset.Agent && c.State == Unconfirmed && c.CreatedAt.Before(s.now().Add(-lostAfter))
		if c.Type != ChangePolicy || later && !lost {
			continue
		}
		f := Feedback{CommandID: c.ID, Succeeded: c.PolicyID == policyID, At: at, Outcome: "the device reports the new policy"}
		switch {
		case later:
			f.Outcome = "the change was overtaken, or never made"
		case !f.Succeeded:
			f.Outcome = "overtaken by a later change of policy"
		}
		if _, _, err := s.Settle(ctx, f); err != nil {
			return err
		}
	}
	return nil
}
