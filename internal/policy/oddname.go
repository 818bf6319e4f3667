package policy

// OddName is a policy's name from before the rules of names, as it is kept.
type OddName struct {
	Company  string // its slug
	PolicyID string
	Name     string
	// Wrong says why the name would be refused now; empty: its characters are
	// allowed. LooksLike is the id of an older policy of the company whose name
	// people would take for this one; empty: none.
	Wrong     string
	LooksLike string
}

// OddNames returns those of names that would be refused now. The names of a
// company are in the order in which they were given.
func OddNames(names []OddName) []OddName {
	type seen struct{ company, form string }
	exact, folded := map[seen]string{}, map[seen]string{}
	var odd []OddName
	for _, n := range names {
		if ShownName(n.Name) != n.Name {
			_, n.Wrong = CleanName(n.Name)
		}
		look := LookOf(n.Name)
		byExact, byFolded := seen{n.Company, look.exact}, seen{n.Company, look.folded}
		if n.LooksLike = exact[byExact]; n.LooksLike == "" {
			n.LooksLike = folded[byFolded]
		}
		if n.Wrong != "" || n.LooksLike != "" {
			odd = append(odd, n)
		}
		if exact[byExact] == "" {
			exact[byExact] = n.PolicyID
		}
		if folded[byFolded] == "" {
			folded[byFolded] = n.PolicyID
		}
	}
	return odd
}
