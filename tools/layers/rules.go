package main

// maxLines is how many lines a file has at most. A longer file has more than one subject.
const maxLines = 500

// testSupport is the layer of packages that only tests import.
const testSupport = "test-support"

// layer is a group of packages with the same rule about imports.
type layer struct {
	name     string
	below    string   // the names of the layers that it may import, separated by spaces
	packages []string // entries: folders, which stand for the packages in them and below them
}

// layers gives each package its layer. A package belongs to the longest entry whose folder contains it. Packages of one
// entry may import each other; packages of two entries of a layer may not, unless below names their own layer.
func layers() []layer {
	return []layer{
		{"leaf", "leaf", []string{
			"internal/signature", "internal/client", "internal/fault", "internal/validate", "internal/resource", "internal/agent/protocol",
			"internal/agent/release", "internal/apk", "internal/config",
			"internal/outbound", "internal/script", "internal/serviceaccount", "internal/phrase", "internal/slice", "internal/wait",
			"internal/durable", "internal/outcome", "internal/usb/adb", "internal/discovery",
			"internal/passkey/virtual", // it imports nothing of Muster, and internal/client signs with it
		}},
		{"access", "leaf", []string{"internal/access"}},
		{"account", "leaf access", []string{"internal/account"}},
		{"credential", "leaf access account", []string{"internal/apikey", "internal/oauth"}},
		{"operation", "leaf access", []string{"internal/operation"}},
		{"type", "leaf access operation", []string{"internal/company", "internal/asset", "internal/policy", "internal/activity",
			"internal/event", "internal/agentdevice"}},
		{"decision", "leaf access operation type", []string{"internal/approval"}},
		{"use-case", "leaf access operation type decision", []string{
			"internal/command", "internal/proposal", "internal/provisioning", "internal/enrollment", "internal/limit",
			"internal/usb", "internal/rollout", "internal/job", "internal/webhook",
		}},
		// The engine runs SQL statements, and must not depend on their subjects.
		{"engine", "leaf engine", []string{"internal/database/engine", "internal/database/migrations"}},
		{"adapter", "leaf engine access account credential operation type decision use-case", []string{
			"internal/database", "internal/platform", "internal/emulator", "internal/agentserver", "internal/fcm", "internal/identity",
			"internal/passkey",
		}},
		{"shared-surface", "leaf access account credential operation", []string{"internal/surface/edge", "internal/surface/envelope",
			"internal/surface/web"}},
		{"surface", "leaf access account credential operation type decision use-case shared-surface", []string{
			"internal/surface/rest", "internal/surface/mcp", "internal/surface/oauth", "internal/surface/portal",
			"internal/surface/agentapi",
			"internal/surface/bridge", "internal/surface/cli",
		}},
		// The agent stays small and free of the service's code.
		{"agent", "leaf", []string{"internal/agent"}},
		{"service", "leaf access account credential operation type decision use-case adapter shared-surface surface agent",
			[]string{"internal/service"}},
		// A simulated fleet has the agent, and starts a service of its own, which it fills.
		{"simulation", "leaf access credential type use-case surface agent service", []string{"internal/fleetsim"}},
		{"program", "leaf access account credential operation type decision use-case adapter shared-surface surface agent " +
			"simulation service", []string{
			"cmd/muster", "cmd/muster-agent", "internal/discovery/cmd", "internal/agent/release/cmd",
		}},
		{testSupport, "leaf access account credential operation type decision use-case adapter shared-surface surface agent simulation " +
			"service test-support", []string{
			"docs", "test", "internal/servertest", "internal/database/pgtest", "internal/database/benchtest", "internal/database/dbtest",
			"internal/database/firsttest", "internal/database/triggertest",
			"internal/surface/rest/resttest", "internal/usb/adbtest", "internal/agent/shell/shelltest",
		}},
	}
}

// confined is a rule that only some packages may import others.
type confined struct {
	imports  []string // the packages that are imported, with those below them
	packages []string // the packages that may import them, with those below them
	tests    bool     // the rule holds for imports of tests as well
	remedy   string   // printed with a finding
}

// confinedImports returns the rules about single imports, in addition to layers.
func confinedImports() []confined {
	return []confined{
		{[]string{"database/sql", "github.com/jackc/pgx", "modernc.org/sqlite"}, []string{"internal/database"}, true,
			"SQL belongs to internal/database: declare an interface in the package that needs it"},
		{[]string{"internal/database/engine", "internal/database/migrations"}, []string{"internal/database"}, true,
			"internal/database alone runs statements: add a method to database.DB"},
		{[]string{"google.golang.org/api"}, []string{"internal/platform", "internal/emulator", "internal/fcm"}, true,
			"the platform's types belong to its adapters: translate there"},
		{[]string{"flag"}, []string{"cmd"}, false, "flags belong to cmd: take the value as a parameter"},
		{[]string{"internal/fleetsim"}, []string{"cmd/muster", "internal/fleetsim"}, false, "only cmd/muster simulates fleets"},
	}
}

// vagueNames are forbidden as names of packages: they do not say what a package provides.
var vagueNames = [...]string{"util", "utils", "common", "helper", "helpers", "model", "models", "types", "misc", "shared"}
