package spec

import (
	"encoding/json"
	"strings"
)

// Command is a row of contract 4.2, with its tool and what it needs.
type Command struct {
	Segment, Type string
	Devices       string // as contract 4.2 has it; Takes knows what it means
	Tool          string
	Permissions   string
	Family        Family
	Effect        Effect
	Body, Example string // see Endpoint
}

// Commands is contract 4.2.
var Commands = []Command{
	{"lock", "LOCK", "platform", "lock_device", ordinary, FirstFour, Adding, "-", ""},
	{"lost-mode", "START_LOST_MODE", "platform, company-owned", "start_lost_mode", ordinary, FirstFour, Disrupting,
		"message* phoneNumber email streetAddress organization", `{"message":"Please call"}`},
	{"found", "STOP_LOST_MODE", "platform, company-owned", "stop_lost_mode", ordinary, FirstFour, Adding, "-", ""},
	{"message", "NOTIFICATION_MESSAGE", "with a valid push token", "send_message", ordinary, FirstFour, Adding, "title* body*",
		`{"title":"Hello","body":"seldom-spoken-text"}`},
	{"status-report", "STATUS_REPORT", "all", "request_status_report", ordinary, OtherCommands, Adding, "-", ""},
	{"location-update", "LOCATION_UPDATE", "agent; platform with a companion", "request_location_update", ordinary, OtherCommands,
		Adding, "-", ""},
	{"sync-policy", "SYNC_POLICY", "agent", "sync_policy", ordinary, OtherCommands, Adding, "-", ""},
	{"reboot", "REBOOT", "fully managed", "reboot_device", ordinary, OtherCommands, Disrupting, "-", ""},
	{"shutdown", "SHUTDOWN", "agent", "shutdown_device", ordinary, OtherCommands, Disrupting, "-", ""},
	{"launch-app", "LAUNCH_APP", "agent", "launch_app", ordinary, OtherCommands, Adding, "packageName*",
		`{"packageName":"com.example.app"}`},
	{"clear-app-data", "CLEAR_APP_DATA", "platform", "clear_app_data", ordinary, OtherCommands, Destroying, "packageNames*",
		`{"packageNames":["com.example.app"]}`},
	{"change-policy", "CHANGE_POLICY", "all", "change_device_policy", ordinary + " POLICIES_READ", OtherCommands, Disrupting,
		"policyId*", `{"policyId":"{otherPolicyId}"}`},
	{"wipe", "WIPE_COMPANY_DATA", "all; destructive", "wipe_device", destructive, OtherCommands, Destroying, "-", ""},
	{"reset-screen-lock", "RESET_SCREEN_LOCK", "platform; destructive", "reset_screen_lock", destructive, OtherCommands,
		Destroying, "-", ""},
	{"change-screen-lock-password", "CHANGE_SCREEN_LOCK_PASSWORD", "platform; destructive", "change_screen_lock_password",
		destructive, OtherCommands, Destroying, "newPassword*", `{"newPassword":"seldom-spoken-secret"}`},
	{"relinquish-ownership", "RELINQUISH_OWNERSHIP", "agent; platform with a company-owned work profile; destructive",
		"relinquish_ownership", destructive, OtherCommands, Destroying, "-", ""},
	{"upload-log", "UPLOAD_LOG", "agent", "upload_log", ordinary, OtherCommands, Adding, "-", ""},
}

// CommandOf returns the command of a segment, a type or a tool; empty: there is none.
func CommandOf(name string) Command {
	for _, c := range Commands {
		if c.Segment == name || c.Type == name || c.Tool == name {
			return c
		}
	}
	return Command{}
}

func commandEndpoints() (all []Endpoint) {
	for _, c := range Commands {
		gate := "deviceCommands"
		if c.Destructive() {
			gate = "destructiveCommands"
		}
		all = append(all, Endpoint{"POST", "/assets/{assetId}/commands/" + c.Segment, c.Tool, c.Permissions, gate, c.Family, 200,
			c.Effect, c.Body, c.Example})
	}
	return all
}

// Destructive reports whether the company's limit counts the command.
func (c Command) Destructive() bool { return strings.HasSuffix(c.Devices, "; destructive") }

// Request is a valid body for a client, or nil. A policy in it does not exist.
func (c Command) Request() any {
	if c.Example == "" {
		return nil
	}
	return json.RawMessage(c.Example)
}

// Device is a managed device as the column of devices speaks of it. What is not known is false.
type Device struct{ Agent, CompanyOwned, FullyManaged, Push bool }

// Takes reports whether devices of a kind take the command. It panics on a text in Devices that it does not know.
func (c Command) Takes(d Device) bool {
	switch strings.TrimSuffix(c.Devices, "; destructive") {
	case "all":
		return true
	case "agent":
		return d.Agent
	case "platform":
		return !d.Agent
	case "platform, company-owned":
		return !d.Agent && d.CompanyOwned
	case "fully managed":
		return d.CompanyOwned && d.FullyManaged
	case "with a valid push token":
		return d.Push
	case "agent; platform with a companion":
		return d.Agent || d.Push
	case "agent; platform with a company-owned work profile":
		return d.Agent || d.CompanyOwned && !d.FullyManaged
	}
	panic(c.Segment + ": add the devices " + c.Devices + " to Takes")
}

// Unsupported are the segments of the commands that devices of a kind do not take.
func Unsupported(d Device) (segments []string) {
	for _, c := range Commands {
		if !c.Takes(d) {
			segments = append(segments, c.Segment)
		}
	}
	return segments
}
