package activity

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// words are those of an action whose sentence needs no change: a verb in the past and as it
// is called, and what stands before the target.
type words struct {
	action            Action
	past, base, words string
}

func plainWords() []words {
	return []words{
		{PolicyCreated, "created", "create", " the policy"}, {PolicySaved, "saved", "save", " the policy"},
		{PolicyDeleted, "deleted", "delete", " the policy"},
		{PolicyPushAsked, "sent", "send", " to the platform again the policy"},
		{SignedIn, "signed in", "sign in", " as"}, {SignInRefused, "signed in", "sign in", " as"},
		{IdentityProved, "confirmed", "confirm", " their identity as"}, {SessionEnded, "ended", "end", " a session of"},
		{UserCreated, "added", "add", " the user"}, {UserChanged, "changed", "change", " the user"}, {UserInvited, "invited", "invite", ""},
		{UserDeleted, "deleted", "delete", " the user"}, {IdentityLinked, "linked", "link", " an account of the company's provider to"},
		{PasskeyAdded, "added", "add", " a passkey to"}, {PasskeyRemoved, "removed", "remove", " a passkey of"},
		{RecoveryRenewed, "renewed", "renew", " the recovery codes of"},
		{KeyCreated, "created", "create", " the API key"}, {KeyRevoked, "revoked", "revoke", " the API key"},
		{ConnectionGranted, "connected", "connect", ""}, {ConnectionChanged, "changed", "change", " the connection"},
		{ConnectionRevoked, "revoked", "revoke", " the connection"},
		{CompanyCreated, "created", "create", " the company"}, {CompanyConnected, "connected", "connect", " to the platform:"},
		{CompanyDisconnected, "disconnected", "disconnect", " from the platform:"}, {CompanyChanged, "changed", "change", ""},
		{RetentionAnnounced, "announced", "announce", " the deletion of old commands and places of"},
		{RetentionApplied, "deleted", "delete", " old commands and places of"},
		{ChainRestarted, "restarted", "restart", " the chain of this log of"},
		{AssetsImported, "imported", "import", ""}, {AssetChanged, "changed", "change", " the asset"},
		{AssetEnrolled, "enrolled", "enroll", ""},
		{AssetTakenOver, "replaced", "replace", " the device of"}, {AssetMerged, "merged", "merge", " a device into"},
		{AssetArchived, "archived", "archive", ""}, {AssetRestored, "restored", "restore", ""},
		{AssetDeleted, "deleted", "delete", " the asset"},
		{JobCreated, "created", "create", " the job"}, {JobPaused, "paused", "pause", " the job"},
		{JobResumed, "resumed", "resume", " the job"},
		{JobCanceled, "canceled", "cancel", " the job"}, {JobEnded, "finished", "finish", " the job"},
		{WebhookCreated, "created", "create", " the webhook to"}, {WebhookRotated, "replaced", "replace", " the secret of the webhook to"},
		{WebhookFinished, "ended", "end", " the old secret of the webhook to"},
		{WebhookReplayed, "repeated", "repeat", " events for the webhook to"},
		{WebhookDisabled, "disabled", "disable", " the webhook to"}, {WebhookEnabled, "enabled", "enable", " the webhook to"},
		{WebhookMissed, "deleted", "delete", " events before they were sent to"}, {WebhookDeleted, "deleted", "delete", " the webhook to"},
		{EnrollmentAsked, "asked", "ask", " to be enrolled again as"},
		{EnrollmentConfirmed, "confirmed", "confirm", " a new enrollment of"},
		{EnrollmentDeclined, "declined", "decline", " a new enrollment of"}, {AssetEnded, "ended", "end", " the management of"},
		{ProvisioningIssued, "made", "make", " a QR code for"}, {ProvisioningRevoked, "revoked", "revoke", " a code for"},
		{ProvisioningHanded, "made", "make", " a USB enrollment for"},
	}
}

// authorizationClause says what a person is asked about, and for which caller.
func (e Entry) authorizationClause(verbs Verbs) clause {
	_, _, noun := verbs(e.after("command"))
	noun = cmp.Or(noun, "a command to")
	var c clause
	switch e.Action {
	case AuthorizationApproved:
		c = does("authorized", "authorize", noun)
	case AuthorizationDeclined:
		c = does("declined", "decline", noun)
	case AuthorizationVoid:
		c = does("found", "find", "no longer valid: the authorization of "+noun)
	default:
		return does("asked", "ask", "a person to authorize "+noun).name(e.target())
	}
	c = c.name(e.target())
	if caller := e.after("caller"); caller != "" {
		c = c.words(" for").name(caller)
	}
	return c
}

// proposalClause names what a proposal changes.
func (e Entry) proposalClause() clause {
	if e.Action == ApprovalVoid {
		return e.changed(does("found", "find", "no longer valid: the approval of "))
	}
	words := map[Action][2]string{ProposalMade: {"proposed", "propose"}, ProposalApplied: {"applied", "apply"},
		ProposalApproved: {"approved", "approve"}, ProposalDeclined: {"declined", "decline"}}[e.Action]
	return e.changed(does(words[0], words[1], ""))
}

// changed says which settings of which policy: one with its values, several by number.
func (e Entry) changed(c clause) clause {
	fields := slices.DeleteFunc(slices.Clone(e.Changes), func(c Change) bool { return c.Field == "outcome" })
	switch len(fields) {
	case 0:
		return c.words("a change of").name(e.target())
	case 1:
		c = c.words("the change of " + fields[0].Field + " of").name(e.target())
		if fields[0].Field == "Name" {
			return c.words(" from").name(fields[0].Before).words(" to").name(fields[0].After)
		}
		return c.words(" from " + value(fields[0].Before) + " to " + value(fields[0].After))
	case 2:
		return c.words("the changes of " + fields[0].Field + " and " + fields[1].Field + " of").name(e.target())
	}
	return c.words("changes of " + strconv.Itoa(len(fields)) + " settings of").name(e.target())
}

// value is a setting's value as a phrase: NOT_SET is Not set.
func value(text string) string {
	if text == "" {
		return "nothing"
	}
	if strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") != "" {
		return text
	}
	text = strings.ToLower(strings.ReplaceAll(text, "_", " "))
	return strings.ToUpper(text[:1]) + text[1:]
}

// userClauses are what changed about a user.
func (e Entry) userClauses() (all []clause) {
	for _, f := range e.Changes {
		c := clause{past: "changed", base: "change"}
		switch f.Field {
		case "role":
			all = append(all, c.words(" the role of").name(e.target()).words(" from "+value(f.Before)+" to "+value(f.After)))
		case "rights":
			all = append(all, e.rightsClause(strings.Fields(f.Before), strings.Fields(f.After)))
		case "disabled":
			c = does("enabled", "enable", "the user")
			if f.After == "on" {
				c = does("disabled", "disable", "the user")
			}
			all = append(all, c.name(e.target()))
		case "name":
			all = append(all, does("renamed", "rename", "the user").name(f.Before).words(" to").name(f.After))
		case "email":
			all = append(all, c.words(" the e-mail address of").name(f.Before).words(" to").name(f.After))
		case "policies":
			all = append(all, c.words(" the policies that").name(e.target()).words(" may see"))
		case "mail":
			all = append(all, c.words(" which mail").name(e.target()).words(" gets"))
		case "password":
			all = append(all, c.words(" the password of").name(e.target()))
		}
	}
	return all
}

func (e Entry) rightsClause(before, after []string) clause {
	more := func(a, b []string) bool {
		return slices.ContainsFunc(b, func(right string) bool { return !slices.Contains(a, right) })
	}
	gained, lost := more(before, after), more(after, before)
	switch {
	case gained && !lost:
		return clause{past: "gave", base: "give"}.name(e.target()).words(" more rights")
	case lost && !gained:
		return does("took", "take", "rights from").name(e.target())
	}
	return does("changed", "change", "the rights of").name(e.target())
}

// connectionClauses are what changed about a connection.
func (e Entry) connectionClauses() (all []clause) {
	for _, f := range e.Changes {
		switch f.Field {
		case "scopes":
			all = append(all, e.rightsClause(strings.Fields(f.Before), strings.Fields(f.After)))
		case "frozen":
			c := does("unfroze", "unfreeze", "the connection")
			if f.After == "on" {
				c = does("froze", "freeze", "the connection")
			}
			all = append(all, c.name(e.target()))
		}
	}
	return all
}
