package devices

import (
	"encoding/base64"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// mayEnrollAgain reports whether a code for this one asset can be made.
func mayEnrollAgain(v *frame.Visit, d asset.Asset) bool {
	return v.May(account.ProvisionDevices) && d.Status.Enrolled() && d.Device != nil && d.Device.Management == asset.Agent
}

// mayMerge reports whether the person can say that two assets are one device.
func mayMerge(v *frame.Visit) bool { return v.May(account.CommandDevices | account.ProvisionDevices) }

// twins are the other assets, of those that the person may see, that claim the
// device's serial number.
func (s *Section) twins(v *frame.Visit, d asset.Asset) ([]asset.Asset, error) {
	ids, err := s.Identity.SameSerial(v.Context(), d.CompanyID, d.ID)
	if err != nil {
		return nil, err
	}
	return s.found(v, ids)
}

// enrollAgain makes a code with which a device enrolls as this asset, and shows
// it once.
func (s *Section) enrollAgain(v *frame.Visit) error {
	d, err := asset.Find(v.Context(), s.Assets, v.Principal, v.PathValue("id"))
	if err != nil {
		return err
	}
	payload, token, err := s.EnrollAgain(v.Context(), d.CompanyID, d.ID)
	if err != nil {
		return v.Redirect(frame.DevicePath(d.ID), v.Failed(err))
	}
	picture, err := provisioning.Draw(payload)
	if err != nil {
		return err
	}
	return v.Show("Enroll again", frame.DevicesPath, againPage(v, device{Asset: d}, again{picture, token.ExpiresAt}))
}

// again is a code that was made for one asset.
type again struct {
	png       []byte
	ExpiresAt time.Time
}

func (a again) picture() string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(a.png)
}

func mergePath(id string) string { return frame.DevicePath(id) + "/merge" }

// pair finds the asset of the address and another one.
func (s *Section) pair(v *frame.Visit, ref string) (kept, other asset.Asset, err error) {
	if kept, err = asset.Find(v.Context(), s.Assets, v.Principal, v.PathValue("id")); err == nil {
		other, err = asset.Find(v.Context(), s.Assets, v.Principal, ref)
	}
	return kept, other, err
}

// compare shows two assets side by side, before one is kept.
func (s *Section) compare(v *frame.Visit) error {
	kept, other, err := s.pair(v, v.Query().Get("other"))
	if err != nil {
		return err
	}
	return v.Show("Merge two assets", frame.DevicesPath, mergePage(v, device{Asset: kept}, device{Asset: other}))
}

// merge makes the device of the asset named in the form that of this one.
func (s *Section) merge(v *frame.Visit) error {
	kept, other, err := s.pair(v, v.Form.Get("other"))
	if err != nil {
		return err
	}
	back := frame.DevicePath(kept.ID)
	if err := s.Identity.MergeAssets(v.Context(), kept.CompanyID, kept.ID, other.ID); err != nil {
		return v.Redirect(back, v.Failed(err))
	}
	return v.Redirect(back, frame.Done("Assets merged. This asset now has the device of "+(device{Asset: other}).name()+"."))
}
