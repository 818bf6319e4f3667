package enroll

import (
	"fmt"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

const codesPath = frame.EnrollPath + "/codes"

// listedCodes is how many codes the page lists.
const listedCodes = 200

// codes lists the codes that the person may see, first those that can be revoked.
func (s *Section) codes(v *frame.Visit) error {
	all, err := s.Codes.Codes(v.Context(), v.Company.ID, v.Principal.Policies, listedCodes)
	if err != nil {
		return err
	}
	return v.ShowLive("Enrollment codes", frame.EnrollPath, codesPage(v, all), codeRows(v, all))
}

// revoke ends a code.
func (s *Section) revoke(v *frame.Visit) error {
	revoked, err := s.Codes.RevokeCode(v.Context(), v.Company.ID, v.Principal.Policies, v.PathValue("id"))
	return v.Finish(codesPath, err, "Revoked. "+provisioning.AfterRevoke(1, revoked.Management), fault.Unsupported)
}

// codeStatus is where a code stands, for people.
func codeStatus(v *frame.Visit, c provisioning.Code) (frame.Tone, string) {
	switch status := c.Status(v.Now); {
	case status == provisioning.CodeActive:
		return frame.OK, "Active"
	case status == provisioning.CodeUsed:
		return frame.Idle, "Used up"
	case c.Revocable(v.Now):
		return frame.Warn, "Expired, a device waits"
	case status == provisioning.CodeExpired:
		return frame.Idle, "Expired"
	default:
		return frame.Bad, "Revoked"
	}
}

// usedOf is how many devices enrolled with a code, of how many.
func usedOf(c provisioning.Code) string {
	return frame.Either(c.MaxDevices == 0, frame.Count(c.Devices, "device", "devices"),
		fmt.Sprintf("%d of %s", c.Devices, frame.Count(c.MaxDevices, "device", "devices")))
}
