package devices

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/slice"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// action is a command that can be sent to a device.
type action struct{ *command.Row }

// asks reports whether a dialog opens before the command is sent.
func (a action) asks() bool {
	return a.Arguments.Inputs != nil || a.typed() || a.Confirm != command.AtOnce
}

// typed reports whether the person must type the device's name in the dialog.
func (a action) typed() bool { return a.Irreversible || a.Confirm == command.ByName }

// actions are all commands, in the portal's order.
func actions() []action {
	all := slice.Map(command.Catalog(), func(row *command.Row) action { return action{row} })
	slices.SortFunc(all, func(a, b action) int { return cmp.Compare(a.Rank, b.Rank) })
	return all
}

func findAction(operation string) (action, bool) {
	a := slice.First(actions(), func(a action) bool { return a.Operation == operation })
	return a, a.Row != nil
}

// begins is the initial value of an input: what was typed before, or the company's text for lost mode. A password is
// typed again.
func (d device) begins(v *frame.Visit, a action, in operation.Input) string {
	switch {
	case d.again(a) && in.Kind != "password":
		return v.Form.Get(in.Name)
	case a.Type != command.StartLostMode:
		return ""
	}
	c := v.Company.Lost
	return map[string]string{"message": c.Message, "phoneNumber": c.PhoneNumber, "organization": c.Organization}[in.Name]
}

// again reports whether the action's dialog was posted and is shown again.
func (d device) again(a action) bool { return d.Again == a.Operation }

// needs are the rights that a user must have for the action.
func (a action) needs() account.Right {
	switch {
	case a.Destructive:
		return account.DestroyDevices
	case a.NamesPolicy:
		return account.CommandDevices | account.ViewPolicies
	default:
		return account.CommandDevices
	}
}

// barred says why the person cannot send the command to the device; empty if they can. The
// operation checks all of it again when the command is sent.
func (s *Section) barred(v *frame.Visit, a action, d asset.Asset) string {
	if !v.May(a.needs()) {
		return v.Missing(a.needs())
	}
	if d.Status == asset.Deleted {
		return "This device is no longer managed."
	}
	if _, word := statusOf(d.Status); !d.Status.Enrolled() {
		return "This device is not enrolled: its status is " + word + "."
	}
	if err := command.Eligible(a.Type, d, s.Companions); err != nil {
		return frame.Sentence(strings.ReplaceAll(fault.From(err).Detail, string(a.Type), "“"+a.Label+"”"))
	}
	return ""
}

// destroys reports whether the command of the request is destructive. frame.Proof then asks the
// person to prove who they are, so that an open session is not enough.
func destroys(v *frame.Visit) (bool, error) {
	a, ok := findAction(v.PathValue("operation"))
	return ok && a.Destructive, nil
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
	if name := (device{Asset: d}).name(); a.typed() && !policy.SameName(v.Form.Get("confirm"), name) {
		return s.again(v, d, a, frame.Flash{Tone: frame.Bad, Text: "Nothing was sent: the name that you typed is not “" + name + "”."})
	}
	return s.send(v, d, a)
}

// send sends what the form asks for, and leads to the page that shows what became of it.
func (s *Section) send(v *frame.Visit, d asset.Asset, a action) error {
	result, err := v.Run(a.Operation, a.arguments(d.ID, v.Form.Get), v.Form.Get(frame.OnceField))
	back := device{Asset: d, Desk: fromDesk(v)}.home()
	switch {
	case fault.CodeOf(err) == fault.Provider: // it was sent, and the page shows that it failed
		return v.Redirect(back, refused(v, a.Label, a.Arguments.Inputs, err))
	case err != nil:
		return s.again(v, d, a, refused(v, a.Label, a.Arguments.Inputs, err))
	}
	if r := result.(command.Result); r.Status == command.Unconfirmed.Status() {
		return v.Redirect(back, frame.Flash{Tone: frame.Warn, Text: a.Label + ": " + frame.Sentence(r.Detail)})
	}
	return v.Redirect(back) // without a message: the page shows the command's status
}

// fromDesk reports whether the form was posted from the help desk.
func fromDesk(v *frame.Visit) bool { return v.Form.Get(deskField) != "" }

// home is the page that the device's forms lead back to.
func (d device) home() string {
	return frame.Either(d.Desk, frame.HelpDeskDevicePath(d.ID), frame.DevicePath(d.ID))
}

// again shows the page with the action's dialog as the person filled it in, and why nothing was sent.
func (s *Section) again(v *frame.Visit, a asset.Asset, act action, why frame.Flash) error {
	shown := device{Asset: a, Again: act.Operation, Refused: why, Desk: fromDesk(v)}
	var err error
	if shown.standing, err = s.stands(v, a); err != nil {
		return err
	}
	hasDialog := act.asks()
	if shown.Desk {
		hasDialog = slices.ContainsFunc(deskDialogs(), func(o action) bool { return o.Operation == act.Operation })
	}
	switch {
	case !hasDialog || s.barred(v, act, a) != "": // the page has no dialog of it, or none any more
		return v.Redirect(shown.home(), why)
	case shown.Desk:
		return s.showDesk(v, http.StatusUnprocessableEntity, desk{}, &shown)
	}
	return s.show(v, http.StatusUnprocessableEntity, shown)
}

// arguments builds the operation's arguments from a form. A list is separated by commas or spaces.
func (a action) arguments(id string, get func(string) string) map[string]any {
	args := map[string]any{"assetId": id}
	for _, in := range a.Arguments.Inputs {
		value := get(in.Name)
		switch {
		case in.Kind == "list":
			args[in.Name] = strings.Fields(strings.ReplaceAll(value, ",", " "))
		case value != "" || in.Required:
			args[in.Name] = strings.ReplaceAll(value, "\r\n", "\n")
		}
	}
	return args
}

// refused is the flash of an action that failed with err. If inputs are at fault, the text names
// the last one by its label.
func refused(v *frame.Visit, label string, inputs []operation.Input, err error) frame.Flash {
	f, messages := v.Failed(err), frame.Fields(err)
	for _, in := range inputs {
		for _, field := range slices.Sorted(maps.Keys(messages)) {
			if field == in.Name || strings.HasPrefix(field, in.Name+"[") {
				f.Text = in.Label + " " + messages[field] + "."
			}
		}
	}
	f.Text = label + ": " + f.Text
	return f
}
