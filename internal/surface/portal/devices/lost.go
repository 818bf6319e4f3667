package devices

import (
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

func lostPath(id string) string { return frame.DevicePath(id) + "/asks" }

// lost is a device that asks to be enrolled again, with the asset that it claims to be.
type lost struct {
	agentdevice.Request
	device
}

// asksFor are the requests for one asset, if the person may decide about them.
func (s *Section) asksFor(v *frame.Visit, a asset.Asset) ([]agentdevice.Request, error) {
	if !v.May(account.ProvisionDevices) {
		return nil, nil
	}
	return s.Requests.EnrollmentRequests(v.Context(), a.CompanyID, a.ID)
}

// lostDevices lists the devices that ask to be enrolled again.
func (s *Section) lostDevices(v *frame.Visit) error {
	requests, err := s.Requests.EnrollmentRequests(v.Context(), v.Company.ID, "")
	if err != nil {
		return err
	}
	var all []lost
	for _, r := range requests {
		found, err := s.found(v, []string{r.AssetID})
		if err != nil {
			return err
		}
		for _, a := range found {
			all = append(all, lost{r, device{Asset: a}})
		}
	}
	return v.Show("Devices to enroll again", frame.DevicesPath, lostPage(v, all))
}

// askLost shows the requests for one asset, before one is decided.
func (s *Section) askLost(v *frame.Visit, a asset.Asset) error {
	requests, err := s.Requests.EnrollmentRequests(v.Context(), a.CompanyID, a.ID)
	if err != nil {
		return err
	}
	return v.Show("Enroll again", frame.DevicesPath, asksPage(v, device{Asset: a}, requests))
}

// decide is a person's decision about a request for an asset that they see.
func (s *Section) decide(done string, act func(v *frame.Visit, a asset.Asset, id string) error) frame.Handler {
	return frame.On(s.find, func(v *frame.Visit, a asset.Asset) error {
		requests, err := s.Requests.EnrollmentRequests(v.Context(), a.CompanyID, a.ID)
		if err != nil {
			return err
		}
		id := "" // of no other asset
		for _, r := range requests {
			if r.ID == v.PathValue("request") {
				id = r.ID
			}
		}
		if err := act(v, a, id); err != nil {
			return v.Redirect(lostPath(a.ID), v.Failed(err))
		}
		return v.Redirect(frame.DevicePath(a.ID), frame.Done(done))
	})
}

func (s *Section) confirmLost(v *frame.Visit, a asset.Asset, id string) error {
	return s.Requests.ConfirmRequest(v.Context(), a.CompanyID, id, *replacement(v, a))
}

func (s *Section) declineLost(v *frame.Visit, a asset.Asset, id string) error {
	return s.Requests.DeclineRequest(v.Context(), a.CompanyID, id)
}
