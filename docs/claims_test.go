package docs

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	claimRow  = regexp.MustCompile(`(?m)^\| (S\d+) \| (.+) \| (.+) \| (.+) \|$`)
	claimRef  = regexp.MustCompile(`\bS\d+\b`)
	testNamed = regexp.MustCompile("`([a-z0-9]+)\\.((?:Test|Fuzz)\\w+)`")
)

// TestSecurity_ClaimsHaveTests checks that each claim of docs/security.md names a
// setting and tests, that the tests exist, and that every id in README.md,
// SECURITY.md and docs/security.md is one of a claim.
func TestSecurity_ClaimsHaveTests(t *testing.T) {
	t.Parallel()
	exists := map[string]bool{}
	for _, s := range sources(t, ".go") {
		if !strings.HasSuffix(s.path, "_test.go") {
			continue
		}
		for _, name := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllStringSubmatch(s.text, -1) {
			exists[path.Base(path.Dir(s.path))+"."+name[1]] = true
		}
	}
	page := read(t, "docs/security.md")
	var ids []string
	for _, row := range claimRow.FindAllStringSubmatch(page, -1) {
		id, tests := row[1], testNamed.FindAllStringSubmatch(row[4], -1)
		if slices.Contains(ids, id) {
			t.Errorf("%s stands twice", id)
		}
		ids = append(ids, id)
		if len(tests) == 0 {
			t.Errorf("%s has no test", id)
		}
		for _, named := range tests {
			if !exists[named[1]+"."+named[2]] {
				t.Errorf("%s names %s.%s, which does not exist", id, named[1], named[2])
			}
		}
	}
	if len(ids) == 0 {
		t.Fatal("docs/security.md has no claims")
	}
	for _, name := range []string{"README.md", "SECURITY.md", "docs/security.md"} {
		for _, id := range claimRef.FindAllString(read(t, name), -1) {
			if !slices.Contains(ids, id) {
				t.Errorf("%s refers to %s, which is no claim", name, id)
			}
		}
	}
}

// TestREADME_SafetyClaimsHaveIDs checks that each point of the README's list of
// safety claims ends with the id of a claim.
func TestREADME_SafetyClaimsHaveIDs(t *testing.T) {
	t.Parallel()
	_, list, found := strings.Cut(read(t, "README.md"), "safe to automate")
	list, _, ended := strings.Cut(list, "\n## ")
	if !found || !ended {
		t.Fatal("README.md has no list of safety claims")
	}
	points := strings.Split(list, "\n- ")[1:]
	if len(points) == 0 {
		t.Fatal("README.md has no safety claims")
	}
	for _, point := range points {
		if !regexp.MustCompile(`\[S\d+\]\(docs/security\.md\)`).MatchString(point) {
			t.Errorf("the claim %q has no id of docs/security.md", point)
		}
	}
}
