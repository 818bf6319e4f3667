// Command compose runs the services of packaging/compose.yaml as processes of this machine, without a container engine, for
// scripts/prove-compose.sh. It unpacks Muster's image. Muster's program gets the files of the image as its root directory,
// the image's user, an address of its own, and what the compose file adds to and removes from these. Debian's
// PostgreSQL and Caddy run in place of the other images.
//
//	compose check                     load the file: its schema, its references
//	compose image                     run Muster's image alone, with only its own settings
//	compose up                        run all services, until it is killed
//	compose exec SERVICE COMMAND...   run a command in a service
//
// Run it as root, in mount and network namespaces of its own: it changes both.
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

	"golang.org/x/sys/unix"
)

// proof has the paths that the commands use.
type proof struct {
	file  string // compose.yaml
	image string // Muster's OCI archive
	dir   string // the directory for all files that are written
}

func main() {
	// An engine makes its files whatever the umask of who asks it.
	unix.Umask(0o022)
	if len(os.Args) == 3 && os.Args[1] == "inside" { // called by this program itself; see inside
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

// load reads a compose file as Docker Compose does. It checks the file against the schema, checks its references, and
// replaces variables with values of the environment and of the file .env in the same directory.
func load(ctx context.Context, file string) (*types.Project, error) {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithWorkingDirectory(filepath.Dir(file)), cli.WithOsEnv,
		cli.WithEnvFiles(), cli.WithDotEnv)
	if err != nil {
		return nil, err
	}
	return options.LoadProject(ctx)
}
