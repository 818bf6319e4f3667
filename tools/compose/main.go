// Command compose runs what packaging/compose.yaml describes as processes of this machine,
// without a container engine, for scripts/prove-compose.sh. Muster's image is unpacked, and its
// program has the image's files as root, its user, its own address, and what the compose file
// gives and takes. Debian's PostgreSQL and Caddy stand in for the other images.
//
//	compose check                     load the file: its schema, its references
//	compose image                     run Muster's image alone, with what it says itself
//	compose up                        run all services, until it is killed
//	compose exec SERVICE COMMAND...   run a command as a service has it
//
// It needs root and namespaces of its own for mounts and network.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// proof is where the parts run.
type proof struct {
	file  string // compose.yaml
	image string // Muster's OCI archive
	dir   string // everything that is written
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "inside" {
		fail(inside(os.Args[2]))
	}
	p := proof{}
	flag.StringVar(&p.file, "file", os.Getenv("PROOF_FILE"), "the compose file")
	flag.StringVar(&p.image, "image", os.Getenv("PROOF_IMAGE"), "Muster's OCI archive")
	flag.StringVar(&p.dir, "dir", os.Getenv("PROOF_DIR"), "directory to write to")
	flag.Parse()
	fail(p.do(context.Background(), flag.Args()))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "compose:", err)
		os.Exit(1)
	}
}

func (p proof) do(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "check":
		_, err := load(ctx, p.file)
		return err
	case len(args) == 1 && args[0] == "image":
		return p.alone()
	case len(args) == 1 && args[0] == "up":
		return p.up(ctx)
	case len(args) > 2 && args[0] == "exec":
		return p.exec(args[1], args[2:])
	}
	return errors.New("usage: compose [flags] check | image | up | exec SERVICE COMMAND...")
}

// load reads a compose file as compose does: it checks its schema and its references, and
// replaces variables by those of the environment and of .env beside it.
func load(ctx context.Context, file string) (*types.Project, error) {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithWorkingDirectory(filepath.Dir(file)), cli.WithOsEnv,
		cli.WithEnvFiles(), cli.WithDotEnv)
	if err != nil {
		return nil, err
	}
	return options.LoadProject(ctx)
}
