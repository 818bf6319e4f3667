package database_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// signer signs with a key of its own.
type signer struct{ key ed25519.PrivateKey }

func newSigner() signer { return signer{ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))} }

func (s signer) SignStatement(b []byte) []byte { return ed25519.Sign(s.key, b) }

func (s signer) PublicKeys() []ed25519.PublicKey {
	return []ed25519.PublicKey{s.key.Public().(ed25519.PublicKey)}
}

func (s signer) Prove(b []byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(append([]byte("secret"), b...)))
}

func (s signer) Proves(b []byte, proof string) bool { return s.Prove(b) == proof }

func (s signer) VerifyStatement(b, signature []byte) bool {
	return ed25519.Verify(s.key.Public().(ed25519.PublicKey), b, signature)
}

// prover proves entries and signs nothing.
type prover struct{ signer signer }

func (p prover) Prove(b []byte) string { return p.signer.Prove(b) }

func (f *fixture) keeper() *activity.Sealer {
	return &activity.Sealer{Store: f.db, Signer: newSigner(), Now: f.clock.Now}
}

// tamper runs a statement on the database as a person with access to it would.
func (f *fixture) tamper(statement string) {
	f.Helper()
	if f.name != "sqlite" {
		c, err := pgx.Connect(f.Context(), f.url)
		f.ok(err)
		defer func() { f.ok(c.Close(f.Context())) }()
		_, err = c.Exec(f.Context(), statement)
		f.ok(err)
		return
	}
	pool, err := sql.Open("sqlite", strings.TrimPrefix(f.url, "sqlite:"))
	f.ok(err)
	defer func() { f.ok(pool.Close()) }()
	_, err = pool.ExecContext(f.Context(), statement)
	f.ok(err)
}

// log is everything recorded, oldest first, as "action target".
func (f *fixture) log(filter activity.Filter) []string {
	f.Helper()
	filter.CompanyID = f.company.ID
	entries, err := f.db.Activity(f.Context(), filter, activity.Cursor{}, activity.MaxPage)
	f.ok(err)
	lines := make([]string, len(entries))
	for i, e := range entries {
		lines[len(entries)-1-i] = string(e.Action)
	}
	return lines
}

// Each change leaves its entry, with who the context says; one that fails, and
// one that changes nothing, leaves none.
func TestActivity_ChangesAreRecorded(t *testing.T) {
	withCompany(t, func(f *fixture) {
		ctx := access.WithOrigin(f.Context(), access.Origin{Address: "192.0.2.7", Client: "curl/8\x00"})
		ctx = access.WithActor(ctx, access.Actor{Kind: access.User, ID: "u9", UserID: "u9", Name: "Grace"}, "req-1")
		before := len(f.log(activity.Filter{}))
		f.clock.Advance(time.Millisecond)
		key, text := apikey.New(f.company.ID, "ci", "u9", access.DevicesRead, f.clock.Now(), time.Time{})
		f.ok(f.db.CreateKey(ctx, key))
		for range 2 {
			f.clock.Advance(time.Millisecond)
			_, err := f.db.RevokeKey(ctx, f.company.ID, key.ID, f.clock.Now())
			f.ok(err)
		}
		f.clock.Advance(time.Millisecond)
		_, err := f.db.UpdateCompany(ctx, f.company.ID, company.Change(func(c *company.Company) { c.Settings.PolicyChanges = true }))
		f.ok(err)
		_, err = f.db.UpdateCompany(ctx, f.company.ID, company.Change(func(*company.Company) {}))
		f.ok(err)
		_, err = f.db.UpdateCompany(ctx, f.company.ID, company.Change(func(c *company.Company) { c.Name = "" }))
		f.code(fault.InvalidArguments, err)
		f.clock.Advance(time.Millisecond)
		f.ok(f.db.CreateUser(ctx, account.User{ID: resource.NewID(), CompanyID: f.company.ID, Email: "a@b.example", Role: account.Viewer,
			PasswordHash: "a-secret-hash", CreatedAt: f.clock.Now()}))

		want := []string{"key.created", "key.revoked", "company.changed", "user.created"}
		if got := f.log(activity.Filter{})[before:]; !slices.Equal(got, want) {
			f.Fatalf("recorded %v, want %v", got, want)
		}
		entries, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: f.company.ID, Area: "key"}, activity.Cursor{}, 10)
		f.ok(err)
		e := entries[1]
		revoked := e
		revoked.Actor.Name, revoked.RequestID, revoked.Address, revoked.Client = "Grace", "req-1", "192.0.2.7", "curl/8"
		revoked.Target, revoked.Outcome = activity.Target{Kind: activity.Key, ID: key.ID, Name: "ci"}, activity.OK
		equal(f, "the entry", e, revoked)
		everything := fmt.Sprint(f.db.Text(f.Context(), `SELECT * FROM activity`))
		for _, secret := range []string{text, text[12:], "a-secret-hash"} {
			if strings.Contains(everything, secret) {
				f.Errorf("the record holds the secret %q", secret)
			}
		}
		switches, err := f.db.Switches(f.Context(), f.company.ID)
		f.ok(err)
		if i := slices.IndexFunc(switches, func(s company.Switch) bool { return s.Gate == access.PolicyChanges }); i < 0 ||
			switches[i].By.Name != "Grace" || !switches[i].Enabled {
			f.Errorf("the switches are %+v", switches)
		}
	})
}

// noVerbs knows no command.
func noVerbs(string) (past, base, noun string) { return "", "", "" }

// An entry names its first changes, says how many more there were, and has no text as callers wrote it.
func TestActivity_ChangesAreBounded(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d1", f.newPolicy("Office").ID)
		named := func(n int) []activity.Change {
			f.Helper()
			custom := map[string]*string{"\x1b[2J\u202e  0": new("x\a")}
			for i := range n - 1 {
				custom[fmt.Sprintf("%04d", i)] = new(fmt.Sprint(n))
			}
			f.clock.Advance(time.Millisecond)
			_, err := f.db.EditAsset(f.Context(), f.company.ID, a.ID, asset.Edit{CustomData: custom})
			f.ok(err)
			entries, err := f.db.Activity(f.Context(),
				activity.Filter{CompanyID: f.company.ID, AssetID: a.ID, Action: activity.AssetChanged}, activity.Cursor{}, 1)
			f.ok(err)
			equal(f, "the sentence", strings.Contains(entries[0].Tell(noVerbs).String(), "changed what is noted of"), true)
			return entries[0].Changes
		}
		changes := named(100)
		equal(f, "changes", len(changes), 100)
		equal(f, "the first", changes[0], activity.Change{Field: "[2J 0", After: "x"})
		changes = named(1000) // the first of which is as it was
		equal(f, "changes", len(changes), 101)
		equal(f, "the last", changes[100], activity.Change{Field: "more", After: "899"})
		if v, err := f.keeper().Verify(f.Context(), f.company.ID); err != nil || !v.Sound() {
			f.Errorf("the chain: %+v, %v", v, err)
		}
	})
}

// A command is recorded once with its attribution, and again when it fails.
func TestActivity_CommandsAreRecorded(t *testing.T) {
	withCompany(t, func(f *fixture) {
		a := f.enroll("d1", "").ID
		ctx := access.WithActor(f.Context(), access.Actor{Kind: access.APIKey, ID: "k1", Prefix: "abcdefgh", Name: "ci"}, "req-2")
		c := command.Command{ID: resource.NewID(), CompanyID: f.company.ID, AssetID: a, Epoch: 1, Type: command.Lock,
			State:     command.Prepared,
			CreatedAt: f.clock.Now(), IdempotencyRef: "once",
			Actor: access.Actor{Kind: access.APIKey, ID: "k1", Prefix: "abcdefgh", Name: "ci"}}
		for range 2 { // the second is the first again
			_, _, err := f.db.Begin(ctx, c, nil)
			f.ok(err)
			c.ID = resource.NewID()
		}
		filter := activity.Filter{CompanyID: f.company.ID, AssetID: a, Area: "command"}
		entries, err := f.db.Activity(f.Context(), filter, activity.Cursor{}, 10)
		f.ok(err)
		if len(entries) != 1 {
			f.Fatalf("after Begin: %+v", entries)
		}
		begun := entries[0]
		begun.Actor.Prefix, begun.State, begun.RequestID = "abcdefgh", "PREPARED", "req-2"
		equal(f, "after Begin", entries[0], begun)
		f.clock.Advance(time.Second)
		_, _, err = f.db.Advance(f.Context(), entries[0].Reference,
			command.Transition{From: []command.State{command.Prepared}, To: command.Failed, Outcome: "no"})
		f.ok(err)
		filter.Outcome = activity.Failed
		failed, err := f.db.Activity(f.Context(), filter, activity.Cursor{}, 10)
		if err != nil || len(failed) != 1 {
			f.Fatalf("after ERROR: %+v, %v", failed, err)
		}
		if failed[0].Actor.ID != "k1" || failed[0].Action != "command.lock" || failed[0].Changes[0].After != "no" {
			f.Fatalf("after ERROR: %+v", failed)
		}
	})
}

// Whatever is altered, taken away, put in or cut off, Verify reports where.
func TestActivity_TamperingIsFound(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for i := range 7 {
			f.clock.Advance(time.Second)
			f.ok(f.db.RecordActivity(f.Context(), f.company.ID,
				activity.Event{Action: activity.AssetChanged, Target: activity.Target{Name: fmt.Sprint("n", i)}}))
		}
		verdict := func() activity.Verification {
			v, err := f.keeper().Verify(f.Context(), f.company.ID)
			f.ok(err)
			return v
		}
		if v := verdict(); !v.Sound() || v.Checked != 8 || v.Head.Last != 8 {
			f.Fatalf("untouched: %+v", v)
		}
		for _, damage := range []struct {
			name, do, undo string
			at             int64
		}{
			{"altered", `UPDATE activity SET target_name = 'other' WHERE target_name = 'n2'`,
				`UPDATE activity SET target_name = 'n2' WHERE target_name = 'other'`, 4},
			{"actor", `UPDATE activity SET actor_id = 'x' WHERE seq = 5`, `UPDATE activity SET actor_id = 'service' WHERE seq = 5`, 5},
			{"taken away", `UPDATE activity SET seq = -3 WHERE seq = 3`, `UPDATE activity SET seq = 3 WHERE seq = -3`, 3},
			{"last taken away", `UPDATE activity SET seq = -8 WHERE seq = 8`, `UPDATE activity SET seq = 8 WHERE seq = -8`, 8},
			{"cut off", `UPDATE activity_heads SET last_seq = 7`, `UPDATE activity_heads SET last_seq = 8`, 7},
			{"beginning", `UPDATE activity_heads SET first_seq = 2`, `UPDATE activity_heads SET first_seq = 1`, 8},
		} {
			f.tamper(damage.do)
			if v := verdict(); v.Sound() || v.Broken != damage.at {
				f.Errorf("%s: %+v", damage.name, v)
			}
			f.tamper(damage.undo)
		}
		if v := verdict(); !v.Sound() {
			f.Errorf("corrected: %+v", v)
		}
	})
}

// What is over is removed from the beginning, and the rest still verifies.
func TestActivity_OldEntriesAreRemoved(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for range 4 {
			f.clock.Advance(24 * time.Hour)
			f.ok(f.db.RecordActivity(f.Context(), f.company.ID, activity.Event{Action: activity.AssetChanged}))
			f.ok(f.keeper().Seal(f.Context()))
		}
		f.clock.Advance(company.DefaultKeepActivity - 36*time.Hour)
		f.ok(f.keeper().Forget(f.Context(), f.clock.Now()))
		v, err := f.keeper().Verify(f.Context(), f.company.ID)
		f.ok(err)
		if !v.Sound() || v.Checked != 2 || v.Head.First != 4 || len(f.log(activity.Filter{})) != 2 {
			f.Errorf("%+v", v)
		}
	})
}

// Every filter gives what a plain loop over everything gives, page by page.
func TestActivity_Filters(t *testing.T) {
	withCompany(t, func(f *fixture) {
		policy := f.newPolicy("Warehouse")
		mine, other := f.enroll("d1", policy.ID).ID, f.enroll("d2", "").ID
		start := f.clock.Now()
		for i := range 60 {
			f.clock.Advance(time.Duration(i%3) * time.Minute)
			e := activity.Event{Action: activity.AssetChanged, Outcome: activity.Outcomes()[i%4],
				Actor: access.Actor{Kind: []access.Kind{access.User, access.APIKey, access.Connection}[i%3], ID: fmt.Sprint("a", i%5),
					UserID: fmt.Sprint("a", i%5),
					Name:   []string{"Ada 100%", "Bot_1", "Bot 1"}[i%3]},
				Target: activity.Target{Kind: activity.Asset, ID: []string{mine, other}[i%2], Name: []string{"Pixel 8", "Galaxy"}[i%2]}}
			if i%7 == 0 {
				e.Action, e.Target = activity.PolicySaved, activity.Target{Kind: activity.Policy, ID: policy.ID}
				e.Reference = []string{"", "prp_1"}[i%2]
			}
			if i%11 == 0 {
				e.Action = activity.Command("LOCK")
			}
			f.ok(f.db.RecordActivity(f.Context(), f.company.ID, e))
		}
		everything, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: f.company.ID}, activity.Cursor{}, activity.MaxPage)
		f.ok(err)
		for title, c := range map[string]struct {
			filter activity.Filter
			keep   func(activity.Entry) bool
		}{
			"all":    {activity.Filter{}, func(activity.Entry) bool { return true }},
			"people": {activity.Filter{Actor: access.User}, func(e activity.Entry) bool { return e.Actor.Kind == access.User }},
			"one": {activity.Filter{Actor: access.User, ActorID: "a2"}, func(e activity.Entry) bool {
				return e.Actor.Kind == access.User && e.Actor.ID == "a2"
			}},
			"device":   {activity.Filter{AssetID: mine}, func(e activity.Entry) bool { return e.Target.ID == mine }},
			"target":   {activity.Filter{TargetID: policy.ID}, func(e activity.Entry) bool { return e.Target.ID == policy.ID }},
			"area":     {activity.Filter{Area: "asset"}, func(e activity.Entry) bool { return e.Action.Area() == "asset" }},
			"commands": {activity.Filter{Area: "command"}, func(e activity.Entry) bool { return e.Action.Area() == "command" }},
			"action": {activity.Filter{Action: activity.PolicySaved}, func(e activity.Entry) bool {
				return e.Action == activity.PolicySaved
			}},
			"actions": {activity.Filter{Actions: []activity.Action{activity.PolicySaved, activity.Command("LOCK")}},
				func(e activity.Entry) bool {
					return e.Action == activity.PolicySaved || e.Action == activity.Command("LOCK")
				}},
			"names": {activity.Filter{Text: "pixel bot"}, func(e activity.Entry) bool {
				return e.Target.Name == "Pixel 8" && strings.HasPrefix(e.Actor.Name, "Bot")
			}},
			"signs": {activity.Filter{Text: "0% BOT_"}, func(activity.Entry) bool { return false }},
			"sign":  {activity.Filter{Text: "BOT_"}, func(e activity.Entry) bool { return e.Actor.Name == "Bot_1" }},
			"once": {activity.Filter{Once: true}, func(e activity.Entry) bool {
				return (e.Action.Area() != "command" || e.Outcome == activity.OK || e.Outcome == activity.Refused) &&
					(e.Action != activity.PolicySaved || e.Reference == "")
			}},
			"failed": {activity.Filter{Outcome: activity.Failed}, func(e activity.Entry) bool { return e.Outcome == activity.Failed }},
			"well":   {activity.Filter{Outcome: activity.OK}, func(e activity.Entry) bool { return e.Outcome == activity.OK }},
			"time": {activity.Filter{From: start.Add(10 * time.Minute), To: start.Add(40 * time.Minute)}, func(e activity.Entry) bool {
				return !e.At.Before(start.Add(10*time.Minute)) && e.At.Before(start.Add(40*time.Minute))
			}},
			"limited": {activity.Filter{Limit: activity.Limit{UserID: "a3", Policies: []string{policy.ID}}}, func(e activity.Entry) bool {
				return e.Actor.UserID == "a3" || e.Target.ID == policy.ID || e.Target.ID == mine
			}},
			"limited to nothing": {activity.Filter{Limit: activity.Limit{UserID: "a3", Policies: []string{}}}, func(e activity.Entry) bool {
				return e.Actor.UserID == "a3"
			}},
		} {
			var want []string
			for _, e := range everything {
				if c.keep(e) {
					want = append(want, e.ID)
				}
			}
			c.filter.CompanyID = f.company.ID
			var got []string
			for after := (activity.Cursor{}); ; {
				page, err := f.db.Activity(f.Context(), c.filter, after, 7)
				f.ok(err)
				for _, e := range page {
					got = append(got, e.ID)
				}
				if len(page) < 7 {
					break
				}
				after = activity.Of(page[6])
			}
			if len(want) == 0 && title != "signs" || !slices.Equal(got, want) {
				f.Errorf("%s: %d entries, want %d", title, len(got), len(want))
			}
			c.filter.From = start.Add(-time.Hour)
			buckets, err := f.db.ActivityDensity(f.Context(), c.filter, 10*time.Minute)
			f.ok(err)
			sum := int64(0)
			for _, b := range buckets {
				sum += b.Count
			}
			if title != "time" && sum != int64(len(want)) {
				f.Errorf("%s: the histogram counts %d, want %d", title, sum, len(want))
			}
		}
	})
}

// The export is all of the filter, in both forms, and harmless in a spreadsheet.
func TestActivity_Export(t *testing.T) {
	withCompany(t, func(f *fixture) {
		for range activity.MaxPage + 5 {
			f.ok(f.db.RecordActivity(f.Context(), f.company.ID,
				activity.Event{Action: activity.AssetChanged, Target: activity.Target{Name: "=HYPERLINK(\"x\")"}}))
		}
		_, err := f.keeper().Verify(f.Context(), f.company.ID)
		f.ok(err)
		filter := activity.Filter{CompanyID: f.company.ID, Area: "asset"}
		var table, lines bytes.Buffer
		f.ok(activity.Export(f.Context(), f.db, filter, activity.CSV, &table))
		f.ok(activity.Export(f.Context(), f.db, filter, activity.NDJSON, &lines))
		rows, err := csv.NewReader(&table).ReadAll()
		f.ok(err)
		if len(rows) != activity.MaxPage+6 || rows[1][6] != "'=HYPERLINK(\"x\")" {
			f.Errorf("%d rows, %q", len(rows), rows[1])
		}
		n := 0
		for decoder := json.NewDecoder(&lines); ; n++ {
			var line struct{ ID, Hash string }
			if err := decoder.Decode(&line); errors.Is(err, io.EOF) {
				break
			} else if err != nil || len(line.Hash) != 64 {
				f.Fatalf("line %d: %+v, %v", n, line, err)
			}
		}
		if n != activity.MaxPage+5 {
			f.Errorf("%d lines", n)
		}
		table.Reset()
		lines.Reset()
		filter.Area = "webhook"
		f.ok(activity.Export(f.Context(), f.db, filter, activity.CSV, &table))
		f.ok(activity.Export(f.Context(), f.db, filter, activity.NDJSON, &lines))
		none, err := csv.NewReader(&table).ReadAll()
		f.ok(err)
		equal(f, "a table without entries", none, rows[:1])
		equal(f, "lines without entries", lines.String(), "")
	})
}

// A chain whose head was removed, replaced or not signed by the service is
// neither extended, pruned nor signed: only an operator's command goes on.
func TestChain_BrokenIsNotExtended(t *testing.T) {
	forge := map[string]string{
		"removed":      `DELETE FROM activity_heads`,
		"replaced":     `UPDATE activity_heads SET hash = 'forged'`,
		"unsigned":     `UPDATE activity_heads SET signature = ''`,
		"set to begin": `UPDATE activity_heads SET first_seq = 1, anchor = '', last_seq = 0, hash = '', signature = ''`,
	}
	for name, statement := range forge {
		t.Run(name, func(t *testing.T) {
			withCompany(t, func(f *fixture) { f.breakChain(statement) })
		})
	}
}

func (f *fixture) breakChain(forge string) {
	f.Helper()
	alarms, log := 0, &bytes.Buffer{}
	k := f.keeper()
	k.Alarm, k.Log = func(n int) { alarms = n }, slog.New(slog.NewTextHandler(log, nil))
	event := activity.Event{Action: activity.AssetChanged}
	f.ok(f.db.RecordActivity(f.Context(), f.company.ID, event))
	f.ok(k.Seal(f.Context()))
	f.clock.Advance(25 * time.Hour) // a chain that begins now has entries that are too old
	f.tamper(`UPDATE activity SET actor_name = 'framed', seq = 0, hash = ''`)
	f.tamper(forge)
	f.ok(f.db.RecordActivity(f.Context(), f.company.ID, event))
	signature := f.signatures()
	for _, again := range []*activity.Sealer{k, f.keeper()} { // the same process, and one that starts now
		f.ok(again.Seal(f.Context()))
		f.ok(again.Inspect(f.Context()))
		f.ok(again.Forget(f.Context(), f.clock.Now()))
		if v, err := again.Verify(f.Context(), f.company.ID); err != nil || v.Sound() {
			f.Errorf("after %s: %+v, %v; want a broken chain", forge, v, err)
		}
		if again.Broken(f.company.ID) == "" {
			f.Errorf("after %s the keeper does not know that the chain is broken", forge)
		}
	}
	if got := f.signatures(); !slices.Equal(got, signature) {
		f.Errorf("the service signed a forged head: %v, before %v", got, signature)
	}
	if alarms != 1 || strings.Count(log.String(), "activity chain broken") != 1 {
		f.Errorf("%d alarms; want 1, and one line in the log:\n%s", alarms, log)
	}
	f.clock.Advance(time.Second)
	if _, err := k.Restart(f.Context(), f.company.ID, activity.Target{Kind: activity.Company, ID: f.company.ID}, "restored"); err != nil {
		f.Fatal(err)
	}
	v, err := k.Verify(f.Context(), f.company.ID)
	f.ok(err)
	if entries := f.log(activity.Filter{}); !v.Sound() || v.Checked != int64(len(entries)) ||
		entries[len(entries)-1] != string(activity.ChainRestarted) {
		f.Errorf("after a restart: %+v, %v", v, entries)
	}
	if _, err := k.Restart(f.Context(), f.company.ID, activity.Target{}, ""); fault.CodeOf(err) != fault.Refused {
		f.Errorf("a sound chain is restarted: %v", err)
	}
}

// signatures is what the database has of signed heads.
func (f *fixture) signatures() []string {
	f.Helper()
	all, err := f.db.Text(f.Context(), `SELECT company_id || ' ' || signature FROM activity_heads ORDER BY company_id`)
	f.ok(err)
	return all
}

// A head that is put back to an earlier one, with its signature, is noticed by a
// service that has seen the later one.
func TestChain_EarlierHeadIsNoticed(t *testing.T) {
	withCompany(t, func(f *fixture) {
		k := f.keeper()
		f.ok(k.Seal(f.Context()))
		early := f.signatures()
		f.ok(f.db.RecordActivity(f.Context(), f.company.ID, activity.Event{Action: activity.AssetChanged}))
		hash, err := f.db.Text(f.Context(), `SELECT hash FROM activity_heads`)
		f.ok(err)
		f.ok(k.Seal(f.Context()))
		_, signature, _ := strings.Cut(early[0], " ")
		f.tamper(`DELETE FROM activity WHERE seq = 2`)
		f.tamper(fmt.Sprintf(`UPDATE activity_heads SET last_seq = 1, hash = '%s', signature = '%s'`, hash[0], signature))
		f.ok(k.Inspect(f.Context()))
		if k.Broken(f.company.ID) == "" {
			f.Error("the earlier head is taken for the present one")
		}
	})
}

// The head of a new company is signed before anything is in the chain.
func TestChain_BeginsWithItsCompany(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.ok(f.keeper().Seal(f.Context()))
		f.tamper(`DELETE FROM activity`)
		if v, err := f.keeper().Verify(f.Context(), f.company.ID); err != nil || v.Sound() {
			f.Errorf("all entries removed: %+v, %v", v, err)
		}
	})
}
