package shell_test

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/agent/shell"
	"github.com/musterhq/muster/internal/policy"
)

var update = flag.Bool("update", false, "write the tables of docs/aosp.md again")

const page = "../../../docs/aosp.md"

// The tables of docs/aosp.md list the rules of shell.Table and the rows of commandRows.
func TestTables_Golden(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	for name, table := range map[string]string{"settings": settingsTable(), "commands": commandsTable()} {
		got = replaceTable(t, got, name, table)
	}
	if got == string(text) {
		return
	}
	if !*update {
		t.Fatal("docs/aosp.md does not show what the code does: run go test ./internal/agent/shell -run Golden -update and look " +
			"at the diff")
	}
	if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Each setting of the catalog has a rule, in the catalog's order; the last rule is that of systemUpdate.
func TestTable_EverySetting(t *testing.T) {
	t.Parallel()
	settings, rows := append(policy.SettingIDs(), policy.SystemUpdateID), shell.Table()
	if len(settings) != len(rows) {
		t.Fatalf("the catalog has %d settings with systemUpdate, internal/agent/shell/rules.go has %d rules", len(settings), len(rows))
	}
	for i, id := range settings {
		if got := rows[i].Setting; got != id {
			t.Errorf("rule %d is %s, want %s", i, got, id)
		}
	}
}

// replaceTable returns the page with the table between the two comments that name it.
func replaceTable(t *testing.T, text, name, table string) string {
	t.Helper()
	begin, end := "<!-- "+name+": written by a test -->\n", "<!-- end of "+name+" -->"
	head, rest, ok := strings.Cut(text, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("docs/aosp.md has no place for the table of %s", name)
	}
	return head + begin + table + end + tail
}

// notes are what people write about settings in the table, beside what the rules say.
var notes = map[string]string{
	"VENDOR_STORE_MODE":         "There is no vendor's store to steer: WHITELIST means that what is installed stays as it is.",
	"DEFAULT_PERMISSION_POLICY": "No command line sets it.",
	"APP_AUTO_UPDATE_POLICY":    "Other stores cannot be steered.",
	"UNTRUSTED_APPS_POLICY":     "There is no personal profile: both values mean the same.",
	"VENDOR_PROTECT":            "`unsupported` where no app verifies packages (`cmd package query-receivers`).",
	"SCREEN_CAPTURE":            "No command line sets it.",
	"CAMERA":                    "The passthrough cameras of headsets are usually not covered.",
	"FACTORY_RESET":             "Does not block the recovery menu.",
	"DEVELOPER_SETTINGS":        "Ends every adb session; taking it back does not switch adb on.",
	"LOCATION_SHARING":          "BLOCK switches location off, and is refused beside LOCATION_MODE ENFORCED.",
	"BLUETOOTH":                 "BLOCK is refused on headsets, whose controllers are Bluetooth.",
	"CONFIGURE_WIFI":            "Under the lock-out guard.",
	"MINIMUM_WIFI_SECURITY":     "No command line sets it.",
	"ENCRYPTION_POLICY":         "Modern Android is always encrypted: read, not set. A password can only be demanded by a device owner.",
	"SYSTEM_UPDATE":             "The policy's `systemUpdate`. No command line sets it: the image's own updater decides.",
	"LOCATION_MODE":             "An agent started over USB switches it, and cannot hold it.",
	"WIFI_STATE": "Below API 33 it is switched and not held. DISABLED is refused where Wi-Fi is the only way out. " +
		"Under the lock-out guard.",
	"AIRPLANE_MODE": "Under the lock-out guard.",
}

func settingsTable() string {
	var b strings.Builder
	b.WriteString("| setting | API | who | how | simulated | transcript | hardware |\n|---|---|---|---|---|---|---|\n")
	for _, r := range shell.Table() {
		how := r.How
		if note := notes[r.Setting]; note != "" {
			how += ". " + note
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | – | – |\n", r.Setting, apiLevel(r.SDK), r.Who,
			strings.TrimSuffix(how, "."), simulated(r.Who))
	}
	return b.String()
}

// simulated says how the simulated device tests a setting. It refuses what only a device owner, or no
// agent, can set.
func simulated(who string) string {
	if who == "owner" || who == "none" {
		return "refusal"
	}
	return "yes"
}

func commandsTable() string {
	var b strings.Builder
	b.WriteString("| command | API | who | how | proof | simulated | transcript | hardware |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range commandRows() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | yes | – | – |\n", r.command, apiLevel(r.sdk), r.who, r.how, r.proof)
	}
	return b.String()
}

// apiLevel is the lowest Android API level; 0: any.
func apiLevel(sdk int) string {
	if sdk == 0 {
		return "any"
	}
	return strconv.Itoa(sdk)
}

// commandRow is one line of the table of commands.
type commandRow struct {
	command string
	sdk     int    // the lowest Android API level; 0: any
	how     string // the command lines that the agent runs
	who     string // the form of the agent that can run them, as docs/aosp.md explains
	proof   string // by what the agent knows that the command had its effect
}

// commandRows describes each command that agents support. People write the descriptions: no test
// compares them with the code that runs the commands.
func commandRows() []commandRow {
	return []commandRow{
		{"NOTIFICATION_MESSAGE", shell.NotificationSDK, "`cmd notification post -S bigtext -t TITLE ID BODY`", "lab",
			"the tool's end; the id is the tag, a second delivery replaces the first"},
		{"STATUS_REPORT", 0, "`getprop`, `dumpsys battery`, `settings get`, `wm`, `df`, `pm list packages`, `/proc`, `/sys/class/thermal`",
			"lab", "the report"},
		{"LOCATION_UPDATE", 0, "`dumpsys location` and `/proc/uptime`: the last known place, with the time at which it was fixed", "lab",
			"the report, its outcome tells the age; else `NO_FIX`"},
		{"SYNC_POLICY", 0, "the settings above, each again", "agent", "the policy report"},
		{"CHANGE_POLICY", 0, "the settings above", "agent", "the policy report with the new version"},
		{"REBOOT", 0, "`svc power reboot`, else `reboot`", "lab", "another boot id"},
		{"SHUTDOWN", 0, "`svc power shutdown`, else `reboot -p`", "lab", "another boot id, at the next start"},
		{"LAUNCH_APP", shell.LaunchSDK, "`pm path`, `cmd package resolve-activity --brief`, `am start -n`", "lab",
			"the tools' words; else `NOT_INSTALLED`"},
		{"WIPE_COMPANY_DATA", 0, "`am broadcast … FACTORY_RESET`, else, or after two minutes without effect, `--wipe_data` for the " +
			"recovery; again at every contact while the device is still there", "system",
			"never the tools' words. The service: fifteen minutes of silence after the device set out"},
		{"UPLOAD_LOG", 0, "the file `log` of the state directory, without secrets", "agent", "the service has the log"},
		{"RELINQUISH_OWNERSHIP", 0, "every setting taken back, `setprop persist.muster.enrolled 0`", "agent",
			"acknowledged before the key is destroyed"},
	}
}
