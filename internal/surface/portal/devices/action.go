package devices

import (
	"strings"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/surface/web"
)

// action is something that can be done to a device: an operation of the
// registry, in the portal's words.
type action struct {
	Operation string
	Type      command.Type
	Label     string
	Icon      string
	Text      string // what it does, in its dialog
	Inputs    []input
	Place     place
	Confirm   confirm
}

// confirm says what a person does before an action without inputs is sent from
// a device's page.
type confirm int

const (
	atOnce   confirm = iota // nothing
	inDialog                // read what it does and confirm
	byName                  // type the device's name as well
)

// asks reports whether the action has a dialog.
func (a action) asks() bool { return a.Inputs != nil || a.Place == apart || a.Confirm != atOnce }

// typed reports whether its dialog asks for the device's name.
func (a action) typed() bool { return a.Place == apart || a.Confirm == byName }

// place says where an action stands.
type place int

const (
	inHead place = iota
	inMenu
	apart // destructive: set apart, and asks for the device's name
)

// input is one argument of an action.
type input struct {
	Name, Label, Kind, Help string // Kind: text, area, email, tel, password, packages, policy
	Max                     int    // characters
	Required                bool
}

// actions are all sixteen commands.
func actions() []action {
	return []action{
		{"send_message", command.NotificationMessage, "Message", "message-square", "Shows a notification on the device. It is sent once it was accepted for delivery; it is not known whether it was read.",
			[]input{{"title", "Title", "text", "", 60, true}, {"body", "Text", "area", "", 500, true}}, inHead, atOnce},
		{"lock_device", command.Lock, "Lock", "lock", "Locks the screen at once. It opens again with its own PIN or password.", nil, inHead, atOnce},
		{"request_location_update", command.LocationUpdate, "Locate", "map-pin", "Asks the device where it is.", nil, inHead, atOnce},
		{"request_status_report", command.StatusReport, "Refresh report", "refresh-cw", "Asks for a fresh status report.", nil, inHead, atOnce},
		{"reboot_device", command.Reboot, "Restart", "rotate-ccw", "Restarts the device now. Unsaved work on it is lost.", nil, inMenu, inDialog},
		{"shutdown_device", command.Shutdown, "Shut down", "power", "Turns the device off. It can be turned on again only by pressing its power button.", nil, inMenu, byName},
		{"start_lost_mode", command.StartLostMode, "Start lost mode", "map-pin-off", "Locks the device and shows a message with contact details to the finder.",
			[]input{{"message", "Message", "area", "", 4096, true}, {"phoneNumber", "Phone number", "tel", "", 4096, false}, {"email", "E-mail address", "email", "", 320, false},
				{"streetAddress", "Postal address", "text", "", 4096, false}, {"organization", "Organization", "text", "", 4096, false}}, inMenu, atOnce},
		{"stop_lost_mode", command.StopLostMode, "End lost mode", "badge-check", "Ends lost mode on a device that was found.", nil, inMenu, atOnce},
		{"change_device_policy", command.ChangePolicy, "Change policy", "shield-check", "Moves the device to another policy. It loses what only its present policy gave it.",
			[]input{{"policyId", "New policy", "policy", "", 0, true}}, inMenu, atOnce},
		{"sync_policy", command.SyncPolicy, "Resend policy", "send", "Sends the present policy again.", nil, inMenu, atOnce},
		{"launch_app", command.LaunchApp, "Open app", "play", "Opens an app that is installed.", []input{{"packageName", "Package", "text", "Such as com.example.app", 255, true}}, inMenu, atOnce},
		{"clear_app_data", command.ClearAppData, "Clear app data", "package", "Deletes all data of apps: accounts, settings, files. This cannot be undone.",
			[]input{{"packageNames", "Packages", "packages", "One on a line, at most 20", 6000, true}}, apart, atOnce},
		{"reset_screen_lock", command.ResetScreenLock, "Remove screen lock", "lock-open", "Removes PIN, pattern or password: anyone who holds the device can open it.", nil, apart, atOnce},
		{"change_screen_lock_password", command.ChangeScreenLockPassword, "Set screen-lock password", "key-round", "Sets a new screen-lock password. It is not kept here: note it before you send it.",
			[]input{{"newPassword", "New password", "password", "4 to 128 characters; recent Android versions want six digits", 128, true}}, apart, atOnce},
		{"relinquish_ownership", command.RelinquishOwnership, "Release to its user", "user", "Removes the work profile and its data; the device is no longer managed. This cannot be undone.", nil, apart, atOnce},
		{"wipe_device", command.WipeCompanyData, "Wipe", "trash-2", "", nil, apart, atOnce},
	}
}

func findAction(operation string) (action, bool) {
	for _, a := range actions() {
		if a.Operation == operation {
			return a, true
		}
	}
	return action{}, false
}

// needs is the right that the action takes.
func (a action) needs() account.Right {
	switch {
	case a.Type.Destructive():
		return account.DestroyDevices
	case a.Type == command.ChangePolicy:
		return account.CommandDevices | account.ViewPolicies
	default:
		return account.CommandDevices
	}
}

// proves reports whether it takes a fresh proof of identity: the device is lost
// to the company, so a session that was left open must not be enough.
func (a action) proves() bool {
	return a.Type == command.WipeCompanyData || a.Type == command.RelinquishOwnership
}

// barred says why the person cannot take the action on the device; empty if
// they can. The same is checked again when they do.
func (s *Section) barred(v *frame.Visit, a action, d asset.Asset) string {
	if missing := a.needs() &^ v.User.Rights; missing != 0 {
		return "It takes the permission to " + frame.Describe(missing) + ". " + v.Granters() + " can grant it."
	}
	if d.Status == asset.Deleted {
		return "This device is no longer managed."
	}
	if err := command.Eligible(a.Type, d, s.Companions); err != nil {
		return frame.Sentence(fault.From(err).Detail)
	}
	return ""
}

// erased says what a wipe does to this device.
func erased(d asset.Asset) string {
	if d.Device != nil && d.Device.Ownership == asset.PersonallyOwned {
		return "The work profile with its apps and data is removed from this personally owned device; what is private stays. The device is no longer managed. This cannot be undone."
	}
	return "The device is reset to factory settings: all apps and data are erased, and it is no longer managed. This cannot be undone."
}

func (a action) text(d asset.Asset) string {
	if a.Type == command.WipeCompanyData {
		return erased(d)
	}
	return a.Text
}

// command serves POST /devices/{id}/commands/{operation}.
func (s *Section) command(v *frame.Visit) error {
	a, ok := findAction(v.PathValue("operation"))
	if !ok {
		return fault.New(fault.NotFound, "there is no such command")
	}
	d, err := asset.Find(v.Context(), s.Assets, v.Principal, v.PathValue("id"))
	if err != nil {
		return err
	}
	if err := v.Require(a.needs()); err != nil {
		return err
	}
	form, err := v.Form()
	if err != nil {
		return err
	}
	back := frame.DevicePath(d.ID)
	if name := (device{Asset: d}).name(); a.typed() && !policy.SameName(form.Get("confirm"), name) {
		return v.Redirect(back, frame.Flash{Tone: frame.Bad, Text: "Nothing was sent: the name that you typed is not “" + name + "”."})
	}
	if a.proves() && !v.Proved() {
		return v.Redirect(web.ProveAddress(back), frame.Flash{Tone: frame.Warn,
			Text: "Confirm it's you, then choose “" + a.Label + "” again. Nothing was sent."})
	}
	result, err := v.Run(a.Operation, a.arguments(d.ID, form.Get), form.Get(frame.OnceField))
	if err != nil {
		return v.Redirect(back, s.refused(v, a, err))
	}
	if r := result.(command.Result); r.Status == command.Unconfirmed.Status() {
		return v.Redirect(back, told(a, r))
	}
	return v.Redirect(back) // the page has the command beside the device's name
}

// arguments are the operation's, from a form.
func (a action) arguments(id string, get func(string) string) map[string]any {
	args := map[string]any{"assetId": id}
	for _, in := range a.Inputs {
		value := get(in.Name)
		switch {
		case in.Kind == "packages":
			args[in.Name] = strings.Fields(strings.ReplaceAll(value, ",", " "))
		case value != "" || in.Required:
			args[in.Name] = strings.ReplaceAll(value, "\r\n", "\n")
		}
	}
	return args
}

// refused is a fault in the action's words, with the fields at fault.
func (s *Section) refused(v *frame.Visit, a action, err error) frame.Flash {
	f := v.Failed(err)
	for _, in := range a.Inputs {
		for field, wrong := range frame.Fields(err) {
			if field == in.Name || strings.HasPrefix(field, in.Name+"[") {
				f.Text = in.Label + " " + wrong + "."
			}
		}
	}
	f.Text = a.Label + ": " + f.Text
	return f
}

// told says what the service knows of a command that was sent, and no more.
func told(a action, r command.Result) frame.Flash {
	switch r.Status {
	case command.Succeeded.Status():
		if a.Type == command.NotificationMessage {
			return frame.Done("Message: accepted for delivery.")
		}
		return frame.Done(a.Label + ": done.")
	case command.Unconfirmed.Status():
		return frame.Flash{Tone: frame.Warn, Text: a.Label + ": " + frame.Sentence(r.Detail)}
	default:
		return frame.Flash{Tone: frame.Idle, Text: a.Label + ": in progress until the device confirms it."}
	}
}
