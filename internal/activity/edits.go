package activity

// editClauses describe an edit of an asset's name, tags, user and custom data, a clause for each change. Other
// custom data is mentioned only if nothing else changed.
func (e Entry) editClauses() (all []clause) {
	custom := false
	for _, change := range e.Changes {
		switch {
		case change.Field == "identification":
			all = append(all, clause{past: "renamed", base: "rename"}.name(change.Before).words(" to").name(change.After))
		case change.Field == "tags" && change.After == "":
			all = append(all, clause{past: "removed", base: "remove"}.words(" the tags of").name(e.target()))
		case change.Field == "tags":
			all = append(all, clause{past: "tagged", base: "tag"}.name(e.target()).words(" with").name(change.After))
		case change.Field == "user" && change.After == "":
			all = append(all, clause{past: "took", base: "take"}.name(e.target()).words(" from").name(change.Before))
		case change.Field == "user":
			all = append(all, clause{past: "assigned", base: "assign"}.name(e.target()).words(" to").name(change.After))
		default:
			custom = true
		}
	}
	if custom && len(all) == 0 {
		all = append(all, clause{past: "changed", base: "change"}.words(" what is noted of").name(e.target()))
	}
	return all
}

// reimported says how many assets an import changed; empty: none.
func (e Entry) reimported() string {
	if n := e.after("changed"); n != "" && n != "0" {
		return " and changed " + n
	}
	return ""
}
