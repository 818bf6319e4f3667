package main

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/service"
)

// Each operation has a command of its own, with a flag or a word for each argument, and no
// two commands have one name.
func TestRemote_EveryOperationHasACommand(t *testing.T) {
	t.Parallel()
	commands := map[string]int{}
	for _, path := range commandPaths(t) {
		commands[strings.Join(path, " ")]++
	}
	for name, times := range commands {
		if times > 1 {
			t.Errorf("muster %s stands for %d commands", name, times)
		}
	}
	parser, err := grammar()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]string{}
	for _, o := range service.Declarations().All() {
		group, name := o.Command()
		path := strings.TrimSpace(group + " " + name)
		if commands[path] == 0 {
			t.Errorf("the operation %s has no command: muster %s", o.Name, path)
			continue
		}
		if other := used[path]; other != "" {
			t.Errorf("muster %s is the command of %s and of %s", path, other, o.Name)
		}
		used[path] = o.Name
		node := parser.Model.Node
		for word := range strings.FieldsSeq(path) {
			node = childOf(node, word)
		}
		taken := map[string]bool{}
		for _, flag := range node.Flags {
			taken[strings.TrimSuffix(flag.Name, "-file")] = true
		}
		for _, one := range node.Positional {
			taken[one.Name] = true
		}
		for _, a := range o.Arguments() {
			flag := ""
			for _, r := range a.Name {
				if r >= 'A' && r <= 'Z' {
					flag += "-"
				}
				flag += strings.ToLower(string(r))
			}
			if !taken[flag] {
				t.Errorf("muster %s takes no %s", path, a.Name)
			}
		}
	}
}
