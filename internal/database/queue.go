package database

import "context"

// maxQueue bounds the count of a queue.
const maxQueue = 10_000

// Queues counts what of a company is under way, each up to 10,000: commands without a final
// state, and jobs that are not over.
func (db *DB) Queues(ctx context.Context, companyID string) (commands, jobs int, err error) {
	commands, err = value[int](ctx, db.read(), `SELECT COUNT(*) FROM (SELECT id FROM commands WHERE company_id = ? AND `+isOpen+
		` LIMIT ?) q`, companyID, maxQueue)
	if err != nil {
		return 0, 0, err
	}
	jobs, err = value[int](ctx, db.read(),
		`SELECT COUNT(*) FROM (SELECT id FROM jobs WHERE company_id = ? AND status IN ('RUNNING', 'PAUSED') LIMIT ?) q`,
		companyID, maxQueue)
	return commands, jobs, err
}
