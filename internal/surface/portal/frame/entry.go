package frame

import (
	"cmp"
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/command"
)

// Did is what an entry says of its actor, as a verb for its target. A command
// that failed, or whose outcome is not known, is not reported as done.
func Did(e activity.Entry) string {
	area, verb, _ := strings.Cut(string(e.Action), ".")
	if row := command.Type(strings.ToUpper(verb)).Row(); area == "command" && row.Past != "" {
		return tried(e, row.Past, row.Base)
	}
	if e.Action == activity.SignInRefused {
		return tried(e, "signed in as", "sign in as")
	}
	if words, known := did()[e.Action]; known {
		if e.Outcome == activity.Refused || e.Outcome == activity.Failed {
			return "failed: " + words
		}
		return words
	}
	return area + " " + strings.ReplaceAll(verb, "_", " ")
}

// tried is a verb by how the entry ended: "locked", "asked to lock".
func tried(e activity.Entry, past, base string) string {
	switch tone, _ := Ended(e); tone {
	case OK:
		return past
	case Warn:
		return "may have " + past
	case Bad:
		return "tried to " + base
	}
	return "asked to " + base
}

func did() map[activity.Action]string {
	return map[activity.Action]string{
		activity.ProposalMade: "proposed a change of", activity.ProposalApplied: "applied a proposal to",
		activity.ProposalApproved: "approved a proposal to", activity.ProposalDeclined: "declined a proposal to",
		activity.ApprovalVoid:  "ended an approval of a change to",
		activity.PolicyCreated: "created the policy", activity.PolicySaved: "saved the policy", activity.PolicyDeleted: "deleted the policy", activity.PolicyPushAsked: "sent to the platform again the policy",
		activity.SignedIn: "signed in as", activity.IdentityProved: "confirmed their identity as",
		activity.SessionEnded: "ended a session of", activity.UserCreated: "added the user", activity.UserChanged: "changed the user",
		activity.UserInvited: "invited", activity.IdentityLinked: "signed in with the company for the first time:", activity.PasskeyAdded: "added a passkey to", activity.PasskeyRemoved: "removed a passkey of",
		activity.RecoveryRenewed: "renewed the recovery codes of", activity.KeyCreated: "created the API key", activity.KeyRevoked: "revoked the API key",
		activity.ConnectionGranted: "connected", activity.ConnectionChanged: "changed the connection", activity.ConnectionRevoked: "revoked the connection",
		activity.CompanyCreated: "created the company", activity.CompanyChanged: "changed settings of", activity.CompanyConnected: "connected to the platform:",
		activity.CompanyDisconnected: "disconnected from the platform:",
		activity.LooseningAsked:      "asked to loosen a control of", activity.LooseningConfirmed: "confirmed a loosened control of",
		activity.LooseningApplied: "loosened a control of", activity.LooseningCanceled: "canceled the loosening of a control of",
		activity.AuthorizationAsked: "asked a person to authorize a command to", activity.AuthorizationApproved: "authorized a command to",
		activity.AuthorizationDeclined: "declined a command to",
		activity.AuthorizationVoid:     "ended an approval of a command to",
		activity.CompanyStopped:        "stopped changes in", activity.CompanyResumed: "resumed changes in",
		activity.SignInSetUp: "changed company sign-in of", activity.CompanyDomains: "changed the e-mail domains of", activity.AssetsImported: "imported assets", activity.AssetChanged: "changed the asset",
		activity.AssetEnrolled: "enrolled", activity.AssetTakenOver: "replaced the device of", activity.AssetMerged: "merged a device into",
		activity.EnrollmentAsked: "asked to be enrolled again as", activity.EnrollmentConfirmed: "confirmed a new enrollment of",
		activity.EnrollmentDeclined: "declined a new enrollment of",
		activity.AssetEnded:         "ended the management of",
		activity.ProvisioningIssued: "made a QR code for", activity.ProvisioningHanded: "made a USB enrollment for",
	}
}

// Who names an actor as the record has it.
func Who(a access.Actor) string {
	switch a.Kind {
	case access.APIKey:
		return "api-key " + a.Prefix
	case access.Connection:
		return Plain(a.Name) + " (AI)"
	}
	if a.Name == "" {
		return a.ID
	}
	return Plain(a.Name)
}

// ActorIcon is the icon of a sort of actor.
func ActorIcon(k access.Kind) string {
	icons := map[access.Kind]string{access.APIKey: "key-round", access.Connection: "bot", access.User: "user"}
	return cmp.Or(icons[k], "server")
}

// Ended is how an entry ended, and how that is meant: of a command, as it is now.
func Ended(e activity.Entry) (Tone, string) {
	if e.Action.Area() == "command" && e.Outcome == activity.OK {
		switch e.State {
		case "SUCCESS":
			return OK, "Success"
		case "ERROR":
			return Bad, "Error"
		case "UNCONFIRMED":
			return Warn, "Unconfirmed"
		}
		return Idle, "In progress"
	}
	switch e.Outcome {
	case activity.Refused:
		return Bad, "Refused"
	case activity.Failed:
		return Bad, "Failed"
	case activity.Unconfirmed:
		return Warn, "Unconfirmed"
	}
	return OK, "Done"
}

// TargetName is what something was done to, for people.
func TargetName(t activity.Target) string {
	return cmp.Or(Plain(t.Name), t.ID)
}
