package e2e_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/internal/surface/cli"
)

// rawDatabase opens the file of an environment's database beside the service, as an
// attacker does who has no keys.
func rawDatabase(t *testing.T, env *servertest.Env) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(env.Database, "sqlite:")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// A forged log stays recognizable: the service does not sign it, says so in
// metrics, log, page and command line, and goes on only by the operator's command.
func TestChain_ForgeryIsNotSigned(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(*testing.T, *sql.DB, *servertest.Env, string){
		"reset": func(t *testing.T, db *sql.DB, _ *servertest.Env, _ string) {
			alter(t, db, `UPDATE activity SET actor_name = 'Bob (framed)' WHERE action = 'company.changed'`)
			alter(t, db, `DELETE FROM activity WHERE action = 'signin.opened'`)
			alter(t, db, `UPDATE activity SET seq = 0, hash = ''`)
			alter(t, db, `DELETE FROM activity_heads`)
		},
		"begun again": func(t *testing.T, db *sql.DB, _ *servertest.Env, _ string) {
			alter(t, db, `UPDATE activity SET actor_name = 'Bob (framed)', seq = 0, hash = ''`)
			alter(t, db, `UPDATE activity_heads SET first_seq = 1, anchor = '', last_seq = 0, hash = '', signature = ''`)
		},
		"computed again": recompute,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := servertest.New(t)
			replica := env.Start()
			acme := env.Company("acme", access.Settings{})
			admin := env.Browser(acme, account.Admin).User
			v := replica.PortalClient(t, admin)
			v.Post("/access/gates", "gate", "policyChanges", "on", "true").Want(t, 200)
			if page := v.Post("/activity/verify").Want(t, 200).Body; !strings.Contains(page, "head signed by this service") {
				t.Fatal("the chain is not sound before the forgery")
			}
			forge(t, rawDatabase(t, env), env, acme.ID)
			replica.PortalClient(t, admin) // a sign-in: one more entry
			env.Eventually("the alarm is raised", func() error {
				if _, text := servertest.Fetch(t, replica.PublicURL()+"/metrics"); metric(t, text, "muster_activity_chains_broken") != 1 {
					return errors.New("the metric does not say so")
				}
				return nil
			})
			if page := v.Post("/activity/verify").Want(t, 200).Body; !strings.Contains(page, "The chain is broken") {
				t.Error("the forged chain verifies")
			}
			if page := v.Get("/activity").Want(t, 200).Body; !strings.Contains(page, "The chain of this log is broken") {
				t.Error("the activity page does not show the alarm")
			}
			if !strings.Contains(string(env.Log.Text()), "activity chain broken") {
				t.Error("the log does not say so")
			}
			if status, _ := servertest.Fetch(t, replica.PublicURL()+"/readyz"); status != 200 {
				t.Errorf("readyz answers %d; a broken log stops no service", status)
			}
			repair(t, env)
			if page := v.Post("/activity/verify").Want(t, 200).Body; !strings.Contains(page, "need no proof") {
				t.Error("the page does not warn of the entries that the restart took in")
			}
		})
	}
}

func alter(t *testing.T, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

// recompute changes an entry and every hash behind it, as anyone can.
func recompute(t *testing.T, db *sql.DB, env *servertest.Env, companyID string) {
	var all []activity.Entry
	var hash string
	if err := env.DB().WalkActivity(t.Context(), companyID, func(h activity.Head) error { hash = h.Anchor; return nil },
		func(e activity.Entry) error { all = append(all, e); return nil }); err != nil {
		t.Fatal(err)
	}
	for i := range all {
		e := &all[i]
		if e.Action == activity.CompanyChanged {
			e.Actor.Name = "Bob (framed)"
			alter(t, db, `UPDATE activity SET actor_name = ? WHERE company_id = ? AND seq = ?`, e.Actor.Name, companyID, e.Seq)
		}
		hash = e.Digest(hash)
		alter(t, db, `UPDATE activity SET hash = ? WHERE company_id = ? AND seq = ?`, hash, companyID, e.Seq)
	}
	alter(t, db, `UPDATE activity_heads SET hash = ? WHERE company_id = ?`, hash, companyID)
}

// repair verifies and restarts the chain of acme by command line.
func repair(t *testing.T, env *servertest.Env) {
	t.Helper()
	verify := &cli.ActivityVerify{}
	verify.Company, verify.Store, verify.Output, verify.KeyFile = "acme", config.Store{Database: env.Database}, "json", env.Config().KeyFile
	if text, err := runCommand(t, env, verify); err == nil || !strings.Contains(text, `"sound": false`) {
		t.Errorf("verify of the forged chain: %v\n%s", err, text)
	}
	restart := &cli.ActivityRestart{Reason: "an exercise"}
	restart.Common, restart.Company, restart.KeyFile = verify.Common, verify.Company, verify.KeyFile
	if text, err := runCommand(t, env, restart); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	text, err := runCommand(t, env, verify)
	if err != nil || !strings.Contains(text, `"sound": true`) || !strings.Contains(text, `"provedFrom": 1`) ||
		strings.Contains(text, `"provedFrom": 1,`) {
		t.Errorf("verify of the restarted chain: %v\n%s", err, text)
	}
	verify.Output = "table"
	if text, err := runCommand(t, env, verify); err != nil || !strings.Contains(text, "Warning: the entries up to") {
		t.Errorf("verify does not warn of what the restart took in: %v\n%s", err, text)
	}
}
