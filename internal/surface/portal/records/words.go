package records

import (
	"net/url"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// Did is what an entry's actor did, as a verb for its target.
func Did(a activity.Action) string {
	if words, known := did()[a]; known {
		return words
	}
	area, verb, _ := strings.Cut(string(a), ".")
	return area + " " + strings.ReplaceAll(verb, "_", " ")
}

func did() map[activity.Action]string {
	return map[activity.Action]string{
		"command.lock": "locked", "command.start_lost_mode": "put into lost mode", "command.stop_lost_mode": "ended lost mode on",
		"command.notification_message": "sent a message to", "command.status_report": "asked for a status report from",
		"command.location_update": "asked for the location of", "command.sync_policy": "resent the policy to", "command.reboot": "restarted",
		"command.shutdown": "shut down", "command.launch_app": "launched an app on", "command.clear_app_data": "cleared app data on",
		"command.change_policy": "moved to another policy", "command.wipe_company_data": "wiped", "command.reset_screen_lock": "reset the screen lock of",
		"command.change_screen_lock_password": "changed the screen lock password of", "command.relinquish_ownership": "relinquished",
		activity.ProposalMade: "proposed a change of", activity.ProposalApplied: "applied a proposal to",
		activity.PolicyCreated: "created the policy", activity.PolicySaved: "saved the policy", activity.PolicyDeleted: "deleted the policy",
		activity.SignedIn: "signed in as", activity.SignInRefused: "was refused sign-in as", activity.IdentityProved: "proved their identity as",
		activity.SessionEnded: "ended a session of", activity.UserCreated: "added the user", activity.UserChanged: "changed the user",
		activity.UserInvited: "invited", activity.PasskeyAdded: "added a passkey to", activity.PasskeyRemoved: "removed a passkey of",
		activity.RecoveryRenewed: "renewed the recovery codes of", activity.KeyCreated: "created the API key", activity.KeyRevoked: "revoked the API key",
		activity.ConnectionGranted: "connected", activity.ConnectionChanged: "changed the connection", activity.ConnectionRevoked: "revoked the connection",
		activity.CompanyCreated: "created the company", activity.CompanyChanged: "changed settings of", activity.CompanyConnected: "connected to the platform:",
		activity.SignInSetUp: "changed company sign-in of", activity.AssetsImported: "imported assets", activity.AssetChanged: "changed the asset",
		activity.ProvisioningIssued: "made a QR code for", activity.ProvisioningHanded: "made a USB enrolment for",
	}
}

// Who names an actor as the record has it.
func Who(a access.Actor) string {
	switch a.Kind {
	case access.APIKey:
		return "api-key " + a.Prefix
	case access.Connection:
		return a.Name + " (AI)"
	}
	if a.Name == "" {
		return a.ID
	}
	return a.Name
}

func kindWord(k access.Kind) string {
	switch k {
	case access.APIKey:
		return "API keys"
	case access.Connection:
		return "AI connections"
	case access.User:
		return "People"
	}
	return "Muster and its operator"
}

func iconOf(k access.Kind) string {
	switch k {
	case access.APIKey:
		return "key-round"
	case access.Connection:
		return "bot"
	case access.User:
		return "user"
	}
	return "server"
}

func areaWord(area string) string {
	words := map[string]string{"command": "Commands", "proposal": "Proposals", "policy": "Policies", "provisioning": "Enrolment codes",
		"signin": "Sign-ins", "user": "Users", "key": "API keys", "connection": "Connections", "company": "Settings", "asset": "Assets"}
	return words[area]
}

// outcome is how an entry ended, and how that is meant: of a command, as it is now.
func outcome(e activity.Entry) (frame.Tone, string) {
	if e.Action.Area() == "command" && e.Outcome == activity.OK {
		switch e.State {
		case "SUCCESS":
			return frame.OK, "Success"
		case "ERROR":
			return frame.Bad, "Error"
		case "UNCONFIRMED":
			return frame.Warn, "Unconfirmed"
		}
		return frame.Idle, "In progress"
	}
	switch e.Outcome {
	case activity.Refused:
		return frame.Bad, "Refused"
	case activity.Failed:
		return frame.Bad, "Failed"
	case activity.Unconfirmed:
		return frame.Warn, "Unconfirmed"
	}
	return frame.OK, "Done"
}

// link is the page of what an entry is about; empty: it has none.
func link(t activity.Target) string {
	switch t.Kind {
	case activity.Asset:
		return frame.DevicePath(t.ID)
	case activity.Policy:
		return frame.PolicyPath(t.ID)
	case activity.User:
		return frame.UsersPath + "/" + url.PathEscape(t.ID)
	case activity.Key, activity.Connection:
		return frame.AccessPath
	case activity.Company:
		return frame.SettingsPath
	}
	return ""
}

func targetName(t activity.Target) string {
	if t.Name == "" {
		return t.ID
	}
	return t.Name
}

func actorKinds() []access.Kind {
	return []access.Kind{access.User, access.APIKey, access.Connection, access.System}
}

func outcomeWord(o activity.Outcome) string {
	words := map[activity.Outcome]string{activity.OK: "Done or accepted", activity.Refused: "Refused", activity.Failed: "Failed", activity.Unconfirmed: "Unconfirmed"}
	return words[o]
}

func actorOptions() (all []option) {
	for _, k := range actorKinds() {
		all = append(all, option{string(k), kindWord(k)})
	}
	return all
}

func areaOptions() (all []option) {
	for _, a := range activity.Areas() {
		all = append(all, option{a, areaWord(a)})
	}
	return all
}

func outcomeOptions() (all []option) {
	for _, o := range activity.Outcomes() {
		all = append(all, option{string(o), outcomeWord(o)})
	}
	return all
}

// rangeOptions begin with the time that a bar of the histogram chose, if one did.
func rangeOptions(p view) []option {
	if p.Query.Get("from") != "" {
		return append([]option{{"", "As chosen"}}, spans()...)
	}
	return spans()
}

func barLabel(b bar) string {
	return frame.Count(b.Count, "entry", "entries") + " from " + b.From.Format("2 Jan 15:04") + " to " + b.To.Format("2 Jan 15:04 UTC")
}

// height is a bar's, of 80; what is there is seen.
func height(b bar, most int64) int64 { return max(3, b.Count*78/max(1, most)) }
