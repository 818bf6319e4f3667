package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/database/benchtest"
	"github.com/musterhq/muster/test/port"
)

// records compares reads of assets with those of PocketBase's records, on SQLite.
func (p *peers) records(t *testing.T) {
	database := "sqlite:" + filepath.Join(t.TempDir(), "load.db")
	fleet := benchtest.Load(t, database, *loadAssets, time.Now().Add(-time.Hour), false)
	keys := fleet.Keys(t, 100, time.Now())
	service, pocket := startUnderLoad(t, "service", database), startPocket(t, *loadAssets)
	get := func(format string, args func(n int) any) func(n int) error {
		return func(n int) error {
			return service.do(func(n int) (string, string, string, string) {
				return "GET", fmt.Sprintf(format, args(n)), keys[n%len(keys)], ""
			}, n)
		}
	}
	some := func(n int) any { return fleet.Some[n%len(fleet.Some)] }
	firstPages := func(n int) any { return n % min(50, int(fleet.Active/40)) }
	compare := func(what, goal string, callers int, ours, other func(n int) error) {
		p.run(t, &contest{what: what, unit: "a second", goal: goal}, &side{name: "Muster", callers: callers, do: ours},
			&side{name: "PocketBase", callers: callers, do: other}, perSecondOf)
	}
	compare("one asset by its id, 32 callers", "≥ 2", 32, get("/api/v1/assets/%s", some), pocket.one)
	compare("page of 20 by status, newest first, with totals, 4 callers", "report", 4,
		get("/api/v1/assets?status=ACTIVE&sort=syncedAt,desc&page=%d", firstPages), pocket.page(""))
	compare("the same; PocketBase without totals, 32 callers", "report", 32,
		get("/api/v1/assets?status=ACTIVE&sort=syncedAt,desc&page=%d", firstPages), pocket.page("&skipTotal=1"))
}

// pocket is a PocketBase with as many records, which everyone may read.
type pocket struct {
	*underLoad
	token string
	ids   []string // of some records
}

// startPocket starts one.
func startPocket(t *testing.T, records int) *pocket {
	t.Helper()
	const user, password = "load@example.com", "load-load-load"
	program, data, number := filepath.Join(*peersDir, "base"), t.TempDir(), port.Reserve(t)
	if out, err := exec.Command(program, "--dev=false", "--dir", data, "superuser", "upsert", user, password).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p := &pocket{underLoad: startPeer(t, number, program, "--dev=false", "--dir", data, "--automigrate=false", "serve", "--http",
		"127.0.0.1:"+strconv.Itoa(number))}
	var session struct{ Token string }
	p.tell(t, "POST", "/api/collections/_superusers/auth-with-password", map[string]string{"identity": user, "password": password},
		&session)
	p.token = session.Token
	p.tell(t, "PATCH", "/api/settings", map[string]any{"batch": map[string]any{"enabled": true, "maxRequests": 1000, "timeout": 60}}, nil)
	fields := []map[string]any{{"name": "synced", "type": "number"}}
	for _, name := range []string{"company", "status", "policy", "name"} {
		fields = append(fields, map[string]any{"name": name, "type": "text"})
	}
	for _, name := range []string{"custom", "tags", "specifications", "report"} {
		fields = append(fields, map[string]any{"name": name, "type": "json"})
	}
	p.tell(t, "POST", "/api/collections", map[string]any{"name": "assets", "type": "base", "fields": fields, "listRule": "", "viewRule": "",
		"indexes": []string{"CREATE INDEX by_status ON assets (company, status, synced DESC, id DESC)",
			"CREATE INDEX by_time ON assets (company, synced DESC, id DESC)"}}, nil)
	const batch = 500
	for from := 0; from < records; from += batch {
		var requests []map[string]any
		for n := from; n < min(records, from+batch); n++ {
			requests = append(requests, map[string]any{"method": "POST", "url": "/api/collections/assets/records", "body": record(n)})
		}
		var made []struct{ Body struct{ ID string } }
		p.tell(t, "POST", "/api/batch", map[string]any{"requests": requests}, &made)
		if len(p.ids) < 1000 {
			for _, one := range made {
				p.ids = append(p.ids, one.Body.ID)
			}
		}
	}
	return p
}

// record has what an asset of the benchmark's database has.
func record(n int) map[string]any {
	h := n * 48271 % 999_983
	status := "ACTIVE"
	if h%100 >= 70 {
		status = "INACTIVE"
	}
	return map[string]any{
		"company": "acme", "status": status, "policy": fmt.Sprint("policy", h/100%10), "name": fmt.Sprint("Phone ", h%977),
		"synced": 1_790_000_000_000 + h,
		"custom": map[string]string{"department": fmt.Sprint("Sales ", h%13), "location": "Oslo", "costCenter": "4711"},
		"tags":   []string{"shop", fmt.Sprint("rack ", h%5003)},
		"specifications": map[string]string{"serialNumber": fmt.Sprint("S", h), "model": "Phone 1", "manufacturer": "Acme", "brand": "Acme",
			"osVersion": "14", "securityPatchLevel": "2026-10-05"},
		"report": map[string]any{"reportedAt": "2026-11-20T09:00:00Z", "batteryLevel": h % 100},
	}
}

// tell makes a call of the administrator.
func (p *pocket) tell(t *testing.T, method, path string, body, into any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err == nil {
		var answer string
		answer, err = p.send(method, path, http.Header{"Content-Type": {"application/json"}, "Authorization": {p.token}}, string(text))
		if err == nil && into != nil {
			err = json.Unmarshal([]byte(answer), into)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// one reads a record.
func (p *pocket) one(n int) error {
	_, err := p.send("GET", "/api/collections/assets/records/"+p.ids[n%len(p.ids)], http.Header{}, "")
	return err
}

// page reads a page of 20 of the active records, the latest first.
func (p *pocket) page(parameters string) func(n int) error {
	return func(n int) error {
		const list = "/api/collections/assets/records?perPage=20&sort=-synced,-id" +
			"&filter=company%%3D%%22acme%%22%%20%%26%%26%%20status%%3D%%22ACTIVE%%22&page=%d%s"
		text, err := p.send("GET", fmt.Sprintf(list, 1+n%50, parameters), http.Header{}, "")
		if err != nil {
			return err
		}
		var answer struct{ Items []json.RawMessage }
		if err = json.Unmarshal([]byte(text), &answer); err == nil && len(answer.Items) != 20 {
			err = errors.New("not a page of 20")
		}
		return err
	}
}
