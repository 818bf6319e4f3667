package devices

import (
	"slices"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// mayEnrollAgain reports whether a code for this one asset can be made.
func mayEnrollAgain(v *frame.Visit, d asset.Asset) bool {
	return v.May(account.ProvisionDevices) && d.Status.Enrolled() && d.Device != nil && d.Device.Management == asset.Agent
}

// twins are the other assets, of those that the person may see, that claim the
// device's serial number.
func (s *Section) twins(v *frame.Visit, d asset.Asset) ([]asset.Asset, error) {
	ids, err := s.Identity.SameSerial(v.Context(), d.CompanyID, d.ID)
	if err != nil {
		return nil, err
	}
	return s.found(v, ids)
}

// replacement is what the person brings whose form lets the device of an asset leave it.
func replacement(v *frame.Visit, d asset.Asset) *access.Replacement {
	return &access.Replacement{UserID: v.User.ID, MayDestroy: v.May(account.DestroyDevices),
		Named: policy.SameName(v.Form.Get("confirm"), (device{Asset: d}).name())}
}

// barredFromReplacing says why the person cannot let the device of an asset leave it;
// empty: they can, or it has none that is managed.
func barredFromReplacing(v *frame.Visit, d asset.Asset) string {
	if !d.Status.Enrolled() || v.May(account.DestroyDevices) {
		return ""
	}
	return "Its device would leave it. " + v.Missing(account.DestroyDevices)
}

func enrollPath(id string) string { return frame.DevicePath(id) + "/enroll" }

// askEnrollAgain shows what a new enrollment of an asset does, before its code is made.
func (s *Section) askEnrollAgain(v *frame.Visit, d asset.Asset) error {
	return v.Show("Enroll again", frame.DevicesPath, enrollPage(v, device{Asset: d}))
}

// enrollAgain makes a code with which a device enrolls as this asset, and shows
// it once.
func (s *Section) enrollAgain(v *frame.Visit, d asset.Asset) error {
	payload, token, err := s.EnrollAgain(v.Context(), d.CompanyID, d.ID, replacement(v, d))
	if err != nil {
		return v.Redirect(enrollPath(d.ID), v.Failed(err))
	}
	picture, err := provisioning.Draw(payload)
	return v.ShowUnless(err, "Enroll again", frame.DevicesPath, againPage(v, device{Asset: d}, frame.Picture(picture), token.ExpiresAt))
}

func mergePath(id string) string { return frame.DevicePath(id) + "/merge" }

func comparePath(kept, other string) string { return mergePath(kept) + "?other=" + other }

// compare shows an asset and another one side by side, before one is kept.
func (s *Section) compare(v *frame.Visit, kept asset.Asset) error {
	other, err := asset.Find(v.Context(), s.Assets, v.Principal, v.Query().Get("other"))
	return v.ShowUnless(err, "Merge two assets", frame.DevicesPath, mergePage(v, device{Asset: kept}, device{Asset: other}))
}

// merge makes the device of the asset named in the form that of this one.
func (s *Section) merge(v *frame.Visit, kept asset.Asset) error {
	other, err := asset.Find(v.Context(), s.Assets, v.Principal, v.Form.Get("other"))
	if err != nil {
		return err
	}
	by := replacement(v, kept)
	if !by.Named {
		return v.Redirect(comparePath(kept.ID, other.ID),
			frame.Flash{Tone: frame.Bad, Text: "Nothing was merged: type the asset's name, “" + (device{Asset: kept}).name() + "”."})
	}
	if err := s.Identity.MergeAssets(v.Context(), kept.CompanyID, kept.ID, other.ID, by); err != nil {
		return v.Redirect(comparePath(kept.ID, other.ID), v.Failed(err))
	}
	return v.Redirect(frame.DevicePath(kept.ID),
		frame.Done("Assets merged. This asset now has the device of "+(device{Asset: other}).name()+"."))
}

// notMergeable says why the first of two assets cannot get the device of the other; empty: it can.
func notMergeable(v *frame.Visit, kept, other asset.Asset) string {
	switch {
	case !other.Status.Enrolled():
		return "The other asset has no enrolled device."
	case !kept.Claim().MayBe(other.Claim()):
		return "Both were enrolled, and they do not have the same serial number."
	}
	return barredFromReplacing(v, kept)
}

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
	return v.ShowUnless(err, "Enroll again", frame.DevicesPath, asksPage(v, device{Asset: a}, requests))
}

// decide is a person's decision about a request for an asset that they see.
func (s *Section) decide(done string, act func(v *frame.Visit, a asset.Asset, id string) error) frame.Handler {
	return frame.On(s.find, func(v *frame.Visit, a asset.Asset) error {
		requests, err := s.Requests.EnrollmentRequests(v.Context(), a.CompanyID, a.ID)
		if err != nil {
			return err
		}
		id := v.PathValue("request")
		if !slices.ContainsFunc(requests, func(r agentdevice.Request) bool { return r.ID == id }) {
			id = "" // of no other asset
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
