//go:build unix

package main

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/internal/agent"
	testfile "github.com/musterhq/muster/test/executable"
)

// A device that is released while a new version is on trial is no longer managed: that is no error, and the new version goes.
func TestRenew_DeviceIsReleasedOnTrial(t *testing.T) {
	t.Parallel()
	path, err := programPath()
	if err != nil {
		t.Fatal(err)
	}
	state, trial := t.TempDir(), path+newSuffix
	testfile.Write(t, trial, []byte("#!/bin/sh\nrm \"$3/update.json\"\n"))
	if err := os.WriteFile(filepath.Join(state, "update.json"), []byte(`{"stage":"began"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := runCommand{common: common{State: state}}
	lock, err := c.lock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	err = c.renew(&environment{t.Context(), io.Discard, io.Discard, slog.New(slog.DiscardHandler)}, lock)
	if _, left := os.Stat(trial); !errors.Is(err, agent.ErrEnded) || left == nil {
		t.Errorf("it ended with %v, want %v; the new version is still there: %t", err, agent.ErrEnded, left == nil)
	}
}
