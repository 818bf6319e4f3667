package frame

import "github.com/musterhq/muster/internal/account"

// The pages of the settings.
const (
	CompanySignInPath = SettingsPath + "/signin"
	PlatformPath      = SettingsPath + "/platform"
	UpdatesPath       = SettingsPath + "/updates"
	SystemPath        = SettingsPath + "/system"
)

// SettingsTabs are the pages of the settings that the person may open.
func SettingsTabs(v *Visit, current string) []Tab {
	all := []Tab{{Path: SettingsPath, Name: "General"}}
	if v.May(account.ManageCompany) {
		all = append(all, Tab{Path: CompanySignInPath, Name: "Company sign-in"}, Tab{Path: PlatformPath, Name: "Platform"}, Tab{Path: UpdatesPath, Name: "Agent updates"}, Tab{Path: SystemPath, Name: "System"})
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
