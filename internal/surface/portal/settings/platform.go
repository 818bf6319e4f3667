package settings

import (
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// The connection to the platform is made in three steps: begun here, signed up
// at the vendor's page, bound here. Each is kept, so that a person who closed
// the window, or another person, goes on from there.

const signupPath = platformPath + "/signup"

// open is the sign-up that was left half-way; nil: none.
func (s *Section) open(v *frame.Visit) (*company.Signup, error) {
	if v.Company.Connected() {
		return nil, nil
	}
	signup, err := s.Platform.OpenSignup(v.Context(), v.Company.ID)
	if fault.CodeOf(err) == fault.NotFound {
		return nil, nil
	}
	return &signup, err
}

func (s *Section) platform(v *frame.Visit) error {
	open, err := s.open(v)
	if err != nil {
		return err
	}
	return v.Show("Platform", frame.SettingsPath, platformPage(v, open))
}

// connect begins the sign-up, or begins it again: an earlier one that was left
// unfinished can still be finished.
func (s *Section) connect(v *frame.Visit) error {
	_, err := s.Platform.StartSignup(v.Context(), v.Company.ID, v.Session.ID)
	if err != nil {
		return v.Refused(platformPath, err, fault.Refused, fault.Provider)
	}
	return v.Redirect(signupPath)
}

// signup shows the second step: the way to the vendor's page.
func (s *Section) signup(v *frame.Visit) error {
	open, err := s.open(v)
	switch {
	case err != nil:
		return err
	case open == nil || open.Returned():
		return v.Redirect(platformPath)
	}
	return v.Show("Connect to the platform", frame.SettingsPath, connecting(v, open.Address))
}

// finish takes the third step again, with what the vendor's page brought back.
func (s *Section) finish(v *frame.Visit) error {
	_, pushed, err := s.Platform.ResumeSignup(v.Context(), v.Company.ID)
	return s.finished(v, pushed, err)
}
