package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/surface/cli"
)

// doctorCommand checks the set-up that `muster serve` would run with.
type doctorCommand struct {
	config.Service
	Output        string `name:"output" short:"o" enum:"text,json" default:"text" help:"What to print: text, or one JSON value."`
	MakeKeyFile   string `name:"make-key-file" placeholder:"FILE" help:"Only make a new key file, for replicas on PostgreSQL."`
	RotateKeyFile string `name:"rotate-key-file" placeholder:"FILE" help:"Only put fresh keys before those of a key file; every replica then needs the file and a restart."`
}

// report is the JSON value that `muster doctor -o json` prints. OK is false if a finding has failed.
type report struct {
	OK       bool          `json:"ok"`
	Findings []ops.Finding `json:"findings"`
}

// Run prints the findings, and returns an error if one of them has failed; warnings are no error. With
// MakeKeyFile or RotateKeyFile it writes the key file instead, and checks nothing else.
func (c *doctorCommand) Run(env *cli.Env) error {
	if path := cmp.Or(c.MakeKeyFile, c.RotateKeyFile); path != "" {
		write, text := ops.MakeKeyFile, "Made the key file %s. Keep it secret, back it up, give the same file to every replica.\n"
		if c.MakeKeyFile == "" {
			write, text = ops.RotateKeyFile, "The key file %s has new keys. Back it up, give it to every replica, and restart them. "+
				"Do not remove the old keys from it.\n"
		}
		if err := write(path, env.Now()); err != nil {
			return err
		}
		return cli.Print(env.Out, c.Output, map[string]string{"path": path}, func(w io.Writer) { fmt.Fprintf(w, text, path) })
	}
	result := report{Findings: append(ops.Diagnose(env.Context, c.Service, env.Now), unknownSettings(os.Environ())...)}
	result.OK = !slices.ContainsFunc(result.Findings, func(f ops.Finding) bool { return f.Status == ops.Failed })
	err := cli.Print(env.Out, c.Output, result, func(w io.Writer) {
		for _, f := range result.Findings {
			fmt.Fprintf(w, "%s\t%s\t%s\n", f.Status, f.Check, f.Detail)
			if f.Remedy != "" && f.Status != ops.Fine {
				fmt.Fprintf(w, "\t\tto fix it: %s\n", f.Remedy)
			}
		}
	})
	if err == nil && !result.OK {
		err = errors.New("the set-up is not right: see what doctor found")
	}
	return err
}

// unknownSettings warns of MUSTER_* variables that no command reads, such as
// misspelled ones.
func unknownSettings(environment []string) (findings []ops.Finding) {
	known := settingNames()
	for _, setting := range environment {
		if name, _, _ := strings.Cut(setting, "="); strings.HasPrefix(name, "MUSTER_") && !slices.Contains(known, name) {
			findings = append(findings, ops.Finding{Check: "settings", Status: ops.Warning,
				Detail: name + " is not a setting of muster serve", Remedy: "correct its name or take it away"})
		}
	}
	return findings
}

// settingNames returns the names of the environment variables of all commands. A secret has two: the variable itself,
// and the one with the ending _FILE that names a file with the secret.
func settingNames() (names []string) {
	parser := newParser(io.Discard, io.Discard, func(int) {})
	// Visit returns only errors of this function, and it returns none.
	_ = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			names = append(names, flag.Envs...)
			if flag.Tag.Has("secret") {
				for _, name := range flag.Envs {
					names = append(names, name+"_FILE")
				}
			}
		}
		return next(nil)
	})
	return names
}
