package main

import (
	"fmt"
	"io"

	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/surface/cli"
)

// version is set by the linker (scripts/build.sh), where the go command's own
// stamp says less: builds without the repository at hand.
var version = ""

// versionCommand shows the build.
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
