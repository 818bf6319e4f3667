package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/musterhq/muster/internal/surface/cli"
)

// manCommand writes the manual's pages and the shells' completion, which packages install.
type manCommand struct {
	Directory string `arg:"" help:"A directory to write into, which may be missing."`
}

// Run writes a page for muster and one for each of its commands.
func (c *manCommand) Run(env *cli.Env) error {
	model := newParser(io.Discard, io.Discard, func(int) {}).Model
	files := map[string]string{}
	for _, node := range append([]*kong.Node{model.Node}, model.Leaves(true)...) {
		name := manName(node)
		files[name+".1"] = manPage(node, name)
	}
	for shell, name := range map[string]string{"bash": "muster.bash", "zsh": "_muster", "fish": "muster.fish"} {
		script := &strings.Builder{}
		if err := (&completionCommand{Shell: shell}).Run(&cli.Env{Out: script}); err != nil {
			return err
		}
		files[name] = script.String()
	}
	if err := os.MkdirAll(c.Directory, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(c.Directory, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func manName(node *kong.Node) string {
	return strings.ReplaceAll(strings.TrimSpace("muster "+commandOf(node)), " ", "-")
}

// commandOf are the words that choose a command.
func commandOf(node *kong.Node) string {
	if node.Parent == nil {
		return ""
	}
	return strings.TrimSpace(commandOf(node.Parent) + " " + node.Name)
}

// manPage is one page in the man macros of troff.
func manPage(node *kong.Node, name string) string {
	page := &strings.Builder{}
	section := func(title string) { fmt.Fprintf(page, ".SH %s\n", title) }
	fmt.Fprintf(page, ".TH %s 1 \"\" Muster\n", strings.ToUpper(roff(name)))
	section("NAME")
	fmt.Fprintf(page, "%s \\- %s\n", roff(name), roff(strings.TrimRight(node.Help, ".")))
	section("SYNOPSIS")
	fmt.Fprintf(page, ".B %s\n%s\n", roff(strings.TrimSpace("muster "+commandOf(node))), roff(synopsis(node)))
	if node.Detail != "" {
		section("DESCRIPTION")
		fmt.Fprintf(page, ".nf\n%s\n.fi\n", roff(node.Detail))
	}
	if len(node.Positional) > 0 {
		section("ARGUMENTS")
		for _, argument := range node.Positional {
			fmt.Fprintf(page, ".TP\n.I %s\n%s\n", roff(argument.Summary()), roff(argument.Help))
		}
	}
	var variables []string
	section("OPTIONS")
	for _, flag := range slices.Concat(node.AllFlags(true)...) {
		fmt.Fprintf(page, ".TP\n.B %s\n%s\n", roff(flag.String()), roff(flag.Help))
		for _, variable := range flag.Envs {
			variables = append(variables, fmt.Sprintf(".TP\n.B %s\nSets \\-\\-%s.\n", variable, roff(flag.Name)))
			if flag.Tag.Has("secret") {
				variables = append(variables,
					fmt.Sprintf(".TP\n.B %[1]s_FILE\nNames a file that holds the value of %[1]s.\n", variable))
			}
		}
	}
	if len(variables) > 0 {
		section("ENVIRONMENT")
		page.WriteString(strings.Join(variables, ""))
	}
	section("EXIT STATUS")
	page.WriteString("0: done. 1: failed, with one line on standard error. 2: wrong usage.\n")
	if node.Parent == nil {
		section("COMMANDS")
		leaves := node.Leaves(true)
		slices.SortFunc(leaves, func(a, b *kong.Node) int { return strings.Compare(manName(a), manName(b)) })
		for _, leaf := range leaves {
			fmt.Fprintf(page, ".TP\n.BR %s (1)\n%s\n", roff(manName(leaf)), roff(leaf.Help))
		}
	} else {
		section("SEE ALSO")
		page.WriteString(".BR muster (1)\n")
	}
	return page.String()
}

func synopsis(node *kong.Node) string {
	if node.Parent == nil {
		return "COMMAND"
	}
	return strings.TrimSpace(strings.TrimPrefix(node.Summary(), commandOf(node)))
}

// roff escapes text: backslashes and hyphens everywhere, and dots and quotes where a line
// would begin a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", "...").Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
