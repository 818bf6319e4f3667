package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/musterhq/muster/internal/surface/cli"
)

// version is set by the linker (scripts/build.sh), where the go command's own
// stamp says less: builds without the repository at hand.
var version = ""

// versionCommand shows the build.
type versionCommand struct {
	Output string `name:"output" short:"o" enum:"text,json" default:"text" help:"What to print: text, or one JSON value."`
}

type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Run prints the build.
func (c *versionCommand) Run(env *cli.Env) error {
	b := thisBuild()
	return cli.Print(env.Out, c.Output, b, func(w io.Writer) {
		fmt.Fprintf(w, "muster %s (%s, %s, %s)\n", b.Version, b.Revision, b.Go, b.Platform)
	})
}

func thisBuild() build {
	b := build{Version: "(devel)", Revision: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if version != "" {
		b.Version = version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if version == "" && info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Revision = setting.Value
		case "vcs.modified":
			b.Modified = setting.Value == "true"
		}
	}
	return b
}
