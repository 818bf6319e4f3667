package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/test/needs"
)

// The script of each shell offers, in the shell itself, what the program knows. bash is
// tested by testdata/script/usage.txtar.
func TestCompletion_InTheShells(t *testing.T) {
	t.Parallel()
	for name, shell := range map[string]struct {
		need needs.Need
		// script prints what the shell offers for the words of a line, its arguments.
		script string
		flags  []string
	}{
		"zsh": {needs.Zsh(), `
compdef() { [[ "$*" = "_muster muster" ]] || exit 3 }
_files() { print -r -- FILES }
compadd() { [[ $1 = -a ]] || exit 4; print -rl -- "${(@P)2}" }
source <(muster completion zsh)
words=("$@") CURRENT=$#
_muster`, []string{"-f", "-c"}},
		"fish": {needs.Fish(), `muster completion fish | source; complete -C (string join ' ' -- $argv)`, []string{"--no-config", "-c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := shell.need.Of(t)
			p := processes{t: t, dir: t.TempDir()}
			for line, want := range map[string]string{
				"muster comp":                          "company completion",
				"muster key create --preset ":          "assistant automation help-desk read-only",
				"muster key create --preset re":        "read-only",
				"muster key create --preset=re":        "--preset=read-only",
				"muster user create --company a --rol": "--role",
				"muster company set a --enable prov":   "provisioning",
			} {
				args := append([]string{}, shell.flags...)
				args = append(args, shell.script)
				if name == "zsh" {
					args = append(args, name)
				}
				ask := exec.CommandContext(t.Context(), program, append(args, strings.Split(line, " ")...)...)
				ask.Dir, ask.Env = p.dir, append(p.command().Env, "TERM=dumb")
				output, err := ask.CombinedOutput()
				got := strings.Fields(string(output))
				slices.Sort(got)
				if err != nil || strings.Join(got, " ") != want {
					t.Errorf("%q offers %q (%v), want %q", line, got, err, want)
				}
			}
		})
	}
}
