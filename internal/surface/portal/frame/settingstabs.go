package frame

import (
	"net/url"

	"github.com/musterhq/muster/internal/account"
)

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
	all := []Tab{{Path: SettingsPath, Name: "General"}}
	if v.May(account.ManageCompany) {
		all = append(all, Tab{Path: CompanySignInPath, Name: "Company sign-in"}, Tab{Path: PlatformPath, Name: "Platform"},
			Tab{Path: UpdatesPath, Name: "Agent updates"},
			Tab{Path: WebhooksPath, Name: "Webhooks"}, Tab{Path: SystemPath, Name: "System"})
	}
	if v.May(account.ManageUsers) {
		all = append(all, Tab{Path: UsersPath, Name: "Users"})
	}
	all = append(all, Tab{Path: SetupPath, Name: "Setup"})
	for i := range all {
		all[i].Current = all[i].Path == current
	}
	return all
}
