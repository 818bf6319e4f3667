package main

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agent/release"
	"github.com/musterhq/muster/internal/durable"
)

// executable is this program, as updates replace it.
type executable struct {
	path string
	key  ed25519.PublicKey
	code int64
}

// trialTime is how long a new version may take until it is in touch.
const trialTime = 10 * time.Minute

// newSuffix ends the name of a new version beside the program, until it is in touch.
const newSuffix = ".new"

// installer installs updates, where this program was built with the key of releases. In a
// system image the image's update brings a new version.
func (c common) installer() (agent.Installer, error) {
	if releaseKey == "" || c.Driver == shellDriver {
		return nil, nil
	}
	key, err := release.ParseKey(releaseKey)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseInt(code, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the program was built with the code %q, which is no number", code)
	}
	path, err := programPath()
	return executable{path, key, number}, err
}

// programPath is this program's file. A trial runs from a file beside it.
func programPath() (string, error) {
	path, err := os.Executable()
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	return strings.TrimSuffix(path, newSuffix), err
}

// Package implements agent.Installer.
func (p executable) Package() string { return runtime.GOOS + "-" + runtime.GOARCH }

// Code implements agent.Installer.
func (p executable) Code() int64 { return p.code }

// Check implements agent.Installer.
func (p executable) Check(path string, u protocol.Update) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	statement, key, err := release.Read(file, u.File.Size)
	switch {
	case err != nil:
		return err
	case !key.Equal(p.key):
		return errors.New("another key than that of this program's releases signed the file")
	case statement.Package != p.Package() || statement.Code != u.Code || statement.Code <= p.code:
		return fmt.Errorf("the file is version %s (code %d) for %s, not what the service names", statement.Version,
			statement.Code, statement.Package)
	}
	return nil
}

// Install implements agent.Installer. It puts the new version beside this one.
func (p executable) Install(_ context.Context, path string, _ protocol.Update) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := os.OpenFile(p.path+newSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Sync(), to.Close(), os.Chmod(p.path+newSuffix, 0o755)); err != nil {
		return errors.Join(err, os.Remove(p.path+newSuffix))
	}
	return cmp.Or(durable.Sync(filepath.Dir(p.path)), agent.ErrRestart)
}
