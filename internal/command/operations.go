package command

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// row declares one command: what is public of it. Who may take it is in kinds,
// its arguments in arguments.go.
type row struct {
	command     Type
	tool, title string
	path        string // the last segment
	effect      operation.Effect
	disruptive  bool // see operation.Operation
	define      func(*operation.Registry, *Service, operation.Operation, Type)
	description string
}

// table is contract 4.2 with the tool names of 4.5.
func table() []row {
	return []row{
		{Lock, "lock_device", "Lock device", "lock", operation.Writing, false, bare,
			"Locks the screen of one platform-managed device at once; it can be unlocked again with its own PIN, pattern or password. " +
				"On a device with a work profile that has its own lock only the profile is locked."},
		{StartLostMode, "start_lost_mode", "Start lost mode", "lost-mode", operation.Writing, true, with(LostModeArgs.body),
			"Locks one company-owned, platform-managed device and shows a message with optional contact details on its lock screen, for a device that was lost. " +
				"It stays in lost mode until stop_lost_mode ends it or its user signs out of it with the device's password."},
		{StopLostMode, "stop_lost_mode", "Stop lost mode", "found", operation.Writing, false, bare,
			"Ends lost mode on one company-owned, platform-managed device that was found. It has no effect, and is no error, if the device was not in lost mode."},
		{NotificationMessage, "send_message", "Send message", "message", operation.Writing, false, with(MessageArgs.body),
			"Shows a plain-text notification on one device that has our agent and a registered push token (managedDevice.pushReachable). " +
				"SUCCESS means that the push was accepted for delivery, not that a person has seen it. Without a push token it fails with unsupported."},
		{StatusReport, "request_status_report", "Request status report", "status-report", operation.Writing, false, bare,
			"Asks one device to send a fresh status report now; read it afterwards with get_asset (managedDevice.statusReport). " +
				"A platform-managed device without our companion cannot be asked: its last report is read again from the platform instead, and the history says of when it is."},
		{LocationUpdate, "request_location_update", "Request location", "location-update", operation.Writing, false, bare,
			"Asks one device to report its location now; read it afterwards with get_asset (managedDevice.location). " +
				"A platform-managed device without our companion cannot report its location and answers unsupported."},
		{SyncPolicy, "sync_policy", "Resend policy", "sync-policy", operation.Writing, false, bare,
			"Sends the current policy to one agent-managed device again. Platform-managed devices receive policy changes by themselves and answer unsupported."},
		{Reboot, "reboot_device", "Restart device", "reboot", operation.Writing, true, bare,
			"Restarts one fully managed device now. Its user is interrupted and unsaved work may be lost; ask before you send it. " +
				"Devices with a work profile cannot be restarted and answer unsupported."},
		{Shutdown, "shutdown_device", "Shut down device", "shutdown", operation.Writing, true, bare,
			"Powers off one agent-managed device. It cannot be powered on again remotely: a person must press its button. Platform-managed devices answer unsupported."},
		{LaunchApp, "launch_app", "Open app", "launch-app", operation.Writing, false, with(LaunchAppArgs.body),
			"Opens an installed app, named by its package, on one agent-managed device. Platform-managed devices answer unsupported."},
		{ClearAppData, "clear_app_data", "Clear app data", "clear-app-data", operation.Destroying, true, with(ClearAppDataArgs.body),
			"Deletes all data (accounts, settings, files) of up to 20 apps on one platform-managed device. This cannot be undone; ask the user before you send it. " +
				"It ends SUCCESS only if every app was cleared; the history says which were not and why."},
		{ChangePolicy, "change_device_policy", "Change device policy", "change-policy", operation.Writing, true, with(ChangePolicyArgs.body),
			"Moves one device to another of the company's policies of the same type. The device applies the new policy's apps, restrictions and settings and loses anything that only the current policy had. " +
				"It is finished when the device reports the new policy. To undo it, move the device back."},
		{WipeCompanyData, "wipe_device", "Wipe device", "wipe", operation.Destroying, true, bare,
			"Removes one device from management and erases managed data. A company-owned device is reset to factory settings: all its apps and data are erased. " +
				"On a personally owned device only the work profile with its apps and data is removed. This cannot be undone and runs without further approval: ask the user, naming the device, before you send it."},
		{ResetScreenLock, "reset_screen_lock", "Remove screen lock", "reset-screen-lock", operation.Destroying, true, bare,
			"Removes the screen lock (PIN, pattern or password) of one platform-managed device, so that anyone who holds it can open it. " +
				"On a device with a work profile it removes the lock of the profile only."},
		{ChangeScreenLockPassword, "change_screen_lock_password", "Change screen-lock password", "change-screen-lock-password", operation.Destroying, true, with(PasswordArgs.body),
			"Sets a new screen-lock password on one platform-managed device; the device locks, and only the new password unlocks it. " +
				"The password is never stored, returned or logged: keep it before you send it. Recent Android versions want at least six digits in a numeric one."},
		{RelinquishOwnership, "relinquish_ownership", "Release device to its user", "relinquish-ownership", operation.Destroying, true, bare,
			"Releases one company-owned device to its user: the work profile and its data are removed and the device is no longer managed. " +
				"A platform-managed device must have a work profile. This cannot be undone and runs without further approval: ask the user, naming the device, before you send it."},
	}
}

// advice is what every command's description ends with.
const advice = " UNCONFIRMED: do not send it again; look at list_device_commands."

// Types lists the sixteen types.
func Types() []Type {
	types := []Type{}
	for _, row := range table() {
		types = append(types, row.command)
	}
	return types
}

// Define declares the sixteen commands and the history (contract 4.2, 2.3).
func Define(r *operation.Registry, s *Service) {
	for _, row := range table() {
		row.define(r, s, row.operation(), row.command)
	}
	defineHistory(r, s)
}

func (r row) operation() operation.Operation {
	o := operation.Operation{
		Name: r.tool, Title: r.title, Description: r.description + advice,
		Method: "POST", Path: "/assets/{assetId}/commands/" + r.path,
		Needs: access.DevicesCommand | access.DevicesRead, Gate: access.DeviceCommands,
		Budget: operation.AfterValidation, Dialect: operation.Commands, Effect: r.effect, Disruptive: r.disruptive,
		Faults:      []fault.Code{fault.NotFound, fault.Unsupported, fault.Refused, fault.Provider, fault.Unavailable},
		Unconfirmed: true,
		Samples:     r.samples(),
	}
	if r.command.firstFour() {
		o.Budget, o.Dialect = operation.BeforeValidation, operation.FirstFour
	}
	if r.command.Destructive() {
		o.Needs, o.Gate = access.DevicesCommandDestructive|access.DevicesRead, access.DestructiveCommands
	}
	switch r.command {
	case ChangePolicy:
		o.Needs |= access.PoliciesRead
	case NotificationMessage: // contract 7.1: messages never return 502
		o.Faults = []fault.Code{fault.NotFound, fault.Unsupported, fault.Refused, fault.Unavailable}
	}
	return o
}

// samples are what the command answers for a device of the platform.
func (r row) samples() []any {
	c := Command{AssetID: "8k2v0r6m4q1x7t9c3w5y2n8b6d", Type: r.command, State: Sent, CreatedAt: time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)}
	return []any{resultOf(c, "acme", asset.Platform), unconfirmedOf(c, "acme", asset.Platform, "")}
}

// firstFour reports whether REST speaks of the type in the older dialect, with
// its own order of checks and createdAt also when unconfirmed (contract 7.2).
func (t Type) firstFour() bool {
	return t == Lock || t == StartLostMode || t == StopLostMode || t == NotificationMessage
}

// bare defines a command without a body.
func bare(r *operation.Registry, s *Service, o operation.Operation, t Type) {
	operation.Define(r, o, func(ctx context.Context, call operation.Call, a asset.Target) (Result, error) {
		return s.Execute(ctx, call, Request{Type: t, AssetID: a.AssetID})
	})
}

// with defines a command whose arguments have a body.
func with[A interface{ Asset() string }](body func(A) any) func(*operation.Registry, *Service, operation.Operation, Type) {
	return func(r *operation.Registry, s *Service, o operation.Operation, t Type) {
		operation.Define(r, o, func(ctx context.Context, call operation.Call, a A) (Result, error) {
			return s.Execute(ctx, call, Request{Type: t, AssetID: a.Asset(), Body: body(a)})
		})
	}
}
