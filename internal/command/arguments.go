package command

import (
	"log/slog"

	"github.com/musterhq/muster/internal/asset"
)

// LostModeArgs are the arguments of start_lost_mode (contract 4.2, 8).
type LostModeArgs struct {
	asset.Target
	Message       string  `json:"message" rule:"required notblank lines maxchars=4096" doc:"Text shown on the lock screen." example:"This phone is lost. Please call the number below."`
	PhoneNumber   string  `json:"phoneNumber" rule:"line maxchars=4096" doc:"Phone number shown on the lock screen."`
	Email         *string `json:"email" rule:"email maxchars=320" doc:"E-mail address shown on the lock screen."`
	StreetAddress string  `json:"streetAddress" rule:"line maxchars=4096" doc:"Postal address shown on the lock screen."`
	Organization  string  `json:"organization" rule:"line maxchars=4096" doc:"Name of the organization shown on the lock screen."`
}

func (a LostModeArgs) body() any {
	b := LostModeBody{Message: a.Message, PhoneNumber: a.PhoneNumber, StreetAddress: a.StreetAddress, Organization: a.Organization}
	if a.Email != nil {
		b.Email = *a.Email
	}
	return b
}

// MessageArgs are the arguments of send_message.
type MessageArgs struct {
	asset.Target
	Title string `json:"title" rule:"required notblank line maxchars=60" doc:"Title of the notification." example:"Shift change"`
	Body  string `json:"body" rule:"required notblank lines maxchars=500" doc:"Text of the notification, plain." example:"Please return your device to the desk by 18:00."`
}

func (a MessageArgs) body() any { return MessageBody{Title: a.Title, Body: a.Body} }

// LaunchAppArgs are the arguments of launch_app.
type LaunchAppArgs struct {
	asset.Target
	PackageName string `json:"packageName" rule:"required package" doc:"Package name of an installed app, such as com.example.app."`
}

func (a LaunchAppArgs) body() any { return LaunchAppBody{PackageName: a.PackageName} }

// ClearAppDataArgs are the arguments of clear_app_data.
type ClearAppDataArgs struct {
	asset.Target
	PackageNames []string `json:"packageNames" rule:"required minitems=1 maxitems=20 package" doc:"Package names of the apps whose data is deleted."`
}

func (a ClearAppDataArgs) body() any { return ClearAppDataBody{PackageNames: a.PackageNames} }

// ChangePolicyArgs are the arguments of change_device_policy.
type ChangePolicyArgs struct {
	asset.Target
	PolicyID string `json:"policyId" rule:"required notblank" doc:"The new policy's pathName from list_policies."`
}

func (a ChangePolicyArgs) body() any { return policyRef(a.PolicyID) }

// policyRef is the body of CHANGE_POLICY before the policy is found.
type policyRef string

// PasswordArgs are the arguments of change_screen_lock_password. They print
// without the password.
type PasswordArgs struct {
	asset.Target
	NewPassword string `json:"newPassword" rule:"required trimmed line minchars=4 maxchars=128 secret" doc:"The new password. It is never stored, returned or logged." example:"482915"`
}

func (a PasswordArgs) body() any { return PasswordBody{NewPassword: a.NewPassword} }

// String keeps the password out of formatted text.
func (a PasswordArgs) String() string { return "{" + a.AssetID + " [secret]}" }

// GoString keeps the password out of %#v.
func (a PasswordArgs) GoString() string { return a.String() }

// LogValue keeps the password out of logs.
func (a PasswordArgs) LogValue() slog.Value { return slog.StringValue(a.String()) }
