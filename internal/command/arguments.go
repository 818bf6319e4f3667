package command

import (
	"log/slog"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/policy"
)

// LostModeArgs are the arguments of start_lost_mode (contract 4.2, 8).
type LostModeArgs struct {
	asset.Target
	LostModeBody
}

// LostModeBody is the body of START_LOST_MODE.
type LostModeBody struct {
	Message       string  `json:"message" rule:"required notblank lines maxchars=4096" doc:"Text shown on the lock screen." example:"This phone is lost. Please call the number below." label:"Message"`
	PhoneNumber   string  `json:"phoneNumber" rule:"line maxchars=4096" doc:"Phone number shown on the lock screen." label:"Phone number" input:"tel"`
	Email         *string `json:"email" rule:"email maxchars=320" doc:"E-mail address shown on the lock screen." label:"E-mail address"`
	StreetAddress string  `json:"streetAddress" rule:"line maxchars=4096" doc:"Postal address shown on the lock screen." label:"Postal address"`
	Organization  string  `json:"organization" rule:"line maxchars=4096" doc:"Name of the organization shown on the lock screen." label:"Organization"`
}

func (a LostModeArgs) body() any { return a.LostModeBody }

// MessageArgs are the arguments of send_message.
type MessageArgs struct {
	asset.Target
	MessageBody
}

// MessageBody is the body of NOTIFICATION_MESSAGE.
type MessageBody struct {
	Title string `json:"title" rule:"required notblank line maxchars=60" doc:"Title of the notification." example:"Shift change" label:"Title"`
	Body  string `json:"body" rule:"required notblank lines maxchars=500" doc:"Text of the notification, plain." example:"Please return your device to the desk by 18:00." label:"Text"`
}

func (a MessageArgs) body() any { return a.MessageBody }

// LaunchAppArgs are the arguments of launch_app.
type LaunchAppArgs struct {
	asset.Target
	LaunchAppBody
}

// LaunchAppBody is the body of LAUNCH_APP.
type LaunchAppBody struct {
	PackageName string `json:"packageName" rule:"required package" doc:"Package name of an installed app, such as com.example.app." label:"Package" help:"Such as com.example.app"`
}

func (a LaunchAppArgs) body() any { return a.LaunchAppBody }

// ClearAppDataArgs are the arguments of clear_app_data.
type ClearAppDataArgs struct {
	asset.Target
	ClearAppDataBody
}

// ClearAppDataBody is the body of CLEAR_APP_DATA.
type ClearAppDataBody struct {
	PackageNames []string `json:"packageNames" rule:"required minitems=1 maxitems=20 package" doc:"Package names of the apps whose data is deleted." label:"Packages" help:"One on a line, at most 20"`
}

func (a ClearAppDataArgs) body() any { return a.ClearAppDataBody }

// ChangePolicyArgs are the arguments of change_device_policy.
type ChangePolicyArgs struct {
	asset.Target
	PolicyID string `json:"policyId" rule:"required notblank" doc:"The new policy's pathName from list_policies." label:"New policy" input:"policy"`
}

// ChangePolicyBody is the body of CHANGE_POLICY.
type ChangePolicyBody struct{ Policy policy.Policy }

func (a ChangePolicyArgs) body() any { return PolicyRef(a.PolicyID) }

// PolicyRef is the body of CHANGE_POLICY in a Request: a path name or short id. The Order
// has the policy itself.
type PolicyRef string

// PasswordArgs are the arguments of change_screen_lock_password. They print
// without the password.
type PasswordArgs struct {
	asset.Target
	PasswordBody
}

// PasswordBody is the body of CHANGE_SCREEN_LOCK_PASSWORD. It is never stored,
// logged or returned (contract 4.2), and prints without the password.
type PasswordBody struct {
	NewPassword string `json:"newPassword" rule:"required trimmed line minchars=4 maxchars=128 secret" doc:"The new password. It is never stored, returned or logged." example:"482915" label:"New password" help:"4 to 128 characters; recent Android versions want six digits"`
}

func (a PasswordArgs) body() any { return a.PasswordBody }

// String keeps the password out of formatted text.
func (PasswordBody) String() string { return "[secret]" }

// GoString keeps the password out of %#v.
func (b PasswordBody) GoString() string { return b.String() }

// LogValue keeps the password out of logs.
func (b PasswordBody) LogValue() slog.Value { return slog.StringValue(b.String()) }

// AgentArguments are a command's body as an agent and a companion app read it.
func AgentArguments(body any) any {
	if body == nil {
		return struct{}{}
	}
	return body
}
