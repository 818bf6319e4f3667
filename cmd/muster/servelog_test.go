package main

import (
	"bufio"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The heads of the activity log are in the service's log at every level.
func TestServe_LogsHeadsAtEveryLevel(t *testing.T) {
	t.Parallel()
	p := processes{t: t, dir: t.TempDir()}
	p.run("company", "create", "--slug", "acme", "--name", "Acme")
	service := p.command("serve", "--log-level", "error")
	service.Stderr = nil
	log, err := service.StderrPipe()
	if err == nil {
		err = service.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(time.Minute, func() { _ = service.Process.Kill() }).Stop()
	found, lines := false, bufio.NewScanner(log)
	for lines.Scan() {
		found = found || strings.Contains(lines.Text(), `msg="activity head" company=`)
		if found {
			_ = service.Process.Signal(syscall.SIGTERM)
			continue
		}
		t.Errorf("it logs %s", lines.Text())
	}
	if err := service.Wait(); err != nil || !found {
		t.Errorf("it ended with %v; it logged a head: %t", err, found)
	}
}
