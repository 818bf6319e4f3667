// Command release makes the files of a release from programs that scripts/release.sh built:
// archives, packages for Debian and Red Hat, an image, a list of components and checksums.
// The same programs, version and time give the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// release is what all its files have in common.
type release struct {
	version string    // as git describes it
	time    time.Time // of every file: that of the commit
	root    string    // the repository
	build   string    // the programs: linux-amd64/muster, devices/…, man/…
	out     string
}

func main() {
	r := release{}
	flag.StringVar(&r.version, "version", "", "version, as git describe prints it")
	epoch := flag.Int64("epoch", 0, "time of all files, in seconds since 1970")
	flag.StringVar(&r.root, "root", "..", "the repository")
	flag.StringVar(&r.build, "build", "", "directory with the programs")
	flag.StringVar(&r.out, "out", "", "directory to write to")
	key := flag.String("key", "", "minisign key to sign the checksums with")
	flag.Parse()
	r.time = time.Unix(*epoch, 0).UTC()
	if err := r.make(*key, os.Getenv("MUSTER_RELEASE_PASSWORD")); err != nil {
		fmt.Fprintln(os.Stderr, "cannot make the release:", err)
		os.Exit(1)
	}
}

// make writes everything, and the checksums at the end.
func (r release) make(key, password string) error {
	if r.version == "" || r.build == "" || r.out == "" || r.time.Unix() == 0 {
		return errors.New("-version, -epoch, -build and -out are required")
	}
	targets, err := filepath.Glob(filepath.Join(r.build, "*-*", "muster*"))
	if err != nil {
		return err
	}
	var linux []string // the architectures
	for _, program := range targets {
		target := filepath.Base(filepath.Dir(program))
		if name := filepath.Base(program); name != "muster" && name != "muster.exe" {
			continue
		}
		if err := r.archive(target, filepath.Base(program)); err != nil {
			return err
		}
		if arch, ok := strings.CutPrefix(target, "linux-"); ok {
			linux = append(linux, arch)
		}
	}
	if len(linux) == 0 {
		return fmt.Errorf("%s has no program for Linux", r.build)
	}
	slices.Sort(linux)
	for _, arch := range linux {
		if err := r.packages(arch); err != nil {
			return err
		}
	}
	if err := r.image(linux); err != nil {
		return err
	}
	if err := r.components(linux[0]); err != nil {
		return err
	}
	return r.checksums(key, password)
}

var described = regexp.MustCompile(`^v?([0-9]+\.[0-9]+\.[0-9]+)(?:-((?:rc|beta|alpha)[0-9.]*))?(?:-(.+))?$`)

// packageVersion is the version for package managers, which compare it: a commit after a
// tag is newer than the tag, and commits without any are in the order of their times.
func (r release) packageVersion() string {
	parts := described.FindStringSubmatch(r.version)
	if parts == nil {
		return "0.0.0+" + r.time.Format("20060102150405") + "." + plain(r.version)
	}
	version := parts[1]
	if parts[2] != "" {
		version += "~" + parts[2]
	}
	if parts[3] != "" {
		version += "+" + plain(parts[3])
	}
	return version
}

// plain leaves what every package manager takes in a version.
func plain(text string) string {
	return strings.Trim(regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(text, "."), ".")
}
