package command

import (
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/slice"
)

// Type is what a command does (contract 4.2).
type Type string

// The types.
const (
	Lock                     Type = "LOCK"
	StartLostMode            Type = "START_LOST_MODE"
	StopLostMode             Type = "STOP_LOST_MODE"
	NotificationMessage      Type = "NOTIFICATION_MESSAGE"
	StatusReport             Type = "STATUS_REPORT"
	LocationUpdate           Type = "LOCATION_UPDATE"
	SyncPolicy               Type = "SYNC_POLICY"
	Reboot                   Type = "REBOOT"
	Shutdown                 Type = "SHUTDOWN"
	LaunchApp                Type = "LAUNCH_APP"
	ClearAppData             Type = "CLEAR_APP_DATA"
	ChangePolicy             Type = "CHANGE_POLICY"
	WipeCompanyData          Type = "WIPE_COMPANY_DATA"
	ResetScreenLock          Type = "RESET_SCREEN_LOCK"
	ChangeScreenLockPassword Type = "CHANGE_SCREEN_LOCK_PASSWORD"
	RelinquishOwnership      Type = "RELINQUISH_OWNERSHIP"
	UploadLog                Type = "UPLOAD_LOG"
)

// Row is all that tells one type of command from another. The REST endpoint,
// the tool, the descriptions, the portal's buttons, dialogs and texts, and the
// checks of both channels follow from it.
type Row struct {
	Type      Type
	Operation string // name of the operation, and of the tool
	Segment   string // the last of its path
	Title     string // for tools and descriptions
	// Description says what it does, to which devices, and what the outcome means.
	Description string
	Arguments   arguments // zero: it has no body

	Label string // the portal's, as short as a button
	Icon  string
	// Past and Base are its verb, with the device as its object: "locked", "lock".
	Past, Base string
	// Noun is what a person authorizes, with the device as its object: "a wipe of". Empty:
	// it needs no authorization.
	Noun string
	// Effects are what happens to the device, a sentence each; PersonalEffects
	// what happens to a personally owned one, if that differs.
	Effects, PersonalEffects []string
	Rank                     int     // its place among the portal's buttons and menu entries
	Button                   bool    // the portal shows it beside the menu
	Confirm                  Confirm // what a person does before it is sent to one device
	Bulk                     bool    // the portal sends it to several devices
	Early                    bool    // REST has it since the first version: see operation.FirstFour
	Silent                   bool    // REST answers without createdAt for devices of the platform (contract 7.1)
	Disruptive               bool    // see operation.Operation; what is irreversible is so in any case
	Irreversible             bool    // it cannot be undone
	Destructive              bool    // the company's setting and limit of destructive commands bind it
	EndsManagement           bool    // its success ends the device's management
	NamesPolicy              bool    // its argument is a policy, which the caller must be allowed to see
	// Instead is what people can do with devices of Muster's own agent, which does not
	// take the command; empty: nothing of the kind.
	Instead         string
	Platform, Agent *Support // how devices of the management take it; nil: they do not

	Vendor    string // the platform's type of the command that carries it; empty: none does
	Confirmed string // the outcome when a device of the platform has carried it out
	// Capability is what an agent needs to carry it out; empty: every agent can.
	Capability protocol.Capability
}

// Confirm is what a person of the portal does before a command is sent from a
// device's page. For what cannot be undone, that is ByName in any case.
type Confirm int

// What a person does: nothing, confirm in a dialog, type the device's name too.
const (
	AtOnce Confirm = iota
	InDialog
	ByName
)

// Support is how devices of one management take a command.
type Support struct {
	// Waits is how long the command waits for its device: the channel gives up
	// afterwards, and the command ends ERROR (contract 3.3). Zero: forever,
	// because the device takes the state on whenever it comes back.
	//
	// What interrupts a person must not strike long after it was asked for; what
	// protects a lost device must wait for it.
	Waits time.Duration
	Needs Requirement
	Push  bool // it reaches the device by push alone
}

const day = 24 * time.Hour

var catalog = [...]Row{ //nolint:gochecknoglobals // a table that is never written to
	{
		Type: Lock, Operation: "lock_device", Segment: "lock", Title: "Lock device", Early: true, Bulk: true,
		Description: "Locks the screen of one platform-managed device at once; it can be unlocked again with its own PIN, pattern " +
			"or password. On a device with a work profile that has its own lock only the profile is locked.",
		Label: "Lock", Icon: "lock", Past: "locked", Base: "lock", Rank: 2, Button: true,
		Effects:  []string{"Locks the screen at once.", "It opens again with its own PIN or password."},
		Instead:  lostAgent,
		Platform: &Support{Waits: 7 * day}, Vendor: "LOCK", Confirmed: "the device locked its screen",
	}, {
		Type: StartLostMode, Operation: "start_lost_mode", Segment: "lost-mode", Title: "Start lost mode", Early: true, Disruptive: true,
		Description: "Locks one company-owned, platform-managed device and shows a message with optional contact details on its lock " +
			"screen, for a device that was lost. It stays in lost mode until stop_lost_mode ends it or its user signs out of it with the " +
			"device's password.",
		Arguments: with(LostModeArgs.body),
		Label:     "Start lost mode", Icon: "map-pin-off", Past: "started lost mode on", Base: "start lost mode on", Rank: 7,
		Effects:  []string{"Locks the device and shows a message with contact details to the finder."},
		Instead:  lostAgent,
		Platform: &Support{Waits: 7 * day, Needs: CompanyOwned}, Vendor: "START_LOST_MODE",
		Confirmed: "the device is in lost mode and shows the message",
	}, {
		Type: StopLostMode, Operation: "stop_lost_mode", Segment: "found", Title: "Stop lost mode", Early: true,
		Description: "Ends lost mode on one company-owned, platform-managed device that was found. It has no effect, and is no error, if " +
			"the device was not in lost mode.",
		Label: "End lost mode", Icon: "badge-check", Past: "ended lost mode on", Base: "end lost mode on", Rank: 8,
		Effects:  []string{"Ends lost mode on a device that was found."},
		Instead:  lostAgent,
		Platform: &Support{Waits: 7 * day, Needs: CompanyOwned}, Vendor: "STOP_LOST_MODE", Confirmed: "the device left lost mode",
	}, {
		Type: NotificationMessage, Operation: "send_message", Segment: "message", Title: "Send message", Early: true, Bulk: true,
		Description: "Shows a plain-text notification on one device that has our agent and a registered push token " +
			"(managedDevice.pushReachable). SUCCESS means that the push was accepted for delivery, not that a person has seen it. " +
			"Without a push token it fails with unsupported.",
		Arguments: with(MessageArgs.body),
		Label:     "Message", Icon: "message-square", Past: "sent a message to", Base: "send a message to", Rank: 1, Button: true,
		Effects: []string{"Shows a notification on the device.",
			"It is sent once it was accepted for delivery; it is not known whether it was read."},
		Platform: &Support{Waits: day, Push: true}, Agent: &Support{Waits: day, Push: true}, Capability: protocol.Notify,
	}, {
		Type: StatusReport, Operation: "request_status_report", Segment: "status-report", Title: "Request status report", Bulk: true,
		Description: "Asks one device to send a fresh status report now; read it afterwards with get_asset (managedDevice.statusReport). " +
			"A platform-managed device without our companion cannot be asked: its last report is read again from the platform instead, " +
			"and the history says of when it is.",
		Label: "Refresh report", Icon: "refresh-cw", Past: "got a status report from", Base: "get a status report from",
		Rank: 4, Button: true,
		Effects:  []string{"Asks for a fresh status report."},
		Platform: &Support{Waits: day}, Agent: &Support{Waits: day},
	}, {
		Type: LocationUpdate, Operation: "request_location_update", Segment: "location-update", Title: "Request location",
		Description: "Asks one device to report its location now; read it afterwards with get_asset (managedDevice.location). " +
			"A platform-managed device without our companion cannot report its location and answers unsupported.",
		Label: "Locate", Icon: "map-pin", Past: "located", Base: "locate", Rank: 3, Button: true,
		Effects:  []string{"Asks the device where it is."},
		Platform: &Support{Waits: 10 * time.Minute, Push: true}, Agent: &Support{Waits: 10 * time.Minute},
	}, {
		Type: SyncPolicy, Operation: "sync_policy", Segment: "sync-policy", Title: "Resend policy", Bulk: true,
		Description: "Sends the current policy to one agent-managed device again. Platform-managed devices receive policy changes by " +
			"themselves and answer unsupported.",
		Label: "Resend policy", Icon: "send", Past: "resent the policy to", Base: "resend the policy to", Rank: 10,
		Effects: []string{"Sends the present policy again."},
		Agent:   &Support{},
	}, {
		Type: Reboot, Operation: "reboot_device", Segment: "reboot", Title: "Restart device", Disruptive: true, Silent: true, Bulk: true,
		Description: "Restarts one fully managed device now. Its user is interrupted and unsaved work may be lost; ask before " +
			"you send it. Devices with a work profile cannot be restarted and answer unsupported.",
		Label: "Restart", Icon: "rotate-ccw", Past: "restarted", Base: "restart", Rank: 5, Confirm: InDialog,
		Effects:  []string{"Restarts the device now.", "Unsaved work on it is lost."},
		Platform: &Support{Waits: time.Hour, Needs: FullyManaged}, Agent: &Support{Waits: 10 * time.Minute, Needs: FullyManaged},
		Vendor: "REBOOT", Confirmed: "the device confirmed the restart", Capability: protocol.Reboot,
	}, {
		Type: Shutdown, Operation: "shutdown_device", Segment: "shutdown", Title: "Shut down device", Disruptive: true,
		Description: "Powers off one agent-managed device. It cannot be powered on again remotely: a person must press its button. " +
			"Platform-managed devices answer unsupported.",
		Label: "Shut down", Icon: "power", Past: "shut down", Base: "shut down", Rank: 6, Confirm: ByName,
		Effects: []string{"Turns the device off.", "It can be turned on again only by pressing its power button."},
		Agent:   &Support{Waits: 10 * time.Minute}, Capability: protocol.Shutdown,
	}, {
		Type: LaunchApp, Operation: "launch_app", Segment: "launch-app", Title: "Open app",
		Description: "Opens an installed app, named by its package, on one agent-managed device. Platform-managed devices answer " +
			"unsupported.",
		Arguments: with(LaunchAppArgs.body),
		Label:     "Open app", Icon: "play", Past: "opened an app on", Base: "open an app on", Rank: 11,
		Effects: []string{"Opens an app that is installed."},
		Agent:   &Support{Waits: 10 * time.Minute}, Capability: protocol.Launch,
	}, {
		Type: ClearAppData, Operation: "clear_app_data", Segment: "clear-app-data", Title: "Clear app data", Irreversible: true,
		Description: "Deletes all data (accounts, settings, files) of up to 20 apps on one platform-managed device. This cannot be " +
			"undone; ask the user before you send it. It ends SUCCESS only if every app was cleared; the history says which were " +
			"not and why.",
		Arguments: with(ClearAppDataArgs.body),
		Label:     "Clear app data", Icon: "package", Past: "cleared app data on", Base: "clear app data on", Rank: 12,
		Effects:  []string{"Deletes all data of apps: accounts, settings, files."},
		Platform: &Support{Waits: day}, Vendor: "CLEAR_APP_DATA", Confirmed: "the apps' data was deleted",
	}, {
		Type: ChangePolicy, Operation: "change_device_policy", Segment: "change-policy", Title: "Change device policy", Disruptive: true,
		NamesPolicy: true, Bulk: true,
		Description: "Moves one device to another of the company's policies of the same type. The device applies the new policy's apps, " +
			"restrictions and settings and loses anything that only the current policy had. It is finished when the device reports the " +
			"new policy. Moving the device back restores the settings, not what was erased. Where the company asks for it, a person " +
			"authorizes the move first: on forbidden with an approvalUrl, show that address to the user, and make the same call again " +
			"after the decision.",
		Arguments: with(ChangePolicyArgs.body),
		Label:     "Change policy", Icon: "shield-check", Past: "changed the policy of", Base: "change the policy of",
		Noun: "a change of the policy of", Rank: 9,
		Effects:  []string{"Moves the device to another policy.", "It loses what only its present policy gave it."},
		Platform: &Support{}, Agent: &Support{},
	}, {
		Type: WipeCompanyData, Operation: "wipe_device", Segment: "wipe", Title: "Wipe device",
		Irreversible: true, Destructive: true, EndsManagement: true, Silent: true,
		Description: "Removes one device from management and erases managed data. A company-owned device is reset to factory settings: " +
			"all its apps and data are erased. On a personally owned device only the work profile with its apps and data is removed. " +
			"This cannot be undone, and the company may have a person authorize it: ask the user, naming the device, before you send it.",
		Label: "Wipe", Icon: "trash-2", Past: "wiped", Base: "wipe", Noun: "a wipe of", Rank: 16, Button: true,
		Effects: []string{"The device is reset to factory settings: all apps and data are erased, and it is no longer managed."},
		PersonalEffects: []string{"The work profile with its apps and data is removed from this personally owned device; what is " +
			"private stays.",
			"The device is no longer managed."},
		Platform: &Support{Waits: 365 * day}, Agent: &Support{}, Vendor: "WIPE",
		Confirmed: "the device confirmed the wipe; it is no longer managed", Capability: protocol.Wipe,
	}, {
		Type: ResetScreenLock, Operation: "reset_screen_lock", Segment: "reset-screen-lock", Title: "Remove screen lock",
		Irreversible: true, Destructive: true,
		Description: "Removes the screen lock (PIN, pattern or password) of one platform-managed device, so that anyone who holds it " +
			"can open it. On a device with a work profile it removes the lock of the profile only.",
		Label: "Remove screen lock", Icon: "lock-open", Past: "reset the screen lock of", Base: "reset the screen lock of",
		Noun: "a reset of the screen lock of", Rank: 13,
		Effects:  []string{"Removes PIN, pattern or password: anyone who holds the device can open it."},
		Platform: &Support{Waits: day}, Vendor: "RESET_PASSWORD", Confirmed: lockChanged,
	}, {
		Type: ChangeScreenLockPassword, Operation: "change_screen_lock_password", Segment: "change-screen-lock-password",
		Title:        "Change screen-lock password",
		Irreversible: true, Destructive: true,
		Description: "Sets a new screen-lock password on one platform-managed device; the device locks, and only the new password " +
			"unlocks it. The password is never stored, returned or logged: keep it before you send it. Recent Android versions want " +
			"at least six digits in a numeric one.",
		Arguments: with(PasswordArgs.body),
		Label:     "Set screen-lock password", Icon: "key-round", Past: "changed the screen lock password of",
		Base: "change the screen lock password of", Noun: "a new screen lock password of", Rank: 14,
		Effects:  []string{"Sets a new screen-lock password.", "It is not kept here: note it before you send it."},
		Platform: &Support{Waits: day}, Vendor: "RESET_PASSWORD", Confirmed: lockChanged,
	}, {
		Type: RelinquishOwnership, Operation: "relinquish_ownership", Segment: "relinquish-ownership", Title: "Release device to its user",
		Irreversible: true, Destructive: true, EndsManagement: true, Silent: true,
		Description: "Releases one company-owned device to its user: the work profile and its data are removed and the device is no " +
			"longer managed. A platform-managed device must have a work profile. This cannot be undone, and the company may have a " +
			"person authorize it: ask the user, naming the device, before you send it.",
		Label: "Release to its user", Icon: "user", Past: "relinquished", Base: "relinquish", Noun: "a release of", Rank: 15,
		Effects:  []string{"Removes the work profile and its data; the device is no longer managed."},
		Platform: &Support{Waits: 365 * day, Needs: CompanyWorkProfile}, Agent: &Support{},
		Vendor: "RELINQUISH_OWNERSHIP", Confirmed: "the device was released to its user; it is no longer managed",
	}, {
		Type: UploadLog, Operation: "upload_log", Segment: "upload-log", Title: "Upload agent log",
		Description: "Asks one agent-managed device for the log of its agent, the last 256 KiB at most, without secrets. " +
			"Find it with list_logs and read it with get_log once the command has ended SUCCESS; it is kept for 30 days. " +
			"Platform-managed devices answer unsupported.",
		Label: "Upload log", Icon: "terminal", Past: "got the agent's log from", Base: "get the agent's log from", Rank: 17,
		Effects: []string{"Asks for the log of the agent.", "It is kept here for 30 days."},
		Agent:   &Support{Waits: day},
	},
}

// lostAgent is what is left where the device of an agent is lost.
const lostAgent = "Muster's agent has no lock and no lost mode; if the device is lost, ask for its location, send it a message for who " +
	"finds it, or wipe it: each waits until the device is in touch, a wipe without a limit"

const lockChanged = "the device changed its screen lock; on a device with a work profile only the profile's lock changes"

// Catalog returns the rows of all types, in the contract's order. They must not
// be changed.
func Catalog() []*Row {
	all := make([]*Row, len(catalog))
	for i := range catalog {
		all[i] = &catalog[i]
	}
	return all
}

// Types lists all types.
func Types() []Type {
	return slice.Map(Catalog(), func(r *Row) Type { return r.Type })
}

// Row returns the type's row. That of a type that is not in the catalog is empty.
func (t Type) Row() *Row {
	for i := range catalog {
		if catalog[i].Type == t {
			return &catalog[i]
		}
	}
	return &Row{Type: t}
}

// Values implements operation.Enumerated.
func (Type) Values() []string {
	return slice.Map(Types(), func(t Type) string { return string(t) })
}

// DestructiveActions are what the activity log calls destructive commands.
func DestructiveActions() (all []activity.Action) {
	for _, t := range Types() {
		if t.Destructive() {
			all = append(all, activity.Command(string(t)))
		}
	}
	return all
}

// Destructive reports whether the type is one of the four that the company's
// setting and limit of destructive commands bind.
func (t Type) Destructive() bool { return t.Row().Destructive }

// on is how devices of a management take the command; nil: they do not.
func (r *Row) on(m asset.Management) *Support {
	switch m {
	case asset.Platform:
		return r.Platform
	case asset.Agent:
		return r.Agent
	}
	return nil
}

// EffectsOn is what the command does to a device, a sentence each.
func (r *Row) EffectsOn(d *asset.Device) []string {
	effects := r.Effects
	if d != nil && d.Ownership == asset.PersonallyOwned && r.PersonalEffects != nil {
		effects = r.PersonalEffects
	}
	if r.Irreversible {
		effects = append(slices.Clip(effects), "This cannot be undone.")
	}
	return effects
}

// Text is the same as one text.
func (r *Row) Text(d *asset.Device) string { return strings.Join(r.EffectsOn(d), " ") }
