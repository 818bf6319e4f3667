package rulebook

// read answers for a read, which spends nothing and which no stop refuses.
func (w *World) read(c Call) Answer {
	switch {
	case !w.has(c.Tool):
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
