package database

import (
	"context"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/job"
)

// restored is why a job is paused that ran in a database that was restored or copied.
const restored = "the database was restored or copied: devices may have got the command since"

// restoredRollout is why a rollout of the agent is paused in such a database.
const restoredRollout = "the database was restored or copied: the rollout may have been paused or ended since"

// withdrawn is the outcome of a wipe or a release that waited in a database that was restored or copied.
const withdrawn = "cancelled: the database was restored or copied: send it again if it is still wanted"

// BeginHistory begins the history of events where there is none: see holdUp. A service calls
// it before its work in the background begins.
func (db *DB) BeginHistory(ctx context.Context) error {
	_, err := written(ctx, db, beginHistory)
	return err
}

// holdUp keeps from going on by itself what a restored database brings back: people may
// have canceled it since the backup, and devices may have got what a job sends. Jobs are
// paused. What waits to loosen a control is canceled, and can be asked for again. Proposals that
// wait expire: each may have been applied or declined since. Authorizations that were not used, which
// may have been since, wait for a person again, and are mailed again. Wipes and releases that keys and connections sent and no
// agent was offered are canceled, because a stop may have canceled them since. Those of persons stay, as
// in a stop. Rollouts of the agent are paused. Policies get to the platform and to devices again.
func (db *DB) holdUp(ctx context.Context, t *tx) error {
	if !t.holds(ctx, `SELECT 1 WHERE EXISTS (SELECT 1 FROM event_heads) OR `+db.engine.Dialect().Events().RestoredOld) { // a new database
		return nil
	}
	ctx = access.WithActor(ctx, access.ServiceActor(), "")
	for _, l := range listed(ctx, t, scanLoosening,
		`SELECT `+looseningColumns+` FROM loosenings l WHERE l.effective_at > 0 ORDER BY l.effective_at, l.id`) {
		db.dropLoosenings(ctx, t, l.CompanyID, l.Control)
	}
	for _, w := range listed(ctx, t, into(waitingFields), waitingCommands+byAutomation+` AND c.type IN `+endings+waitsHere) {
		_, err := db.withdraw(ctx, t, w, withdrawn)
		t.check(err)
	}
	for _, j := range listed(ctx, t, into(jobFields),
		`SELECT `+jobColumns+` FROM jobs WHERE status = 'RUNNING' AND next_at > 0 ORDER BY next_at, id`+t.lock()) {
		_, err := db.moveJob(ctx, t, j, job.Paused, restored)
		t.check(err)
	}
	t.do(ctx, `DELETE FROM mail_told WHERE item_id IN (SELECT id FROM authorizations WHERE state = 'APPROVED')`)
	t.do(ctx, `UPDATE authorizations SET state = 'WAITING', decided_at = 0, decided_by = '', decided_by_name = '', passkey_id = '',
		signed_id = '' WHERE created_at > 0 AND state = 'APPROVED'`)
	_, err := db.pauseRollouts(ctx, t, restoredRollout)
	t.check(err)
	t.do(ctx, `UPDATE proposals SET expires_at = ? WHERE status = 'PENDING' AND expiry_told = 0 AND expires_at > ?`,
		millis(db.now()), millis(db.now()))
	return db.renewPolicies(ctx, t)
}

// renewPolicies has each policy applied again as the database has it: the platform and
// devices may hold a later version with the same number. The platform gets them once more. Those
// of agents get a number that no version since the backup can have, which a save adds one to: one
// for each second since the last save.
func (db *DB) renewPolicies(ctx context.Context, t *tx) error {
	const ofAgents = `type <> 'PLATFORM'`
	t.do(ctx, `DELETE FROM push_retries`)
	t.do(ctx, `UPDATE policies SET push_version = 0, push_tried_at = 0 WHERE type = 'PLATFORM'`)
	now := millis(db.now())
	t.do(ctx, `UPDATE policies SET version = version + 1 + CASE WHEN updated_at < ? THEN (? - updated_at) / 1000 ELSE 0 END
		WHERE `+ofAgents, now, now)
	return t.Exec(ctx, `UPDATE policy_revisions SET version = (SELECT p.version FROM policies p WHERE p.id = policy_revisions.policy_id)
		WHERE policy_id IN (SELECT id FROM policies WHERE `+ofAgents+`) AND revision = (SELECT MAX(n.revision) FROM policy_revisions n
			WHERE n.policy_id = policy_revisions.policy_id)`)
}
