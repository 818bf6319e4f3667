package resource

import "strings"

// Changes is the topic of hints that something changed, between replicas and
// to pages that are open.
const Changes = "changes"

// Change is one such hint: a company, a kind of thing (asset, command, policy,
// proposal, key, user, connection, event) and its id.
func Change(companyID, kind, id string) string { return companyID + "/" + kind + "/" + id }

// ParseChange takes a hint apart.
func ParseChange(hint string) (companyID, kind, id string) {
	companyID, rest, _ := strings.Cut(hint, "/")
	kind, id, _ = strings.Cut(rest, "/")
	return companyID, kind, id
}
