package e2e_test

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/test/port"
)

// keysOfRounds is how many keys have the budgets of the commands of every round: each
// allows ten a minute, so that none is asked again too early.
func keysOfRounds() int {
	return min(20_000, max(3000, int(float64(*peerRounds+1)*peerRound.Seconds()*2500)))
}

// durable makes PostgreSQL's commits durable, whatever the server's default is.
func durable(url string) string { return url + "&synchronous_commit=on" }

// commands compares commands on PostgreSQL: with NanoMDM, with a second replica, and
// with the floor.
func (p *peers) commands(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	if err := ops.MakeKeyFile(file, time.Now()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("MUSTER_KEY_FILE", file) // of both replicas
	url := durable(pgtest.DSN(t))
	fleet, nano := newLoadFleet(t, url, *loadAgents, keysOfRounds()), startNano(t, *loadAgents)
	trip := func(n int) error { return fleet.some(n).trip(fleet) }
	order := func(n int) error { return fleet.some(n).order(fleet) }
	checkIn := func(n int) error {
		_, err := fleet.some(n).checkIn(fleet, protocol.CheckinRequest{AgentVersion: "1"})
		return err
	}
	ours := func(do func(int) error) *side { return &side{name: "Muster", callers: 32, do: do, process: fleet.ours} }
	theirs := func(callers int, do func(int) error) *side {
		return &side{name: fmt.Sprintf("NanoMDM, %d callers", callers), callers: callers, do: do}
	}
	for _, callers := range []int{32, 2} { // it has its best at few
		p.run(t, &contest{what: "full trip of a command: sent, fetched, acknowledged", unit: "a second", goal: "≥ 4"}, ours(trip),
			theirs(callers, nano.trip), perSecondOf)
	}
	for _, callers := range []int{32, 2} {
		p.run(t, &contest{what: "check-in, nothing to fetch", unit: "a second", goal: "≥ 8"}, ours(checkIn),
			theirs(callers, nano.idle), perSecondOf)
	}
	half := len(fleet.keys) / 2
	second := &loadFleet{ours: startUnderLoad(t, "service", url), keys: fleet.keys[half:]}
	fleet.keys = fleet.keys[:half] // where its next keys are unused
	for _, c := range []struct {
		what string
		do   func(*loadAgent, *loadFleet) error
	}{{"full trips of commands", (*loadAgent).trip}, {"commands", (*loadAgent).order}} {
		both := &side{name: "two replicas", callers: 32, do: func(n int) error {
			return c.do(fleet.some(n), []*loadFleet{fleet, second}[n/len(fleet.agents)%2])
		}}
		p.run(t, &contest{what: c.what + ", two replicas against one", unit: "a second", goal: "report"}, both,
			&side{name: "one replica", callers: 32, do: func(n int) error { return c.do(fleet.some(n), fleet) }}, perSecondOf)
	}
	for _, callers := range []int{32, 2} {
		p.run(t, &contest{what: "command accepted", unit: "a second", goal: "≥ 2"}, ours(order), theirs(callers, nano.enqueue), perSecondOf)
	}
	p.againstFloor(t, "PostgreSQL", url, "≤ 4", ours(order))
}

func (p *peers) commandsSQLite(t *testing.T) {
	url := "sqlite:" + filepath.Join(t.TempDir(), "load.db")
	fleet := newLoadFleet(t, url, *loadAgents, keysOfRounds())
	p.againstFloor(t, "SQLite", url, "≤ 2.5",
		&side{name: "Muster", callers: 32, do: func(n int) error { return fleet.some(n).order(fleet) }, process: fleet.ours})
}

// againstFloor compares the CPU of a command with that of one row that is inserted and
// committed behind net/http.
func (p *peers) againstFloor(t *testing.T, engine, url, goal string, ours *side) {
	t.Helper()
	floor := startUnderLoad(t, "floor", url)
	insert := func(n int) error {
		return floor.do(func(int) (string, string, string, string) { return "POST", "/insert", "", `{"a":"x"}` }, n)
	}
	p.run(t, &contest{what: "command accepted, CPU of the service, " + engine, unit: "µs", goal: goal}, ours,
		&side{name: "one row behind net/http", callers: 32, do: insert, process: floor}, cpuOf)
}

// nano is a NanoMDM with devices that have its certificates.
type nano struct {
	*underLoad
	devices []http.Header // by which each is known
}

// startNano starts one on a database of its own, with devices.
func startNano(t *testing.T, devices int) *nano {
	t.Helper()
	url, number := durable(pgtest.DSN(t)), port.Reserve(t)
	schema, err := os.ReadFile(filepath.Join(*peersDir, "nanomdm.sql"))
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", url)
	if err == nil {
		_, err = db.Exec(string(schema))
	}
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	hour := time.Now().Add(time.Hour)
	ca, key := signed(t, &x509.Certificate{Subject: pkix.Name{CommonName: "devices"}, NotBefore: hour.Add(-2 * time.Hour),
		NotAfter: hour.Add(24 * time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	n := &nano{underLoad: startPeer(t, number, filepath.Join(*peersDir, "nanomdm"), "-listen", "127.0.0.1:"+strconv.Itoa(number), "-api",
		"load",
		"-ca", file, "-cert-header", "X-Client-Cert", "-storage", "pgsql", "-storage-dsn", url)}
	for i := range devices {
		n.devices = append(n.devices, http.Header{"X-Client-Cert": {deviceCertificate(t, i, ca, key)}})
		for _, message := range []string{
			`<key>MessageType</key><string>Authenticate</string><key>Topic</key><string>load</string>`,
			`<key>MessageType</key><string>TokenUpdate</string><key>Topic</key><string>load</string><key>PushMagic</key><string>load</string><key>Token</key><data>bG9hZA==</data>`,
		} {
			if _, err := n.tell(i, "application/x-apple-aspen-mdm-checkin", message); err != nil {
				t.Fatal(err)
			}
		}
	}
	return n
}

// deviceCertificate makes a device's certificate, in the form of RFC 9440.
func deviceCertificate(t *testing.T, n int, ca *x509.Certificate, key *ecdsa.PrivateKey) string {
	t.Helper()
	made, _ := signed(t, &x509.Certificate{Subject: pkix.Name{CommonName: udid(n)}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, ca, key)
	return ":" + base64.StdEncoding.EncodeToString(made.Raw) + ":"
}

func udid(n int) string { return fmt.Sprintf("load-%06d", n) }

// plist is a property list of one dictionary.
func plist(dict string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd"><plist version="1.0"><dict>` +
		dict + `</dict></plist>`
}

// tell sends a device's message and returns the answer.
func (n *nano) tell(device int, kind, dict string) (string, error) {
	headers := n.devices[device%len(n.devices)].Clone()
	headers.Set("Content-Type", kind)
	return n.send("PUT", "/mdm", headers, plist(`<key>UDID</key><string>`+udid(device%len(n.devices))+`</string>`+dict))
}

// idle asks for a command, of which there is none.
func (n *nano) idle(device int) error {
	text, err := n.tell(device, "application/x-apple-aspen-mdm", `<key>Status</key><string>Idle</string>`)
	if err == nil && text != "" {
		err = errors.New("there is a command")
	}
	return err
}

// enqueue keeps a command for a device.
func (n *nano) enqueue(device int) error {
	headers := http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte("nanomdm:load"))}}
	_, err := n.send("PUT", "/v1/enqueue/"+udid(device%len(n.devices))+"?nopush=1", headers,
		plist(`<key>Command</key><dict><key>RequestType</key><string>DeviceInformation</string></dict><key>CommandUUID</key><string>`+
			rand.Text()+`</string>`))
	return err
}

// trip is a command there and its result back.
func (n *nano) trip(device int) error {
	if err := n.enqueue(device); err != nil {
		return err
	}
	text, err := n.tell(device, "application/x-apple-aspen-mdm", `<key>Status</key><string>Idle</string>`)
	if err != nil {
		return err
	}
	_, command, found := strings.Cut(text, "<key>CommandUUID</key>")
	if !found {
		return fmt.Errorf("no command was offered: %.200q", text)
	}
	_, command, _ = strings.Cut(command, "<string>")
	command, _, _ = strings.Cut(command, "</string>")
	_, err = n.tell(device, "application/x-apple-aspen-mdm", `<key>Status</key><string>Acknowledged</string><key>CommandUUID</key><string>`+
		command+`</string>`)
	return err
}
