package contract_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/test/spec"
)

var quoted = regexp.MustCompile("`([^`]*)`")

// inBackquotes are the names in backquotes of a text.
func inBackquotes(text string) (all []string) {
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// section is the text of a section of docs/contract.md, and its tables' rows as cells, without their heads.
func section(t *testing.T, number string) (text string, rows [][]string) {
	t.Helper()
	whole, err := os.ReadFile("../../docs/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = strings.Cut(string(whole), "\n### "+number+" ")
	text, _, _ = strings.Cut(text, "\n### ")
	body := false
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		switch {
		case !strings.HasPrefix(line, "|"):
			body = false
		case strings.HasPrefix(line, "|---"):
			body = true
		case body:
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
	}
	if len(rows) == 0 {
		t.Fatalf("docs/contract.md has no table in section %s", number)
	}
	return text, rows
}

// The commands of docs/contract.md 4.2 are those of test/spec, which TestContract_DeclarationsMatch compares with the code.
func TestContract_TableOfCommands(t *testing.T) {
	t.Parallel()
	_, got := section(t, "4.2")
	var want [][]string
	for _, c := range spec.Commands {
		body := "–"
		if c.Body != "-" {
			body = "`" + strings.ReplaceAll(strings.ReplaceAll(c.Body, "*", ""), " ", "`, `") + "`"
		}
		want = append(want, []string{"`" + c.Segment + "`", "`" + c.Type + "`", c.Devices, body})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/contract.md 4.2 (-test/spec +document):\n%s", diff)
	}
}

// The tables of docs/contract.md 4.1 and 4.3 name the reads and the policy changes of test/spec.
func TestContract_TablesOfPaths(t *testing.T) {
	t.Parallel()
	for number, families := range map[string][]spec.Family{"4.1": {spec.Reads}, "4.3": {spec.Policies}} {
		_, rows := section(t, number)
		var got, want []string
		for _, row := range rows {
			if row[0] == "GET" || row[0] == "POST" {
				path, _, _ := strings.Cut(strings.Trim(row[1], "`"), "?")
				got = append(got, row[0]+" "+path)
			}
		}
		for _, e := range spec.Endpoints {
			if slices.Contains(families, e.Family) {
				want = append(want, e.Method+" "+e.Path)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("docs/contract.md %s (-test/spec +document):\n%s", number, diff)
		}
	}
}

// The tools of docs/contract.md 4.5 are those of test/spec, those of commands beside their segments, and it names each whose
// effect is more than an addition.
func TestContract_TableOfTools(t *testing.T) {
	t.Parallel()
	text, rows := section(t, "4.5")
	var got, want []string
	for _, row := range rows {
		listed, _, _ := strings.Cut(row[1], ", without")
		segments, tools := inBackquotes(row[0]), inBackquotes(listed)
		got = append(got, tools...)
		for i, segment := range segments {
			if c := spec.CommandOf(segment); i >= len(tools) || c.Tool != tools[i] {
				t.Errorf("%s is not the row of %s", row, segment)
			}
		}
	}
	_, hints, _ := strings.Cut(text, "`destructiveHint` is true")
	hints, _, _ = strings.Cut(hints, "`idempotentHint`")
	for _, e := range spec.All() {
		want = append(want, e.Tool)
		if named := slices.Contains(inBackquotes(hints), e.Tool); named != (e.Effect.Harms() && !spec.CommandOf(e.Tool).Destructive()) {
			t.Errorf("the hints name %s: %t, and it %s", e.Tool, named, e.Effect)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/contract.md 4.5 (-test/spec +document):\n%s", diff)
	}
}
