package rest

import (
	"strings"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/policy"
)

// termGroup are terms of one kind, which names in the interface stand for.
type termGroup struct {
	Title string
	Terms []term
}

type term struct{ Name, Help string }

// terms explains the names that calls, answers and refusals mention, in the words that the
// portal has for them.
func terms() []termGroup {
	permissions, gates := termGroup{Title: "Permissions of keys and AI clients"}, termGroup{Title: "Settings of the company"}
	roles, rights, settings := termGroup{Title: "Roles of people"}, termGroup{Title: "Rights of people"},
		termGroup{Title: "Settings of a policy"}
	for _, p := range access.All.Each() {
		permissions.Terms = append(permissions.Terms, term{p.String(), p.Help()})
	}
	for _, g := range access.Gates() {
		gates.Terms = append(gates.Terms, term{string(g), g.Help()})
	}
	for _, r := range account.Roles() {
		roles.Terms = append(roles.Terms, term{string(r), r.Help()})
	}
	all, _ := account.Admin.Rights()
	for _, r := range all.Each() {
		rights.Terms = append(rights.Terms, term{r.Names()[0], r.Help()})
	}
	for _, s := range policy.Catalog() {
		settings.Terms = append(settings.Terms, term{s.ID, s.Help})
	}
	return []termGroup{permissions, gates, roles, rights, settings}
}

// termText is all of them as Markdown.
func termText() string {
	var text strings.Builder
	for _, g := range terms() {
		text.WriteString("\n\n**" + g.Title + ".**\n")
		for _, t := range g.Terms {
			text.WriteString("\n- `" + t.Name + "`: " + t.Help)
		}
	}
	return text.String()
}
