package platform

import (
	"context"
	"strconv"
	"time"

	androidmanagement "google.golang.org/api/androidmanagement/v1"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
)

// commandTypes are our types that a command of the vendor may be.
func commandTypes(vendor string) []command.Type {
	var types []command.Type
	for _, row := range command.Catalog() {
		if row.Vendor == vendor && vendor != "" {
			types = append(types, row.Type)
		}
	}
	return types
}

// vendorCommand is the request for an order. Type and parameters are always
// both given, although the vendor infers the type: a wipe without wipeParams is
// refused. So is the time for which the vendor tries to deliver it: its own
// default is ten minutes.
func vendorCommand(o command.Order) *androidmanagement.Command {
	v := &androidmanagement.Command{Type: o.Command.Type.Row().Vendor, Duration: seconds(o.Command.Type.Lifetime(asset.Platform))}
	switch o.Command.Type {
	case command.StartLostMode:
		body, _ := o.Body.(command.LostModeBody)
		if body.Email == nil {
			body.Email = new(string)
		}
		v.StartLostModeParams = &androidmanagement.StartLostModeParams{
			LostMessage: said(body.Message), LostPhoneNumber: said(body.PhoneNumber),
			LostEmailAddress: *body.Email, LostStreetAddress: said(body.StreetAddress),
			LostOrganization: said(body.Organization),
		}
	case command.StopLostMode:
		v.StopLostModeParams = &androidmanagement.StopLostModeParams{}
	case command.ClearAppData:
		body, _ := o.Body.(command.ClearAppDataBody)
		v.ClearAppsDataParams = &androidmanagement.ClearAppsDataParams{PackageNames: body.PackageNames}
	case command.WipeCompanyData:
		v.WipeParams = &androidmanagement.WipeParams{}
	case command.ChangeScreenLockPassword:
		body, _ := o.Body.(command.PasswordBody)
		v.NewPassword = body.NewPassword
		v.ResetPasswordFlags = []string{"LOCK_NOW"}
	default: // the type says it all
	}
	return v
}

// said is a text for people; nil if there is none, so that it is left out.
func said(text string) *androidmanagement.UserFacingMessage {
	if text == "" {
		return nil
	}
	return &androidmanagement.UserFacingMessage{DefaultMessage: text}
}

// seconds writes a duration as the vendor reads it.
func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) + "s" }

// Cancel implements command.Canceler. The vendor's word alone says whether the
// device has received the command: it is asked for, and may come later.
func (p *Platform) Cancel(ctx context.Context, c command.Command) error {
	_, err := ask(ctx, p, methodCancelOperation, upkeep, p.am.Enterprises.Devices.Operations.Cancel(c.Ref))
	if err != nil {
		return err
	}
	return p.resolve(ctx, c)
}
