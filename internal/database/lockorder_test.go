package database_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/approval/approvaltest"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/signature"
	"github.com/musterhq/muster/test/poll"
)

// crossed are two transactions that meet: both have begun before a row is let go that
// the first needs.
type crossed struct {
	*fixture
	c       *pgx.Conn
	ada     account.User
	of      policy.Policy
	made    proposal.Proposal
	verdict proposal.Claimed
}

// approved is a proposal that a person approved.
func (x *crossed) approved(renames bool) {
	x.Helper()
	x.setControls(func(k *access.Controls) { k.ApplyApproval, k.ApproverAge = access.ApproveAll, 0 })
	x.ada, x.of = x.person("Ada", true), x.newPolicy("Kiosk")
	p := loosening(x.of)
	if p.Renames = renames; renames {
		p.Next.Name = "Another"
	}
	var err error
	x.made, err = x.db.Propose(x.Context(), p, time.Hour)
	x.ok(err)
	x.ok(x.approveChange(x.made.ID, x.ada))
}

func (x *crossed) claims(ctx context.Context, db *database.DB) (err error) {
	x.verdict, err = db.ClaimProposal(ctx, proposal.Claim{ID: x.made.ID, Holder: "h", For: time.Minute, Confirmed: true, Next: x.made.Next,
		Verifier: approvaltest.Verifier()})
	return err
}

// holding takes a row, and returns what lets it go.
func (x *crossed) holding(table, id string) (letGo func()) {
	x.Helper()
	held, err := x.c.Begin(x.Context())
	x.ok(err)
	_, err = held.Exec(x.Context(), `SELECT id FROM `+table+` WHERE id = $1 FOR UPDATE`, id)
	x.ok(err)
	return func() { x.ok(held.Rollback(x.Context())) }
}

// counts waits until a query has a result.
func (f *fixture) counts(by *pgx.Conn, what string, want int, query string) {
	f.Helper()
	poll.Until(f, fmt.Sprintf("%d %s", want, what), func() error {
		var n int
		err := by.QueryRow(f.Context(), query).Scan(&n)
		if err == nil && n != want {
			err = fmt.Errorf("there are %d", n)
		}
		return err
	})
}

const (
	connected = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()`
	waiting   = connected + ` AND wait_event_type = 'Lock'`
	// ofReplicas are the connections of the replicas that together opens.
	ofReplicas = connected + ` AND application_name = 'crossing'`
)

type transaction func(ctx context.Context, db *database.DB) error

// during does others while long, which has begun, waits for the row that letGo lets go.
func (x *crossed) during(long transaction, letGo func(), others func()) {
	x.Helper()
	watcher, err := pgx.Connect(x.Context(), x.url)
	x.ok(err)
	defer func() { x.ok(watcher.Close(context.Background())) }()
	done := make(chan error, 1)
	go func() { done <- long(x.Context(), x.db) }()
	x.counts(watcher, "transactions that wait", 1, waiting)
	others()
	letGo()
	x.ok(<-done)
}

// impatient is a context in which no pause is waited for.
type impatient struct{ context.Context }

func (impatient) Done() <-chan struct{} {
	ended := make(chan struct{})
	close(ended)
	return ended
}

// together begins both, one after the other, before letGo. PostgreSQL ends neither because
// they wait for each other.
func (x *crossed) together(first, second transaction, letGo func()) {
	x.Helper()
	watcher, err := pgx.Connect(x.Context(), x.url)
	x.ok(err)
	defer func() { x.ok(watcher.Close(context.Background())) }()
	named, err := url.Parse(x.url)
	x.ok(err)
	query := named.Query()
	query.Set("application_name", "crossing")
	named.RawQuery = query.Encode()
	var ended int
	var replicas []*database.DB
	done := make(chan error, 2)
	for n, does := range []transaction{first, second} {
		db, err := database.Open(x.Context(), database.Options{URL: named.String(), Now: x.clock.Now})
		x.ok(err)
		replicas = append(replicas, db)
		go func() { done <- does(x.Context(), db) }()
		x.counts(watcher, "transactions that wait", n+1, waiting)
	}
	letGo()
	for range replicas {
		x.ok(<-done)
	}
	for _, db := range replicas {
		x.ok(db.Close())
	}
	x.counts(watcher, "connections", 0, ofReplicas) // each reports what happened to it when it ends
	x.ok(watcher.QueryRow(x.Context(), `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(&ended))
	equal(x.T, "transactions that PostgreSQL ended", ended, 0)
}

// Transactions that use what a person decided, and those that take back their decisions,
// lock in one order: none waits for another that waits for it.
func TestLocks_HaveOneOrder(t *testing.T) {
	t.Parallel()
	meet := func(name string, test func(x *crossed)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, postgresEngine(t))
			c, err := pgx.Connect(t.Context(), f.url)
			f.ok(err)
			defer func() { f.ok(c.Close(context.Background())) }()
			test(&crossed{fixture: f, c: c})
		})
	}
	for name, ends := range map[string]func(x *crossed) transaction{
		"disabled": func(x *crossed) transaction {
			return func(ctx context.Context, db *database.DB) error {
				_, err := db.UpdateUser(ctx, x.company.ID, x.ada.ID, func(u *account.User) error { u.Disabled = true; return nil })
				return err
			}
		},
		"deleted": func(x *crossed) transaction {
			return func(ctx context.Context, db *database.DB) error {
				_, err := db.DeleteUser(ctx, x.company.ID, x.ada.ID)
				return err
			}
		},
		"without a passkey": func(x *crossed) transaction {
			id := x.key(x.ada).ID
			return func(ctx context.Context, db *database.DB) error { return db.RemovePasskey(ctx, x.ada.ID, id) }
		},
	} {
		meet("a claim, and its approver is "+name, func(x *crossed) {
			x.approved(false)
			x.together(x.claims, ends(x), x.holding("policies", x.of.ID))
			after, err := x.db.Proposal(x.Context(), x.company.ID, x.made.ID)
			x.ok(err)
			equal(x.T, "verdict, status and approval", words(x.verdict, after.Status, after.Approval.State),
				words(proposal.Begun, proposal.Executing, proposal.Approved))
		})
	}
	meet("a stricter rule, and a claim that renames", func(x *crossed) {
		x.approved(true)
		letGo := x.holding("companies", x.company.ID)
		x.together(func(ctx context.Context, db *database.DB) error {
			_, err := db.UpdateCompany(ctx, x.company.ID,
				company.Change(func(c *company.Company) { c.Settings.Controls.ApproverAge = time.Hour }))
			return err
		}, x.claims, letGo)
		equal(x.T, "verdict", x.verdict, proposal.NotApproved)
	})
	meet("a decision, and who decides has other rights", func(x *crossed) {
		x.destructiveApproval()
		phone := x.fleet(1)[0]
		x.ada = x.person("Ada", true)
		wipe := x.refusal(x.db, x.asking(phone, command.WipeCompanyData, "d"))
		d := x.decision(wipe.ID, x.ada, x.sign(x.ada, x.document(wipe.ID, x.ada, signature.Approve, nil)))
		x.together(func(ctx context.Context, db *database.DB) error { return db.Decide(ctx, d) },
			func(ctx context.Context, db *database.DB) error {
				_, err := db.UpdateUserAmong(ctx, x.company.ID, x.ada.ID, func(u *account.User, _ account.Among) error {
					u.Rights &^= account.DestroyDevices
					return nil
				})
				return err
			}, x.holding("companies", x.company.ID))
		equal(x.T, "the authorization", x.authorization(wipe.ID).State, approval.Waiting)
	})
	meet("a device is moved, and reports a version of its policy that is not known", func(x *crossed) {
		from, to := x.newPolicy("From"), x.newPolicy("To")
		phone, report := x.enroll("d", from.ID), x.observation("d")
		report.AppliedPolicy, report.AppliedPush = from.ID, 5
		move := x.moving(phone, from, to)
		x.together(func(ctx context.Context, db *database.DB) error {
			_, _, err := db.Begin(ctx, move, nil)
			return err
		}, func(ctx context.Context, db *database.DB) error { return observe(ctx, db, report) }, x.holding("assets", phone.ID))
	})
	meet("a policy is deleted, and a device joins with a version of it that is not known", func(x *crossed) {
		p, joins := x.newPolicy("Kiosk"), x.observation("d")
		joins.AppliedPolicy, joins.AppliedPush = p.ID, 5
		x.together(func(ctx context.Context, db *database.DB) error {
			_, err := db.DeletePolicy(ctx, x.company.ID, p.ID, x.clock.Now())
			return err
		}, func(ctx context.Context, db *database.DB) error { return observe(ctx, db, joins) }, x.holding("companies", x.company.ID))
	})
	meet("an import, and a merge of its assets in another order", func(x *crossed) {
		x.ok(x.db.ImportAssets(x.Context(), []asset.Asset{{ID: "0", CompanyID: x.company.ID, Identification: "Spare"}}))
		phone := x.enroll("d1", "")
		merges := func(ctx context.Context) error { return x.db.MergeAssets(ctx, x.company.ID, "0", phone.ID, nil) }
		x.during(x.importing("identification,serialNumber,user\n,SN-d1,Bea\nSpare,,Bea\n"), x.holding("assets", phone.ID), func() {
			x.code(fault.Unavailable, merges(impatient{x.Context()}))
		})
		x.ok(merges(x.Context()))
		equal(x.T, "merged", x.asset("0").CustomData["user"], "Bea")
	})
	meet("an enrollment, and a device that asks with the same code", func(x *crossed) {
		x.sameSerial(1, "SN-1")
		x.agentCode("t1", 5)
		x.together(func(ctx context.Context, db *database.DB) error {
			_, err := x.enrolls(ctx, db, "t1", "k1", "SN-2", false)
			return err
		}, func(ctx context.Context, db *database.DB) error {
			_, err := x.enrolls(ctx, db, "t1", "k2", "SN-1", true)
			if errors.Is(err, agentdevice.ErrWaiting) {
				err = nil
			}
			return err
		}, x.holding("companies", x.company.ID))
		equal(x.T, "requests", len(x.lostDevices()), 1)
	})
	meet("a user's first code is redeemed, and the user is deleted", func(x *crossed) {
		ada := x.person("Ada", false)
		code := oauth.AuthorizationCode{CompanyID: x.company.ID, UserID: ada.ID, ClientID: "mc_1", ClientName: "Client",
			Scopes: access.DevicesRead}
		code = again(x.T, x.db, x.engine, code, code.Scopes)
		x.ok(x.db.SaveOAuthClient(x.Context(), oauth.Client{ID: code.ClientID, Dynamic: true, CreatedAt: x.clock.Now()}))
		tokens, _ := pair(x.engine)
		x.together(func(ctx context.Context, db *database.DB) error {
			_, err := db.RedeemCode(ctx, code.Hash, agree, tokens)
			return err
		}, func(ctx context.Context, db *database.DB) error {
			_, err := db.DeleteUser(ctx, x.company.ID, ada.ID)
			return err
		}, x.holding("oauth_clients", code.ClientID))
		wantEnded(x.T, x.db, "a token of a user who was deleted", tokens.Access)
	})
}
