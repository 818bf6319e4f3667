// House checks the rules of the house (see package house) on the module in the
// working directory and prints what breaks them as file:line: text.
//
// With -complete, a room of the layer table without a package is an error too.
//
// It ends with status 1 when there are findings, 2 when the sources cannot be
// read.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/musterhq/muster/internal/house"
)

func main() {
	complete := flag.Bool("complete", false, "fail on rooms of the layer table that have no package")
	flag.Parse()
	fsys := os.DirFS(".")
	findings, err := house.Check(fsys)
	var vacant []string
	if err == nil && *complete {
		vacant, err = house.Vacant(fsys)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(2)
	}
	for _, f := range findings {
		fmt.Println(f)
	}
	for _, path := range vacant {
		fmt.Printf("internal/house/layers.go:1: there is no package %s: remove its layer\n", path)
	}
	if len(findings)+len(vacant) > 0 {
		os.Exit(1)
	}
}
