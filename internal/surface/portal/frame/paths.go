package frame

import (
	"net/url"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
)

// Where things are. Deep links come from everywhere, also from outside (the
// contract's portalUrl), so they are all here.
const (
	OverviewPath  = "/"
	DevicesPath   = "/devices"
	PoliciesPath  = "/policies" // portalUrl of contract 2.6 and 2.7: /policies/<policy_id>
	ProposalsPath = "/proposals"
	ApprovalsPath = "/approvals" // approvalUrl: /approvals/<proposal_id>
	EnrollPath    = "/enrol"
	AccessPath    = "/access"
	ControlsPath  = "/access/controls"
	ActivityPath  = "/activity"
	SettingsPath  = "/settings"
	UsersPath     = "/users"
	AccountPath   = "/account"
	SetupPath     = "/setup"
	LivePath      = "/live"
	SearchPath    = "/search"

	AttentionPath      = "/needs-you"
	AttentionCountPath = "/needs-you/count"

	ImportPath       = "/devices/import"
	OpenCommandsPath = "/commands"
	LostDevicesPath  = "/lost"
	JobsPath         = "/jobs"
	HelpDeskPath     = "/helpdesk"
)

// A command is late after an hour, and people are reminded of it for a month.
const (
	OverdueAfter = time.Hour
	LateFor      = 30 * 24 * time.Hour
)

// DevicePath is an asset's page.
func DevicePath(id string) string { return DevicesPath + "/" + url.PathEscape(id) }

// JobPath is a job's page.
func JobPath(id string) string { return JobsPath + "/" + url.PathEscape(id) }

// PolicyPath is a policy's page.
func PolicyPath(id string) string { return PoliciesPath + "/" + url.PathEscape(id) }

// ProposalPath is a proposal's page.
func ProposalPath(id string) string { return ProposalsPath + "/" + url.PathEscape(id) }

// ApprovalPath is where a person approves a proposal.
func ApprovalPath(id string) string { return ApprovalsPath + "/" + url.PathEscape(id) }

// Section is an entry of the navigation.
type Section struct {
	Path, Name, Icon string
	Key              string // pressed after g
	Needs            account.Right
}

// About is the page of what an event happened to; empty: there is none, or the person may
// not open it.
func About(v *Visit, t activity.Target) string {
	switch {
	case t.Kind == activity.Asset && v.May(account.ViewDevices):
		return DevicePath(t.ID)
	case t.Kind == activity.Job && v.May(account.ViewDevices):
		return JobPath(t.ID)
	case t.Kind == activity.Policy && v.May(account.ViewPolicies):
		return PolicyPath(t.ID)
	case t.Kind == activity.User && v.May(account.ManageUsers):
		return UsersPath + "/" + url.PathEscape(t.ID)
	case t.Kind == activity.Key, t.Kind == activity.Connection:
		return AccessPath
	case t.Kind == activity.Webhook && v.May(ManageAll):
		return WebhooksPath
	case t.Kind == activity.Company:
		return SettingsPath
	}
	return ""
}

// HelpDeskDevicePath is a device's card on the help desk.
func HelpDeskDevicePath(id string) string { return HelpDeskPath + "?id=" + url.QueryEscape(id) }

// Rights that pages about all of the company's devices need.
const (
	ImportDevices = account.ViewDevices | account.CommandDevices | account.AllPolicies
	ManageAll     = account.ManageCompany | account.AllPolicies
)

// Sections are the navigation, at most nine.
func Sections() []Section {
	return []Section{
		{OverviewPath, "Overview", "layout-dashboard", "o", 0},
		{DevicesPath, "Devices", "smartphone", "d", account.ViewDevices},
		{HelpDeskPath, "Help desk", "headset", "h", account.ViewDevices},
		{PoliciesPath, "Policies", "shield-check", "p", account.ViewPolicies},
		{ProposalsPath, "Proposals", "git-pull-request", "r", account.EditPolicies},
		{EnrollPath, "Enroll", "qr-code", "e", account.ProvisionDevices},
		{AccessPath, "AI access & keys", "key-round", "k", 0},
		{ActivityPath, "Activity", "activity", "a", account.ViewActivity},
		{SettingsPath, "Settings", "settings", "s", 0},
	}
}

// commonTasks are what people look for by name, beside the navigation.
func commonTasks() []Section {
	return []Section{
		{Path: AttentionPath, Name: "Needs you: what waits for a decision", Icon: "circle-check"},
		{Path: DevicesPath + "?seenBefore=24h", Name: "Devices silent for 24 h", Icon: "smartphone", Needs: account.ViewDevices},
		{Path: "/authorizations", Name: "Commands to authorize", Icon: "shield-check", Needs: account.ViewDevices},
		{Path: LostDevicesPath, Name: "Devices to enroll again", Icon: "smartphone", Needs: account.ViewDevices | account.ProvisionDevices},
		{Path: JobsPath, Name: "Jobs: one thing for many devices", Icon: "list-checks", Needs: account.ViewDevices},
		{Path: ImportPath, Name: "Import devices from a CSV file", Icon: "file-down", Needs: ImportDevices},
		{Path: OpenCommandsPath, Name: "Open commands", Icon: "terminal", Needs: account.ViewDevices},
		{Path: ProposalsPath + "?waiting=1", Name: "Proposals not applied yet", Icon: "git-pull-request", Needs: account.EditPolicies},
		{Path: DevicesPath + "?lost=true", Name: "Devices in lost mode", Icon: "map-pin-off", Needs: account.ViewDevices},
		{Path: ControlsPath, Name: "Limits, approval and stop", Icon: "shield-check", Needs: account.ManageCompany},
		{Path: AccessPath + "/keys/new", Name: "New API key", Icon: "key-round", Needs: account.ManageKeys},
		{Path: UsersPath, Name: "Users", Icon: "user", Needs: account.ManageUsers},
		{Path: UsersPath + "/new", Name: "Invite a user", Icon: "user", Needs: account.ManageUsers},
		{Path: CompanySignInPath, Name: "Company sign-in", Icon: "key-round", Needs: account.ManageCompany},
		{Path: PlatformPath, Name: "Connection to the platform", Icon: "link", Needs: account.ManageCompany},
		{Path: WebhooksPath, Name: "Webhooks: send events to a system of yours", Icon: "send", Needs: ManageAll},
		{Path: SystemPath, Name: "System: state of this service", Icon: "server", Needs: account.ManageCompany},
		{Path: SetupPath, Name: "Setup checklist", Icon: "circle-check"},
		{Path: AccountPath, Name: "Your account, passkeys and sessions", Icon: "user"},
	}
}

// The pages of the settings.
const (
	CompanySignInPath = SettingsPath + "/signin"
	PlatformPath      = SettingsPath + "/platform"
	UpdatesPath       = SettingsPath + "/updates"
	WebhooksPath      = SettingsPath + "/webhooks"
	SystemPath        = SettingsPath + "/system"
)

// WebhookPath is a webhook's page.
func WebhookPath(id string) string { return WebhooksPath + "/" + url.PathEscape(id) }

// SettingsTabs are the pages of the settings that the person may open.
func SettingsTabs(v *Visit, current string) []Tab {
	var all []Tab
	for _, s := range []Section{
		{Path: SettingsPath, Name: "General"},
		{Path: CompanySignInPath, Name: "Company sign-in", Needs: account.ManageCompany},
		{Path: PlatformPath, Name: "Platform", Needs: account.ManageCompany},
		{Path: UpdatesPath, Name: "Agent updates", Needs: ManageAll},
		{Path: WebhooksPath, Name: "Webhooks", Needs: ManageAll},
		{Path: SystemPath, Name: "System", Needs: account.ManageCompany},
		{Path: UsersPath, Name: "Users", Needs: account.ManageUsers},
		{Path: SetupPath, Name: "Setup"},
	} {
		if v.May(s.Needs) {
			all = append(all, Tab{Path: s.Path, Name: s.Name, Current: s.Path == current})
		}
	}
	return all
}
