package cli_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/surface/cli"
)

// A command that lists only reads, and so needs no key file.
func TestLists_OnlyRead(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&cli.Commands{}, kong.Exit(func(int) {}), cli.Durations())
	if err != nil {
		t.Fatal(err)
	}
	lists := 0
	for _, leaf := range parser.Model.Leaves(true) {
		if leaf.Name != "list" {
			continue
		}
		lists++
		args := strings.Fields(strings.TrimPrefix(leaf.Path(), parser.Model.Name))
		for _, group := range leaf.AllFlags(true) {
			for _, flag := range group {
				if flag.Required {
					args = append(args, "--"+flag.Name, "acme")
				}
			}
		}
		chosen, err := parser.Parse(args)
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		stop := errors.New("opened")
		err = chosen.Run(&cli.Env{Context: t.Context(), Now: time.Now,
			Open: func(_ context.Context, _ config.Store, intent cli.Intent) (*cli.Admin, error) {
				if intent != cli.Reads {
					t.Errorf("%s opens the database with intent %d, want %d", leaf.Path(), intent, cli.Reads)
				}
				return nil, stop
			}})
		if !errors.Is(err, stop) {
			t.Errorf("%s: %v", leaf.Path(), err)
		}
	}
	if lists < 10 {
		t.Errorf("there are %d lists, want more", lists)
	}
}
