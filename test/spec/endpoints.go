// Package spec holds the tables of the contract as data, written from docs/contract.md and not from the code. It imports nothing
// of the service. Tests compare it with the document and with the declared operations, and take their rows from it.
package spec

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Endpoint is a row of contract 4, with the tool that mirrors it (contract 4.5) and what it needs (contract 5.2, 5.4).
type Endpoint struct {
	Method, Path string
	Tool         string
	Permissions  string // joined by a blank
	Gate         string
	Family       Family
	Success      int
	Effect       Effect
	Body         string // member names; those with a star are required; "-" for no body
	// Example is a valid body in JSON, or empty. {policyId} and {otherPolicyId} in it are ids of policies.
	Example string
}

// Family names the endpoints that speak of errors alike.
type Family string

// The families: contract 7.2 (two), 7.3, 7.4, and 7.5.
const (
	FirstFour     Family = "lock, lost-mode, found, message"
	OtherCommands Family = "other commands"
	Policies      Family = "policies"
	Provisioning  Family = "provisioning"
	Reads         Family = "reads"
)

// Effect is what the hints of a tool say (contract 4.5).
type Effect string

// The effects. Disrupting and destroying have the destructiveHint.
const (
	Reading    Effect = "reads"
	Adding     Effect = "adds"
	Disrupting Effect = "disrupts"
	Destroying Effect = "destroys"
)

// Harms reports whether the effect is more than an addition.
func (e Effect) Harms() bool { return e == Disrupting || e == Destroying }

const (
	devicesRead  = "DEVICES_READ"
	policiesRead = "POLICIES_READ"
	ordinary     = "DEVICES_COMMAND DEVICES_READ"
	destructive  = "DEVICES_COMMAND_DESTRUCTIVE DEVICES_READ"
	writing      = "POLICIES_READ POLICIES_WRITE"
)

// Endpoints are those of contract 4 that need a permission.
var Endpoints = slices.Concat([]Endpoint{
	read("/assets", "list_assets", devicesRead, Reads),
	read("/assets/count", "count_assets", devicesRead, Reads),
	read("/assets/{assetId}", "get_asset", devicesRead, Reads),
	read("/assets/{assetId}/commands", "list_device_commands", devicesRead, Reads),
	read("/assets/{assetId}/logs", "list_logs", devicesRead, Reads),
	read("/assets/{assetId}/logs/{logId}", "get_log", devicesRead, Reads),
	read("/policies", "list_policies", policiesRead, Reads),
	{"PATCH", "/assets/{assetId}", "update_asset", ordinary, "deviceCommands", OtherCommands, 200, Disrupting,
		"identification tags customData", `{"tags":["store-12"],"customData":{"user":"Ada"}}`},
	read("/policies/{policyId}/settings", "get_policy_settings", policiesRead, Policies),
	read("/policies/{policyId}/revisions", "list_policy_revisions", policiesRead, Policies),
	read("/policy-proposals/{proposalId}", "get_policy_proposal", policiesRead, Policies),
	change("/policies/{policyId}/changes", "update_policy_settings", 201, Adding, "changes*",
		`{"changes":[{"setting":"CAMERA","value":"BLOCK"}]}`),
	change("/policies", "create_policy", 201, Adding, "fromPolicyId* displayName* changes",
		`{"fromPolicyId":"{policyId}","displayName":"Copy"}`),
	change("/policies/{policyId}/rollbacks", "rollback_policy", 201, Adding, "revision*", `{"revision":1}`),
	change("/policy-proposals/{proposalId}/apply", "apply_policy_proposal", 200, Disrupting, "confirmation",
		`{"confirmation":"Warehouse"}`),
	{"POST", "/policies/{policyId}/provisioning-qr-codes", "create_provisioning_qr_code", "POLICIES_READ PROVISIONING", "provisioning",
		Provisioning, 201, Adding, "personalUsage wifiSsid wifiPassword wifiSecurity wifiHidden",
		`{"wifiSsid":"Guest","wifiPassword":"seldom-spoken-secret"}`},
}, commandEndpoints())

// Open are the endpoints of contract 4.10 and 4.12. They need no permission: callers get what they may see.
var Open = []Endpoint{
	{"POST", "/explain", "explain_operation", "", "", Reads, 200, Reading, "operation* arguments", `{"operation":"wipe_device"}`},
	read("/events", "list_events", "", Reads),
}

func read(path, tool, permission string, family Family) Endpoint {
	return Endpoint{"GET", path, tool, permission, "", family, 200, Reading, "-", ""}
}

func change(path, tool string, success int, effect Effect, body, example string) Endpoint {
	return Endpoint{"POST", path, tool, writing, "policyChanges", Policies, success, effect, body, example}
}

// All are the Endpoints and those that are Open.
func All() []Endpoint { return slices.Concat(Endpoints, Open) }

// Find returns the endpoint of a tool; empty: there is none.
func Find(tool string) Endpoint {
	for _, e := range All() {
		if e.Tool == tool {
			return e
		}
	}
	return Endpoint{}
}

var braces = regexp.MustCompile(`\{([^}]*)\}`)

// Arguments are valid arguments of the tool. ids are pairs of a name and an id, such as "assetId" and "8k2v".
func (e Endpoint) Arguments(ids ...string) map[string]any {
	all := map[string]any{}
	if e.Example != "" {
		if err := json.Unmarshal([]byte(fill(e.Example, ids)), &all); err != nil {
			panic(e.Tool + ": " + err.Error())
		}
	}
	for _, name := range braces.FindAllStringSubmatch(e.Path, -1) {
		all[name[1]] = fill(name[0], ids)
	}
	return all
}

// fill writes ids for the names in braces.
func fill(text string, ids []string) string {
	for pair := range slices.Chunk(ids, 2) {
		text = strings.ReplaceAll(text, "{"+pair[0]+"}", pair[1])
	}
	return text
}
