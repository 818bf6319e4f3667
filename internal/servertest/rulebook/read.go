package rulebook

import "strings"

// needs are the permissions of an operation.
func needs(tool string) []string {
	switch {
	case tool == "create_provisioning_qr_code":
		return []string{"PROVISIONING", "POLICIES_READ"}
	case reads(tool) && strings.Contains(tool, "polic"):
		return []string{"POLICIES_READ"}
	case reads(tool):
		return []string{"DEVICES_READ"}
	case !command(tool):
		return []string{"POLICIES_WRITE", "POLICIES_READ"}
	case tool == "change_device_policy":
		return []string{"DEVICES_COMMAND", "DEVICES_READ", "POLICIES_READ"}
	case Destructive(tool):
		return []string{"DEVICES_COMMAND_DESTRUCTIVE", "DEVICES_READ"}
	}
	return []string{"DEVICES_COMMAND", "DEVICES_READ"}
}

// reads reports whether an operation changes nothing, and command whether it is one of
// those to a device.
func reads(tool string) bool {
	return strings.HasPrefix(tool, "list_") || strings.HasPrefix(tool, "get_") || tool == "count_assets"
}

func command(tool string) bool {
	switch tool {
	case "update_policy_settings", "create_policy", "rollback_policy", "apply_policy_proposal", "create_provisioning_qr_code":
		return false
	}
	return !reads(tool)
}

// read answers for a read, which spends nothing and which no stop refuses.
func (w *World) read(c Call) Answer {
	switch {
	case !w.has(needs(c.Tool)):
		return Answer{Status: 403, Code: "forbidden"}
	case c.Malformed:
		return Answer{Status: 400, Code: "invalid_arguments"}
	}
	return w.lookup(c, 200)
}

// lookup is 404 unless there is what the call names.
func (w *World) lookup(c Call, status int) Answer {
	found := true
	switch c.Tool {
	case "get_log": // no device of the world has uploaded one
		found = false
	case "get_asset", "list_device_commands", "list_logs":
		_, found = w.Devices[c.Device]
	case "get_policy_settings", "list_policy_revisions", "create_provisioning_qr_code":
		_, found = w.Policies[c.Policy]
	case "get_policy_proposal":
		found = c.Proposal < len(w.Proposals)
	}
	if !found {
		return Answer{Status: 404, Code: "not_found"}
	}
	return Answer{Status: status}
}
