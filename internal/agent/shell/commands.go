package shell

// CommandRow is one line of the table of what commands take, for people.
type CommandRow struct {
	Command string
	SDK     int // 0: any
	How     string
	Who     string // lab: also an agent started over USB; system: only a daemon; agent: the agent itself
	Proof   string // by what the agent knows that it happened
}

// Commands returns what each command that agents take comes down to.
func Commands() []CommandRow {
	return []CommandRow{
		{"NOTIFICATION_MESSAGE", notificationSDK, "`cmd notification post -S bigtext -t TITLE ID BODY`", "lab", "the tool's end; the id is the tag, a second delivery replaces the first"},
		{"STATUS_REPORT", 0, "`getprop`, `dumpsys battery`, `settings get`, `wm`, `df`, `pm list packages`, `/proc`, `/sys/class/thermal`", "lab", "the report"},
		{"LOCATION_UPDATE", 0, "`dumpsys location` and `/proc/uptime`: the last known place, with the time at which it was fixed", "lab", "the report, its outcome tells the age; else `NO_FIX`"},
		{"SYNC_POLICY", 0, "the settings above, each again", "agent", "the policy report"},
		{"CHANGE_POLICY", 0, "the settings above", "agent", "the policy report with the new version"},
		{"REBOOT", 0, "`svc power reboot`, else `reboot`", "lab", "another boot id"},
		{"SHUTDOWN", 0, "`svc power shutdown`, else `reboot -p`", "lab", "another boot id, at the next start"},
		{"LAUNCH_APP", launchSDK, "`pm path`, `cmd package resolve-activity --brief`, `am start -n`", "lab", "the tools' words; else `NOT_INSTALLED`"},
		{"WIPE_COMPANY_DATA", 0, "`am broadcast … FACTORY_RESET`, else, or after two minutes without effect, `--wipe_data` for the recovery; again at every contact while the device is still there", "system", "never the tools' words. The service: fifteen minutes of silence after the device set out"},
		{"RELINQUISH_OWNERSHIP", 0, "every setting taken back, `setprop persist.muster.enrolled 0`", "agent", "acknowledged before the key is destroyed"},
	}
}
