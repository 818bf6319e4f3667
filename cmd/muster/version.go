package main

import (
	"fmt"
	"io"

	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/surface/cli"
)

// version is the version that the linker sets (scripts/build.sh). Empty: the version that the go command stamps into a
// build from the repository is used.
var version = ""

// versionCommand prints what is known of this program's build. See ops.Build.
type versionCommand struct {
	Output string `name:"output" short:"o" enum:"text,json" default:"text" help:"What to print: text, or one JSON value."`
}

// Run prints the build.
func (c *versionCommand) Run(env *cli.Env) error {
	b := ops.ReadBuild(version)
	return cli.Print(env.Out, c.Output, b, func(w io.Writer) {
		fmt.Fprintf(w, "muster %s (%s, %s, %s)\n", b.Version, b.Revision, b.Go, b.Platform)
	})
}
