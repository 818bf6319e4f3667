package frame

import (
	"github.com/musterhq/muster/internal/approval/attention"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/event"
)

// MailGroup is a group of what people can have mail about.
type MailGroup struct {
	Name  string
	Types []MailType
}

// MailType is one event of mail and its name. Many is where one finds all of what happened.
type MailType struct {
	Type        event.Type
	Label, Many string
}

// MailGroups are all events of mail.
func MailGroups() []MailGroup {
	return []MailGroup{
		{"Decisions that you can make", []MailType{
			{event.ProposalWaiting, "Changes of policies to approve", AttentionPath},
			{attention.AuthorizationWaiting, "Commands to authorize", AttentionPath},
			{event.ControlLoosening, "Controls that another administrator asks to loosen", AttentionPath},
		}},
		{"Devices", []MailType{
			{event.DeviceEnrolled, "Devices enrolled", DevicesPath},
			{attention.EnrollmentWaiting, "Devices that ask to be enrolled again", AttentionPath},
			{event.DeviceSilent, "Devices went silent", DevicesPath + "?status=INACTIVE"},
			{event.DeviceLostMode, "Lost mode began or ended", DevicesPath + "?lost=true"},
			{event.DeviceUnenrolled, "Management of devices ended", ActivityPath},
		}},
		{"Commands", []MailType{
			{event.CommandSucceeded, "Commands succeeded", ActivityPath},
			{event.CommandFailed, "Commands failed", ActivityPath},
			{event.CommandUnconfirmed, "Commands with an unknown outcome", AttentionPath},
			{attention.JobPaused, "Jobs that the service paused", AttentionPath},
		}},
		{"Policies and proposals", []MailType{
			{event.PolicyChanged, "Policies changed", PoliciesPath},
			{event.PolicyFailed, "Changes of policies failed", PoliciesPath},
			{event.ProposalApproved, "Proposals approved", ProposalsPath},
			{event.ProposalDeclined, "Proposals declined", ProposalsPath},
			{event.ProposalApplied, "Proposals applied", ProposalsPath},
			{event.ProposalEnded, "Proposals expired, failed or with an unknown outcome", ProposalsPath},
		}},
		{"API keys and AI clients", []MailType{
			{event.KeyCreated, "API keys created", AccessPath},
			{event.KeyExpiring, "API keys that expire within 7 days", AccessPath},
			{event.KeyRevoked, "API keys revoked", AccessPath},
			{event.ConnectionCreated, "AI clients connected", AccessPath},
		}},
		{"Limits, stop and platform", []MailType{
			{event.LimitReached, "Calls refused by a limit", ControlsPath},
			{event.AutomationStopped, "Changes by API keys and AI clients stopped", ControlsPath},
			{event.AutomationResumed, "Changes by API keys and AI clients resumed", ControlsPath},
			{event.PlatformFailing, "The platform does not answer", PlatformPath},
			{attention.WebhookDisabled, "Webhooks that the service disabled", AttentionPath},
		}},
	}
}

// MailLink is where one finds what happened: the one thing, or all of the type.
func (t MailType) MailLink(n attention.News) string {
	if n.Count == 1 && len(n.Examples) == 1 {
		e := n.Examples[0]
		switch area := t.Type.Area(); {
		case e.AssetID != "" && area == "command":
			return DevicePath(e.AssetID) + "/commands"
		case e.AssetID != "":
			return DevicePath(e.AssetID)
		case e.ProposalID != "" && area == "proposal":
			return ProposalPath(e.ProposalID)
		case e.PolicyID != "":
			return PolicyPath(e.PolicyID)
		}
	}
	return t.Many
}

// MailExample names an event: its device or policy, and for commands and lost mode what it
// was; empty: it has no name.
func MailExample(e attention.Example) string {
	name, what := Plain(e.Name), command.Type(e.Command).Row().Label
	if e.Type == event.DeviceLostMode {
		what = map[string]string{event.On: "on", event.Off: "off"}[e.Status]
	}
	if name == "" || what == "" {
		return name
	}
	return name + " (" + what + ")"
}
