package shell_test

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/agent/shell"
)

var update = flag.Bool("update", false, "write the tables of docs/aosp.md anew")

const page = "../../../docs/aosp.md"

// The tables of docs/aosp.md are what the code does.
func TestGoldenTables(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	for name, table := range map[string]string{"settings": settings(), "commands": commands()} {
		got = between(t, got, name, table)
	}
	if got == string(text) {
		return
	}
	if !*update {
		t.Fatal("docs/aosp.md does not show what the code does: run go test ./internal/agent/shell -run Golden -update and look at the diff")
	}
	if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
		t.Fatal(err)
	}
}

func between(t *testing.T, text, name, table string) string {
	t.Helper()
	begin, end := "<!-- "+name+": written by a test -->\n", "<!-- end of "+name+" -->"
	head, rest, ok := strings.Cut(text, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("docs/aosp.md has no place for the table of %s", name)
	}
	return head + begin + table + end + tail
}

func settings() string {
	var b strings.Builder
	b.WriteString("| setting | API | who | how | simulated | transcript | hardware |\n|---|---|---|---|---|---|---|\n")
	for _, r := range shell.Table() {
		how := r.How
		if r.Note != "" {
			how += ". " + r.Note
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | – | – |\n", r.Setting, level(r.SDK), r.Who, strings.TrimSuffix(how, "."), tried(r.Who))
	}
	return b.String()
}

// tried: what the command lines do not do is simulated as a refusal.
func tried(who string) string {
	if who == "owner" || who == "nobody" {
		return "refusal"
	}
	return "yes"
}

func commands() string {
	var b strings.Builder
	b.WriteString("| command | API | who | how | proof | simulated | transcript | hardware |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range shell.Commands() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | yes | – | – |\n", r.Command, level(r.SDK), r.Who, r.How, r.Proof)
	}
	return b.String()
}

func level(sdk int) string {
	if sdk == 0 {
		return "any"
	}
	return strconv.Itoa(sdk)
}
