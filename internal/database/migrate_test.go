package database_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/oauth"
)

// What an installation of the first version holds. It is written out, because
// today's code does not write yesterday's rows.
var firstRows = []string{
	`INSERT INTO companies (id, slug, name, device_commands, destructive_commands, policy_changes, provisioning, oauth_connections,
		inactive_after, enterprise, created_at)
	 VALUES ('c1', 'acme', 'Acme', TRUE, FALSE, FALSE, TRUE, FALSE, 2592000000, 'enterprises/LC1', 1700000000000)`,
	`INSERT INTO policies (id, company_id, name, name_key, type, vr_only, version, description, labels, group_name, created_at, updated_at, document)
	 VALUES ('p1', 'c1', 'Kiosk', 'kiosk', 'PLATFORM', FALSE, 3, '', '[]', '', 1700000000000, 1700000000000, '{"cameraDisabled":true}')`,
	`INSERT INTO policy_revisions (policy_id, revision, version, saved_at, saved_by_kind, saved_by_id, saved_by_name, name, origin, proposal_id,
		description, labels, group_name, document)
	 VALUES ('p1', 1, 3, 1700000000000, 'USER', 'u1', 'Ada', 'Kiosk', 'CREATED', '', '', '[]', '', '{"cameraDisabled":true}')`,
	`INSERT INTO assets (id, company_id, status, policy_id, identification, synced_at, created_at, epoch, management, device_name, specifications)
	 VALUES ('a1', 'c1', 'ACTIVE', 'p1', 'Front desk', 1700000000000, 1700000000000, 1, 'PLATFORM', 'enterprises/LC1/devices/d1',
		'{"securityPatchLevel":"2026-10-05","serialNumber":"S-1"}'),
		('a2', 'c1', 'PENDING', '', 'Spare', 0, 1700000000000, 0, '', '', '')`,
	`INSERT INTO asset_counts (company_id, status, policy_id, count) VALUES ('c1', 'ACTIVE', 'p1', 1), ('c1', 'PENDING', '', 1)`,
	`INSERT INTO device_names (company_id, name, asset_id, observed_at, ended) VALUES ('c1', 'enterprises/LC1/devices/d1', 'a1', 1700000000000, FALSE)`,
	`INSERT INTO commands (id, company_id, asset_id, epoch, type, state, created_at, feedback_at, outcome, actor_kind, actor_id, actor_prefix, actor_name,
		ref, deadline, policy_id, idempotency_ref)
	 VALUES ('m1', 'c1', 'a1', 1, 'LOCK', 'SENT', 1700000000000, 0, '', 'API_KEY', 'k1', 'abc', 'ci', 'operations/1', 0, '', '')`,
}

var everyMigration = flag.Bool("every-migration", false,
	"TestMigrate_EveryOlderVersion migrates each version on both engines; by default, every second one on each")

func TestMigrate_EveryOlderVersion(t *testing.T) {
	t.Parallel()
	versions, err := database.Versions()
	if err != nil {
		t.Fatal(err)
	}
	if len(versions) < 2 || !slices.IsSorted(versions) {
		t.Fatalf("versions %v", versions)
	}
	// Versions before the first one were only ever on the way to it.
	versions = versions[database.FirstVersion-1 : len(versions)-1]
	for i, version := range versions {
		for j, engine := range []string{"sqlite", "postgres"} {
			if i%2 == j && !*everyMigration && i != 0 && i != len(versions)-1 {
				continue // the version before and the one after are migrated on this engine
			}
			t.Run(fmt.Sprint(engine, " from ", version), func(t *testing.T) {
				t.Parallel()
				e, rows := emptyEngine(t, engine), slices.Clone(firstRows)
				for _, since := range slices.Sorted(maps.Keys(laterRows)) {
					if version >= since {
						rows = append(rows, laterRows[since]...)
					}
				}
				if err := database.MigrateTo(t.Context(), e.url, version, rows...); err != nil {
					t.Fatal(err)
				}
				checkMigrated(t, e)
			})
		}
	}
}

// laterRows are what later versions keep of the same, by the version that began
// to: nothing migrates it from then on.
var laterRows = map[int64][]string{
	360: {`UPDATE agent_devices SET orphaned = TRUE WHERE id = 'd2'`},
	350: {`INSERT INTO asset_contacts SELECT id, company_id, status, policy_id, 0 FROM assets`},
	310: {`UPDATE assets SET patch = '2026-10-05' WHERE id = 'a1'`},
	81:  {`INSERT INTO patch_counts (company_id, policy_id, month, count) VALUES ('c1', 'p1', '2026-10', 1)`},
	// An agent that ended while a command was kept for it.
	30: {`INSERT INTO commands (id, company_id, asset_id, epoch, type, state, created_at, feedback_at, outcome, actor_kind, actor_id, actor_prefix,
			actor_name, ref, deadline, policy_id, idempotency_ref)
		 VALUES ('m2', 'c1', 'a2', 1, 'LOCK', 'SENT', 1700000000000, 0, '', 'API_KEY', 'k1', 'abc', 'ci', '', 0, '', '')`,
		`INSERT INTO agent_devices (id, company_id, asset_id, epoch, role, key_alg, key_spki, last_sequence, state, wiped, capabilities, push_token,
			open_deliveries, erasing_at, enrolled_at, seen_at)
		 VALUES ('d2', 'c1', 'a2', 1, 'manager', 'ed25519', '', 0, 'DELETED', FALSE, 'null', '', 1, 0, 1700000000000, 1700000000000)`,
		`INSERT INTO agent_deliveries (command_id, device_id, type, args, created_at, deadline, final, lease_until, accepted_at)
		 VALUES ('m2', 'd2', 'LOCK', '{}', 1700000000000, 0, FALSE, 0, 0)`},
}

// emptyEngine is an engine whose database has no tables.
func emptyEngine(t *testing.T, name string) *engine {
	t.Helper()
	if name == "sqlite" {
		return &engine{name, "sqlite:" + filepath.Join(t.TempDir(), "old.db"), newClock()}
	}
	return &engine{name, pgtest.DSN(t), newClock()}
}

// checkMigrated opens an old database and looks whether everything is there
// and goes on.
func checkMigrated(t *testing.T, e *engine) {
	t.Helper()
	f := &fixture{T: t, engine: e, db: e.openAs(t, database.Upgrade)}
	var err error
	f.company, err = f.db.CompanyBySlug(t.Context(), "acme")
	f.ok(err)
	a := f.asset("a1")
	equal(f, "policy", a.Device.PolicyName, "Kiosk")
	f.checkPatches(nil, "2026-10=1")
	p, err := f.db.Policy(t.Context(), f.company.ID, "p1")
	f.ok(err)
	equal(f, "document", strings.Join(strings.Fields(string(p.Document)), ""), `{"cameraDisabled":true}`)
	history, total, err := f.db.History(t.Context(), f.company.ID, "a1", asset.Query{}.Page)
	f.ok(err)
	equal(f, "history", fmt.Sprint(total, len(history)), "1 0") // a page of none
	equal(f, "command", f.command("m1").State, command.Sent)
	f.ok(f.db.EndOrphans(t.Context(), 10))
	open, err := f.db.Text(t.Context(), `SELECT state FROM commands WHERE id = 'm2' AND state <> 'ERROR'`)
	f.ok(err)
	equal(f, "command of an agent that ended", len(open), 0)
	equal(f, "search", f.finds(asset.Filter{Text: "s-1"}), "Front desk")

	o := f.observation("enterprises/LC1/devices/d1")
	o.Gone = true
	equal(f, "ended", f.observe(o).Ended, true)
	f.checkCounts()
	f.checkTerms()
	if e.name == "sqlite" {
		want, err := os.ReadFile(golden)
		f.ok(err)
		equal(f, "tables", schemaText(t, f.db), string(want)) // as one that was made at once
	}
}

// A connection that exists becomes one grant: its tokens work on, with the
// scopes that it had, and a refresh token that was used before is still known.
func TestMigration_AConnectionBecomesOneGrant(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			e := emptyEngine(t, engine)
			token := func(text string) string { return fmt.Sprintf("%x", access.HashSecret(text)) }
			later := e.clock.Now().Add(time.Hour).UnixMilli()
			rows := append(slices.Clone(firstRows[:1]),
				`INSERT INTO users (id, company_id, email, name, role, rights, policies, password_hash, disabled, created_at, last_sign_in_at)
				 VALUES ('u1', 'c1', 'ada@acme.test', 'Ada', 'admin', 1023, 'null', '', FALSE, 1700000000000, 0)`,
				`INSERT INTO oauth_connections (id, company_id, user_id, client_id, client_name, scopes, frozen, created_at, last_used_at, revoked_at)
				 VALUES ('o1', 'c1', 'u1', 'mc_1', 'Client', 9, FALSE, 1700000000000, 1700000001000, 0),
					('o2', 'c1', 'u1', 'mc_1', 'Client', 9, FALSE, 1700000000000, 0, 1700000001000)`,
				fmt.Sprintf(`INSERT INTO oauth_tokens (hash, connection_id, refresh, expires_at, used)
				 VALUES ('%[1]s', 'o1', FALSE, %[5]d, FALSE), ('%[2]s', 'o1', TRUE, %[5]d, FALSE), ('%[3]s', 'o1', TRUE, %[5]d, TRUE), ('%[4]s', 'o2', TRUE, %[5]d, FALSE)`,
					token("access"), token("refresh"), token("used"), token("revoked"), later),
				`INSERT INTO oauth_codes (hash, connection_id, client_id, redirect_uri, code_challenge, resource, expires_at, used)
				 VALUES ('x', 'o1', 'mc_1', '', '', '', 0, TRUE)`)
			if err := database.MigrateTo(t.Context(), e.url, 84, rows...); err != nil {
				t.Fatal(err)
			}
			db := e.openAs(t, database.Upgrade)
			wantAllowed(t, db, "an access token from before", access.HashSecret("access"), access.DevicesRead|access.PoliciesRead)
			all, err := db.Connections(t.Context(), "c1")
			if err != nil || len(all) != 2 || all[0].Grants+all[1].Grants != 1 {
				t.Fatalf("connections %+v, %v", all, err)
			}
			next, _ := pair(e)
			if _, err := db.RotateToken(t.Context(), access.HashSecret("revoked"), "mc_1", 0, next); fault.CodeOf(err) != fault.Refused {
				t.Errorf("a token of a revoked connection: %v", err)
			}
			if _, err := db.RotateToken(t.Context(), access.HashSecret("refresh"), "mc_1", 0, next); err != nil {
				t.Fatal(err)
			}
			wantAllowed(t, db, "a token from after", next.Access, access.DevicesRead|access.PoliciesRead)
			if _, err := db.RotateToken(t.Context(), access.HashSecret("used"), "mc_1", 0,
				oauth.Tokens{}); fault.CodeOf(err) != fault.Refused {
				t.Errorf("a token that was used before the migration: %v", err)
			}
			wantEnded(t, db, "a token after that reuse", next.Access)
		})
	}
}

// The domains of providers that exist belong to their companies from then on, and
// the people of both companies sign in as before.
func TestMigration_ProvidersKeepTheirDomains(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			e := emptyEngine(t, engine)
			rows := append(slices.Clone(firstRows[:1]),
				strings.NewReplacer("'c1'", "'c2'", "'acme'", "'other'", "'enterprises/LC1'", "''").Replace(firstRows[0]),
				`INSERT INTO users (id, company_id, email, name, role, rights, policies, password_hash, disabled, created_at, last_sign_in_at)
				 VALUES ('u1', 'c1', 'ada@acme.test', 'Ada', 'admin', 1023, 'null', 'hash', FALSE, 1700000000000, 0),
					('u2', 'c2', 'bob@other.test', 'Bob', 'viewer', 1, '["p9"]', '', TRUE, 1700000000000, 0)`,
				`INSERT INTO identity_providers (company_id, name, issuer, client_id, client_secret, enabled, creates_users, role, updated_at)
				 VALUES ('c1', 'Acme ID', 'https://id.acme.test', 'client', 'c2VjcmV0', TRUE, TRUE, 'viewer', 1700000000000),
					('c2', 'Other ID', 'https://id.other.test', 'client', '', FALSE, FALSE, 'viewer', 1700000000000)`,
				`INSERT INTO identity_domains (domain, company_id) VALUES ('acme.test', 'c1'), ('acme.example', 'c1'), ('other.test', 'c2')`,
				`INSERT INTO identities (company_id, issuer, subject, user_id, created_at) VALUES ('c1', 'https://id.acme.test', 's1', 'u1', 1700000000000)`)
			if err := database.MigrateTo(t.Context(), e.url, 84, rows...); err != nil {
				t.Fatal(err)
			}
			f := &fixture{T: t, engine: e, db: e.openAs(t, database.Upgrade)}
			for company, want := range map[string]string{"c1": "acme.example acme.test", "c2": "other.test"} {
				owned, err := f.db.Domains(t.Context(), company)
				f.ok(err)
				var names []string
				for _, d := range owned {
					names = append(names, d.Name)
				}
				equal(f, "domains of "+company, strings.Join(names, " "), want)
				foreign, err := f.db.ForeignDomain(t.Context(), company, "other.test")
				f.ok(err)
				equal(f, company+": other.test is another's", foreign, company == "c1")
			}
			p, err := f.db.ProviderByDomain(t.Context(), "acme.test")
			f.ok(err)
			equal(f, "provider", words(p.CompanyID, p.Issuer, string(p.Secret), p.Enabled, p.CreatesUsers),
				"c1 https://id.acme.test secret true true")
			linked, err := f.db.IdentityUser(t.Context(), "c1", p.Issuer, "s1")
			f.ok(err)
			ada, err := f.db.UserByEmail(t.Context(), "ada@acme.test")
			f.ok(err)
			bob, err := f.db.UserByEmail(t.Context(), "bob@other.test")
			f.ok(err)
			equal(f, "users", words(linked, ada.ID, ada.PasswordHash, ada.Disabled, bob.CompanyID, bob.Disabled, bob.Policies),
				"u1 u1 hash false c2 true [p9]")
			// With two companies a provider keeps what it has, and takes no other's.
			anyone := func(account.IdentityProvider, []account.User) error { return nil }
			f.ok(f.db.SaveProvider(t.Context(), p, anyone))
			p.Domains = append(p.Domains, "other.test")
			f.code(fault.Refused, f.db.SaveProvider(t.Context(), p, anyone))
		})
	}
}

// Approvals and authorizations from before, which the service did not countersign, wait
// again; those that were used or declined stay as they are.
func TestMigration_UnusedDecisionsWaitAgain(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			e := emptyEngine(t, engine)
			rows := append(slices.Clone(firstRows), `UPDATE companies SET apply_approval = 'ALL'`)
			proposed := func(id, status, approval string) {
				rows = append(rows,
					fmt.Sprintf(
						`INSERT INTO proposals (id, company_id, capability, status, impact, title, summary, policy_id, target_name, base_version,
					next_policy_id, next_name, next_name_key, owner_kind, owner_id, owner_user_id, owner_name, created_at, expires_at,
						propose_ref,
					request, fields, next_document, approval, approved_by, approved_at, signed_id)
					VALUES ('%s', 'c1', 'update_policy_settings', '%s', 'NORMAL', 't', 's', 'p1', 'Kiosk', 3, 'p1', 'Kiosk', '',
						'API_KEY', 'k1', '', 'ci', %d, %d, '',
					'{}', '[]', '{}', '%s', 'Ada', 1700000000000, 's1')`, id, status, e.clock.Now().UnixMilli(),
						e.clock.Now().Add(time.Hour).UnixMilli(), approval))
			}
			authorized := func(id, state string) {
				rows = append(rows,
					fmt.Sprintf(
						`INSERT INTO authorizations (id, company_id, asset_id, epoch, command, digest, caller_kind, caller_id, caller_prefix,
					caller_name, caller_user, reason, ticket, from_policy, from_version, to_policy, to_version, state, created_at,
						decided_at, decided_by,
					decided_by_name, passkey_id)
					VALUES ('%s', 'c1', 'a1', 1, 'WIPE_COMPANY_DATA', 'd-%[1]s', 'API_KEY', 'k1', 'abc', 'ci', '', '', '', '', 0, '', 0, '%s', %d, %[3]d, 'u1', 'Ada', 'pk')`,
						id, state, e.clock.Now().UnixMilli()))
			}
			proposed("approved", "PENDING", "APPROVED")
			proposed("applied", "SUCCEEDED", "APPROVED")
			proposed("declined", "FAILED", "DECLINED")
			authorized("approved", "APPROVED")
			authorized("used", "USED")
			authorized("declined", "DECLINED")
			f := &fixture{T: t, engine: e}
			f.ok(database.MigrateTo(t.Context(), e.url, 220, rows...))
			f.db = e.openAs(t, database.Upgrade)
			for id, want := range map[string]string{"approved": "PENDING  WAITING", "applied": "SUCCEEDED APPROVED APPROVED",
				"declined": "FAILED DECLINED DECLINED"} {
				p, err := f.db.Proposal(t.Context(), "c1", id)
				f.ok(err)
				shown := string(p.Approval.State)
				if p.AwaitsApproval() {
					shown = "WAITING"
				}
				equal(f, "proposal "+id, fmt.Sprintf("%s %s %s", p.Status, p.Approval.State, shown), want)
				equal(f, "is signed", p.SignedID != "", id != "approved")
			}
			for id, want := range map[string]approval.State{"approved": approval.Waiting, "used": approval.Used,
				"declined": approval.Declined} {
				a, err := f.db.Authorization(t.Context(), "c1", id)
				f.ok(err)
				equal(f, "authorization "+id, a.State, want)
				equal(f, "has a person", a.DecidedBy+a.DecidedByName+a.PasskeyID != "", id != "approved")
			}
		})
	}
}
