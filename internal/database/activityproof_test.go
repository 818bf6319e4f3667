package database_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/company"
)

// note records n entries.
func (f *fixture) note(n int) {
	f.Helper()
	for i := range n {
		f.clock.Advance(time.Second)
		ctx := access.WithNote(f.Context(), access.Note{Reason: fmt.Sprint("because ", i), Ticket: "T-1"})
		f.ok(f.db.RecordActivity(ctx, f.company.ID,
			activity.Event{Action: activity.AssetChanged, Target: activity.Target{Name: fmt.Sprint("n", i)},
				Changes: []activity.Change{{Field: "a", Before: "<1>", After: "2"}}}))
	}
}

func (f *fixture) verify() activity.Verification {
	f.Helper()
	v, err := f.keeper().Verify(f.Context(), f.company.ID)
	f.ok(err)
	return v
}

// An entry that a writer of the database makes up does not verify: it has no proof,
// another entry's, or one of his own.
func TestForgedEntry_DoesNotVerify(t *testing.T) {
	for name, proof := range map[string]string{"none": `''`, "another's": "proof", "of another key": `'k.AAAA'`} {
		t.Run(name, func(t *testing.T) {
			withCompany(t, func(f *fixture) {
				f.note(3)
				if v := f.verify(); !v.Sound() || v.Checked != 4 || v.Head.ProvedFrom != 1 {
					f.Fatalf("before: %+v", v)
				}
				f.tamper(
					`INSERT INTO activity (company_id, at, id, actor_kind, actor_id, actor_user_id, actor_name, actor_prefix, area, action,
						target_kind, target_id, target_name, outcome, reference, changes, request_id, address, client, reason, ticket,
							proof)
					SELECT company_id, at + 1000, 'forged', 'USER', 'u1', 'u1', 'Ada', '', area, action, target_kind, target_id,
						target_name, outcome,
						reference, changes, request_id, address, client, reason, ticket, ` + proof +
						` FROM activity WHERE target_name = 'n2'`)
				log := &bytes.Buffer{}
				k := f.keeper()
				k.Log = slog.New(slog.NewTextHandler(log, nil))
				if v, err := k.Verify(f.Context(), f.company.ID); err != nil || v.Sound() || v.Broken != 5 ||
					!strings.Contains(v.Why, "no proof") {
					f.Errorf("after: %+v, %v", v, err)
				}
				if !strings.Contains(log.String(), "activity entry without proof") || !strings.Contains(log.String(), "entry=forged") {
					f.Errorf("the log: %s", log)
				}
			})
		})
	}
}

// Entries from before there were proofs are covered by the chain; from the first proof on,
// each needs one. A company without new entries is no exception.
func TestProofs_BeginWithTheUpgrade(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.db.ProveWith(nil)
		old := f.newCompany("idle")
		f.company = f.newCompany("busy")
		for _, c := range []company.Company{old, f.company} { // a service from before proofs signed their heads
			h := activity.Head{CompanyID: c.ID, First: 1}
			f.tamper(fmt.Sprintf(`UPDATE activity_heads SET signature = '%x' WHERE company_id = '%s'`,
				newSigner().SignStatement(h.Statement()), c.ID))
		}
		f.note(2)
		f.db.ProveWith(prover{newSigner()})
		f.note(1)
		f.ok(f.keeper().Seal(f.Context()))
		if v := f.verify(); !v.Sound() || v.Checked != 4 || v.Head.ProvedFrom != 4 {
			f.Errorf("at the upgrade: %+v", v)
		}
		if v, err := f.keeper().Check(f.Context(), old.ID); err != nil || !v.Sound() || v.Head.ProvedFrom != 2 {
			f.Errorf("a company without new entries: %+v, %v", v, err)
		}
		f.db.ProveWith(nil)
		f.note(1)
		if v := f.verify(); v.Sound() || v.Broken != 5 {
			f.Errorf("one without proof afterwards: %+v", v)
		}
		if _, err := f.keeper().Restart(f.Context(), f.company.ID, activity.Target{}, "known"); err != nil {
			f.Fatal(err)
		}
		if v := f.verify(); v.Checked != 5 || v.Broken != v.Head.Last {
			f.Errorf("after a restart by a program without keys only its own entry lacks a proof: %+v", v)
		}
	})
}

// A service gives no entry a place while a restart takes entries out of the chain, which would go on
// for as long. A restart that is interrupted after its first transaction is run again.
func TestRestart_BesideAService(t *testing.T) {
	withCompany(t, func(f *fixture) {
		service := f.keeper()
		alarm := 0
		service.Alarm = func(broken int) { alarm = broken }
		f.note(4)
		f.ok(service.Seal(f.Context()))
		f.tamper(`UPDATE activity SET actor_name = 'framed', seq = seq + 5000 WHERE seq = 4`) // the restart needs three transactions
		second, before := f.open(t), f.signatures()
		second.ProveWith(prover{newSigner()})
		ctx, kill := context.WithCancel(f.Context())
		rounds := 0
		second.OnStatement(func(query string, _ []any) {
			if strings.HasPrefix(query, "SELECT COALESCE(MAX(e.seq)") {
				if rounds++; rounds == 1 {
					kill() // once this transaction has ended
				}
			}
		})
		command := f.keeper()
		command.Store = second
		if _, err := command.Restart(ctx, f.company.ID, activity.Target{}, "known"); err == nil || rounds != 1 {
			f.Fatalf("the restart was not interrupted: %v, %d rounds", err, rounds)
		}
		placed := func() string {
			all, err := f.db.Text(f.Context(), `SELECT id || ' ' || seq FROM activity WHERE seq > 0 ORDER BY seq`)
			f.ok(err)
			return fmt.Sprint(len(all), all)
		}
		left := placed()
		for _, sealer := range []*activity.Sealer{service, f.keeper()} { // one that has seen the chain, and one that starts
			f.ok(sealer.Seal(f.Context()))
			f.ok(sealer.Forget(f.Context(), f.clock.Now()))
			f.ok(sealer.Inspect(f.Context()))
			equal(f, "entries with a place, while it is restarted", placed(), left)
			if sealer.Broken(f.company.ID) == "" {
				f.Error("the chain is not reported as broken")
			}
		}
		equal(f, "alarm", alarm, 1)
		if now := f.signatures(); len(now) != 1 || slices.Equal(now, before) {
			f.Errorf("heads: %v, before %v", now, before)
		}
		log := &bytes.Buffer{}
		service.Log = slog.New(slog.NewTextHandler(log, nil))
		f.ok(service.Note(f.Context()))
		equal(f, "noted heads", log.String(), "")

		if _, err := command.Restart(f.Context(), f.company.ID, activity.Target{}, "known"); err != nil || rounds != 3 {
			f.Errorf("run again: %v after %d transactions in all, want 3", err, rounds)
		}
		f.note(1)
		f.ok(service.Seal(f.Context()))
		if v := f.verify(); !v.Sound() || v.Checked != 7 {
			f.Errorf("after the restart: %+v", v)
		}
		equal(f, "alarm at the end", alarm, 0)
	})
}

// A chain that was set back to its beginning while no service ran takes no entries without
// proofs, and neither does one that a program without the keys began.
func TestProofs_OfAChainThatHasNotBegun(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.note(3)
		if v := f.verify(); !v.Sound() || v.Head.ProvedFrom != 1 || v.Unproved() != 0 {
			f.Fatalf("before: %+v", v)
		}
		f.tamper(`UPDATE activity SET actor_name = 'Bob (framed)', proof = '', seq = 0, hash = ''`)
		f.tamper(`UPDATE activity_heads SET first_seq = 1, anchor = '', last_seq = 0, hash = '', signature = '', proved_from = 0`)
		if v := f.verify(); v.Sound() || v.Broken != 1 || !strings.Contains(v.Why, "no proof") {
			f.Errorf("begun again: %+v", v)
		}
		f.db.ProveWith(nil)
		f.company = f.newCompany("by hand")
		f.db.ProveWith(prover{newSigner()})
		f.note(1)
		if v := f.verify(); v.Sound() || v.Broken != 1 {
			f.Errorf("begun without the keys: %+v", v)
		}
		if _, err := f.keeper().Restart(f.Context(), f.company.ID, activity.Target{}, "known"); err != nil {
			f.Fatal(err)
		}
		if v := f.verify(); !v.Sound() || v.Unproved() == 0 {
			f.Errorf("restarted: %+v", v)
		}
	})
}

// The signed chain of a company begins with head number 0, where the keys are at hand.
func TestChain_BeginsWithHeadZero(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.db.ProveWith(newSigner())
		made := f.newCompany("signed")
		log := &bytes.Buffer{}
		k := f.keeper()
		k.Log = slog.New(slog.NewTextHandler(log, nil))
		f.ok(k.Note(f.Context()))
		if !strings.Contains(log.String(), "number=0") || strings.Count(log.String(), "activity head") != 1 {
			f.Errorf("the log: %s", log)
		}
		f.tamper(`UPDATE activity_heads SET proved_from = 7 WHERE company_id = '` + made.ID + `'`)
		if v, err := f.keeper().Verify(f.Context(), made.ID); err != nil || v.Sound() {
			f.Errorf("a head that was changed: %+v, %v", v, err)
		}
	})
}

// An export verifies without the database, whole or a part, and nothing in it can be changed.
func TestExport_VerifiesOffline(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.note(3)
		f.verify()
		heads := &bytes.Buffer{}
		k := f.keeper()
		k.Log = slog.New(slog.NewJSONHandler(heads, nil))
		f.ok(k.Note(f.Context()))
		f.note(2)
		f.verify()
		k.Log = slog.New(slog.NewTextHandler(heads, nil))
		f.ok(k.Note(f.Context()))
		f.note(1) // has no place yet
		export := func(since time.Time) string {
			var out bytes.Buffer
			f.ok(activity.ExportChain(f.Context(), f.db, f.company.ID, since, newSigner(), &out))
			return out.String()
		}
		check := func(export, heads string, s activity.Signer) activity.Offline {
			f.Helper()
			o, err := activity.VerifyExport(strings.NewReader(export), strings.NewReader(heads), s)
			f.ok(err)
			return o
		}
		whole := export(time.Time{})
		o := check(whole, heads.String(), newSigner())
		want := o
		want.Checked, want.Unsealed, want.Compared, want.Older, want.Proofs = 6, 1, 2, 0, true
		if equal(f, "whole", o, want); !o.Sound() {
			f.Errorf("whole: %+v", o)
		}
		if o := check(whole, heads.String(), nil); !o.Sound() || o.Proofs || o.Key == "" {
			f.Errorf("without the key file: %+v", o)
		}
		part := export(f.clock.Now().Add(-time.Second))
		o = check(part, heads.String(), newSigner())
		want = o
		want.Checked, want.From, want.Compared, want.Older = 1, 6, 1, 1
		if equal(f, "a part", o, want); !o.Sound() {
			f.Errorf("a part: %+v", o)
		}
		for from, to := range map[string]string{"because 1": "because 7", `"T-1"`: `"T-2"`, `"n0"`: `"n9"`,
			`"before":"<1>"`: `"before":"<3>"`,
			`"outcome":"OK"`: `"outcome":"FAILED"`, `"anchor":""`: `"anchor":"00"`, `"last":6`: `"last":5`,
			`"provedFrom":1`: `"provedFrom":7`} {
			for what, text := range map[string]string{"whole": whole, "part": part} {
				if !strings.Contains(text, from) {
					continue
				}
				if o := check(strings.Replace(text, from, to, 1), heads.String(), newSigner()); o.Sound() {
					f.Errorf("%s: %s instead of %s is taken", what, to, from)
				}
			}
		}
		lines := strings.SplitAfter(whole, "\n")
		for i := 1; i < len(lines)-2; i++ { // the newest has no place, and is not missed
			if o := check(strings.Join(append(append([]string{}, lines[:i]...), lines[i+1:]...), ""), heads.String(),
				newSigner()); o.Sound() && i != len(lines)-3 {
				f.Errorf("without line %d it is taken", i)
			}
		}
		if _, err := activity.VerifyExport(strings.NewReader(strings.Join(lines[:len(lines)-2], "")), nil, newSigner()); err == nil {
			f.Error("without its head it is taken")
		}
		// What other readers of JSON could read otherwise is refused.
		for what, change := range map[string][2]string{
			"another case": {`"outcome":"`, `"Outcome":"REFUSED","outcome":"`}, "a member twice": {`"action":"`, `"action":"x","action":"`},
			"a long s":          {`"action":"`, `"re\u017fon":"x","action":"`},
			"an unknown member": {`"action":"`, `"approvedBy":"the operator","action":"`}, "two on a line": {"}\n", "}{}\n"},
			"a head with more": {`"provedFrom":`, `"ProvedFrom":1,"provedFrom":`}, "a head twice": {`{"head":`, `{"head":{},"head":`},
		} {
			changed := strings.Replace(whole, change[0], change[1], 1)
			if _, err := activity.VerifyExport(strings.NewReader(changed), nil, newSigner()); err == nil || changed == whole {
				f.Errorf("%s is taken: %v", what, err)
			}
		}
		// A chain that was begun again, with the same keys, does not continue the heads.
		f.tamper(`UPDATE activity SET seq = 0, hash = ''`)
		f.tamper(`DELETE FROM activity_heads`)
		_, err := f.keeper().Restart(f.Context(), f.company.ID, activity.Target{}, "an exercise")
		f.ok(err)
		if o := check(export(time.Time{}), heads.String(), newSigner()); !o.Sound() || o.Compared != 0 || o.Older != 2 {
			f.Errorf("a chain that was restarted says which heads it does not continue: %+v", o)
		}
		if o := check(part, heads.String()+export(time.Time{}), newSigner()); o.Sound() {
			f.Error("an export that ends before a noted head is taken")
		}
	})
}

func FuzzVerifyExport(f *testing.F) {
	f.Add(`{"head":{"companyId":"c","first":1,"anchor":"","last":1,"hash":"h","signature":"00"},"before":"","keys":["AAAA"]}`,
		`msg="activity head" head="{}"`)
	f.Add(`{"id":"a","seq":1}`+"\n"+`{"head":{}}`, `{"head":"{}"}`)
	f.Fuzz(func(t *testing.T, export, heads string) {
		if o, err := activity.VerifyExport(strings.NewReader(export), strings.NewReader(heads), newSigner()); err == nil && o.Sound() {
			t.Errorf("%q is taken: %+v", export, o)
		}
	})
}
