package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/needs"
	"github.com/musterhq/muster/test/poll"
)

// A SQLite file serves one service; commands work beside it.
func TestServe_SecondServiceOnOneFile(t *testing.T) {
	t.Parallel()
	p := processes{t: t, dir: t.TempDir()}
	p.run("company", "create", "acme")
	first := p.serve()
	p.refused("a second service", []string{"muster.db", "another service has it open", "stop the other"}, "serve")
	p.run("policy", "create", "--company", "acme", "Kiosk", "--type", "AGENT")
	first.kill()
	p.serve().end()
}

// A service does not use a key file that others may read; a group may.
func TestServe_KeyFileOfOthers(t *testing.T) {
	t.Parallel()
	p := processes{t: t, dir: t.TempDir()}
	p.run("company", "create", "acme")
	p.serve().end()
	path := filepath.Join(p.dir, "muster.db.keys")
	for mode, served := range map[os.FileMode]bool{0o644: false, 0o604: false, 0o660: false, 0o640: true, 0o400: true} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if served {
			p.serve().end()
		} else {
			p.refused(mode.String(), []string{"may be read or changed by others", "chmod 600"}, "serve")
		}
	}
}

// Files of another user are found, with what to do, by the service's user and by root.
func TestDoctor_WrongOwner(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.run("company", "create", "acme")
	k.asService().serve().end()
	keys, file := filepath.Join(k.dir, "muster.db.keys"), filepath.Join(k.dir, "muster.db")
	for _, path := range []string{keys, file} {
		if err := os.Chown(path, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	own := k.asService()
	found := own.doctor("the service's user")
	for check, path := range map[string]string{"database": file, "key file": keys} {
		if f := found[check]; f.Status != "failed" || !strings.Contains(f.Detail, path+", which belongs to user id 0") ||
			!strings.Contains(f.Remedy, "chown 65534 "+path) {
			t.Errorf("the service's user is told of %s: %+v", path, f)
		}
	}
	own.refused("the database of root", []string{file + ", which belongs to user id 0", "chown 65534 " + file}, "serve")
	if f := k.doctor("root")["owner"]; f.Status != "failed" || !strings.Contains(f.Remedy, "chown 65534:65534 ") {
		t.Errorf("root is told: %+v", f)
	}
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	linked := k.with("MUSTER_DATABASE=sqlite:"+link, "MUSTER_KEY_FILE="+keys)
	if f := linked.doctor("root, by a link")["owner"]; f.Status != "failed" || !strings.Contains(f.Remedy, "chown 65534:65534 ") {
		t.Errorf("by a link, root is told: %+v", f)
	}
	for _, path := range []string{keys, file} {
		if err := os.Chown(path, serviceUser, serviceUser); err != nil {
			t.Fatal(err)
		}
	}
	own.serve().end()
}

// tmpfs mounts a small disk for a test.
func tmpfs(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		needs.Mount().Missing(t, err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// A disk that is mounted read-only is named by the doctor and by what cannot write.
func TestDoctor_ReadOnlyDisk(t *testing.T) {
	t.Parallel()
	dir := tmpfs(t, "16m")
	p := processes{t: t, dir: dir}
	p.run("company", "create", "acme")
	p.serve().end()
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		needs.Mount().Missing(t, err)
	}
	if f := p.doctor("read-only")["database"]; f.Status != "failed" || !strings.Contains(f.Detail, "mounted read-only") ||
		!strings.HasPrefix(f.Remedy, "mount it for writing") {
		t.Errorf("the doctor says %+v", f)
	}
	for _, args := range [][]string{{"serve"}, {"company", "list"}, {"policy", "create", "--company", "acme", "x"}} {
		p.refused("read-only", []string{"mounted read-only", "mount it for writing"}, args...)
	}
}

// A service on a full disk says so, counts what it could not write, and goes on when
// there is room.
func TestServe_FullDisk(t *testing.T) {
	t.Parallel()
	dir := tmpfs(t, "16m")
	p := processes{t: t, dir: dir}
	p.run("company", "create", "acme")
	service := p.serve()
	if status, text := servertest.Fetch(t, service.address+"/readyz"); status != http.StatusOK || !strings.Contains(text, `"disk":"ok"`) {
		t.Errorf("at first readyz answers %d %s", status, text)
	}
	filler, err := os.Create(filepath.Join(dir, "filler"))
	for err == nil {
		_, err = filler.Write(make([]byte, 4096))
	}
	if err := filler.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "full", func() error {
		if status, text := servertest.Fetch(t, service.address+"/readyz"); status != http.StatusServiceUnavailable ||
			!strings.Contains(text, `"disk":"full`) {
			return fmt.Errorf("readyz answers %d %s", status, text)
		}
		_, text := servertest.Fetch(t, service.address+"/metrics")
		if strings.Contains(text, "muster_database_write_failures_total 0\n") || !strings.Contains(text, "muster_disk_free_bytes 0\n") ||
			!strings.Contains(text, "\nmuster_ready 0\n") {
			return fmt.Errorf("the metrics say %s, %s", linesWith(text, "muster_d"), linesWith(text, "muster_ready"))
		}
		return nil
	})
	p.run("company", "list") // what only reads, writes nothing
	if err := os.Remove(filler.Name()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "room again", func() error {
		if status, text := servertest.Fetch(t, service.address+"/readyz"); status != http.StatusOK {
			return fmt.Errorf("readyz answers %d %s", status, text)
		}
		return nil
	})
	service.end()
}

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := poll.For(time.Minute, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func linesWith(text, part string) (found []string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) && !strings.HasPrefix(line, "#") {
			found = append(found, line)
		}
	}
	return found
}

func call(t *testing.T, method, address, body string) (int, string) {
	t.Helper()
	answer := servertest.Send(t, method, address, body)
	return answer.Status, string(answer.Body)
}

// emulated are processes that use a platform's emulator, which runs as a process too.
func emulated(t *testing.T) (p processes, address string) {
	t.Helper()
	p = processes{t: t, dir: t.TempDir()}
	emulator := p.startUntil("answers at ", "emulator", "--listen", "127.0.0.1:0")
	t.Cleanup(emulator.kill)
	return p.with("MUSTER_PLATFORM_ENDPOINT=" + emulator.address), emulator.address
}

// installation sets up a company with a platform policy and serves it.
func (p processes) installation(name string) (own processes, enterprise, policyID string, service *served) {
	p.t.Helper()
	own = p
	own.dir = filepath.Join(p.dir, name)
	if err := os.Mkdir(own.dir, 0o700); err != nil {
		p.t.Fatal(err)
	}
	own.run("company", "create", "acme", "--enable", "device-commands")
	var made struct{ PathName string }
	own.json(&made, "policy", "create", "--company", "acme", "Warehouse")
	var connected struct{ Enterprise string }
	own.json(&connected, "company", "connect", "acme")
	return own, connected.Enterprise, made.PathName[strings.LastIndex(made.PathName, "/")+1:], own.serve()
}

// enroll enrolls simulated devices in an enterprise.
func enroll(t *testing.T, emulator, enterprise, policyID string, count int) {
	t.Helper()
	var token struct{ Value string }
	eventually(t, "an enrollment token", func() error {
		status, text := call(t, http.MethodPost, emulator+"/v1/"+enterprise+"/enrollmentTokens",
			fmt.Sprintf(`{"policyName": %q}`, policyID))
		if status != http.StatusOK {
			return fmt.Errorf("%d %s", status, text)
		}
		return json.Unmarshal([]byte(text), &token)
	})
	if status, text := call(t, http.MethodPost, emulator+"/emulator/v1/devices",
		fmt.Sprintf(`{"enrollmentToken": %q, "count": %d}`, token.Value, count)); status != http.StatusOK {
		t.Fatalf("enrolling: %d %s", status, text)
	}
}

// Two installations that share a subscription miss no device, and are told of it.
func TestServe_SharedSubscription(t *testing.T) {
	t.Parallel()
	p, emulator := emulated(t)
	a, enterpriseA, policyA, serviceA := p.installation("a")
	b, enterpriseB, policyB, serviceB := p.installation("b")
	serviceA.end() // all notifications of A go to B first
	enroll(t, emulator, enterpriseA, policyA, 40)
	serviceA = a.serve()
	serviceB.end()
	enroll(t, emulator, enterpriseB, policyB, 5)
	serviceB = b.serve()
	for want, own := range map[int]processes{40: a, 5: b} {
		// Each notification reaches the one or the other by chance, again and again.
		if err := poll.For(5*time.Minute, func() error {
			var active []any
			own.json(&active, "asset", "list", "--company", "acme", "--status", "ACTIVE")
			if len(active) != want {
				return fmt.Errorf("%d are ACTIVE", len(active))
			}
			return nil
		}); err != nil {
			t.Fatalf("%d devices: %v", want, err)
		}
	}
	for foreign, own := range map[string]processes{enterpriseB: a, enterpriseA: b} {
		if f := own.doctor("shared")["foreign notifications"]; f.Status != "warning" || !strings.Contains(f.Detail, foreign) ||
			!strings.Contains(f.Remedy, "a subscription of its own") {
			t.Errorf("the doctor says %+v, want %s", f, foreign)
		}
	}
	_, metrics := servertest.Fetch(t, serviceA.address+"/metrics")
	if counted := linesWith(metrics, `kind="ENROLLMENT",outcome="foreign"`); len(counted) != 1 || strings.HasSuffix(counted[0], " 0\n") {
		t.Errorf("no foreign notification is counted: %s", counted)
	}
	serviceA.end()
	serviceB.end()
	if n := strings.Count(serviceA.log.String(), "another installation's enterprise"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
}

// An enterprise that the platform lost is found, and given up; kills in between change
// nothing about the end.
func TestDisconnect_LostEnterpriseWithKills(t *testing.T) {
	t.Parallel()
	p, emulator := emulated(t)
	own, enterprise, policyID, service := p.installation("a")
	enroll(t, emulator, enterprise, policyID, 3)
	confirm := []string{"company", "disconnect", "--company", "acme", "--confirm", "acme"}
	own.refused("while it manages devices", []string{"manages 3 devices"}, confirm...)
	if status, text := call(t, http.MethodDelete, emulator+"/v1/"+enterprise, ""); status != http.StatusOK {
		t.Fatalf("losing the enterprise: %d %s", status, text)
	}
	eventually(t, "noticed", func() error {
		var shown struct{ EnterpriseLostSince *time.Time }
		if own.json(&shown, "company", "show", "acme"); shown.EnterpriseLostSince == nil {
			return fmt.Errorf("company show says nothing")
		}
		return nil
	})
	if status, text := servertest.Fetch(t, service.address+"/readyz"); status != http.StatusOK ||
		!strings.Contains(text, "does not have the enterprise of 1 company") {
		t.Errorf("readyz answers %d %s", status, text)
	}
	if f := own.doctor("lost")["company acme"]; f.Status != "failed" ||
		!strings.Contains(f.Remedy, "muster company disconnect --company acme --confirm acme") {
		t.Errorf("the doctor says %+v", f)
	}
	for range 5 { // at other moments each
		killed := own.command(confirm...)
		if err := killed.Start(); err != nil {
			t.Fatal(err)
		}
		poll.Pause(30 * time.Millisecond)
		_ = killed.Process.Kill()
		_ = killed.Wait()
	}
	if left := own.command(append(confirm, "-o", "json")...); true {
		_ = left.Run() // refused if a run before the kill was done
	}
	own.endedAt(enterprise, 3)
	service.end()
}

// endedAt fails unless the company has no enterprise and its devices ended, and connects
// it again.
func (p processes) endedAt(enterprise string, devices int) {
	p.t.Helper()
	var shown struct{ Connected bool }
	if p.json(&shown, "company", "show", "acme"); shown.Connected {
		p.t.Errorf("the company still has %s", enterprise)
	}
	var ended []any
	if p.json(&ended, "asset", "list", "--company", "acme", "--status", "DELETED"); len(ended) != devices {
		p.t.Errorf("%d devices ended, want %d", len(ended), devices)
	}
	if log := p.run("activity", "list", "--company", "acme", "-o", "json"); strings.Count(log, `"company.disconnected"`) != 1 {
		p.t.Errorf("the activity log names it %d times", strings.Count(log, `"company.disconnected"`))
	}
	p.run("company", "connect", "acme")
}

// A living enterprise is given up once, wherever the command is killed.
func TestDisconnect_KilledAtThePlatform(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]string{"before": `"delayMs": 30000`,
		"after": `"delayMs": 30000, "afterEffect": true, "dropConnection": true`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, emulator := emulated(t)
			own, enterprise, _, service := p.installation("a")
			if status, text := call(t, http.MethodPost, emulator+"/emulator/v1/faults",
				`{"method": "delete", "times": 1, `+fault+`}`); status >= 300 {
				t.Fatalf("the fault: %d %s", status, text)
			}
			confirm := []string{"company", "disconnect", "--company", "acme", "--confirm", "acme"}
			killed := own.command(confirm...)
			if err := killed.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "asked", func() error {
				if _, text := servertest.Fetch(t, emulator+"/emulator/v1/calls"); !strings.Contains(text, `"method":"delete"`) &&
					!strings.Contains(text, `"method": "delete"`) {
					return fmt.Errorf("the platform was not asked")
				}
				return nil
			})
			_ = killed.Process.Kill()
			_ = killed.Wait()
			var shown struct{ DisconnectingSince *time.Time }
			if own.json(&shown, "company", "show", "acme"); shown.DisconnectingSince == nil {
				t.Error("company show does not say that it is not finished")
			}
			if f := own.doctor("killed")["company acme"]; f.Status != "failed" || !strings.Contains(f.Detail, "not finished") {
				t.Errorf("the doctor says %+v", f)
			}
			own.run(confirm...)
			own.endedAt(enterprise, 0)
			service.end()
		})
	}
}
