package database

import (
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/name"
)

// hintAsset tells the pages that are open, on every replica, that an asset
// changed; id empty: some did. Last-seen times alone are not told.
func (db *DB) hintAsset(companyID, id string) {
	db.Notify(name.Changes, name.Change(companyID, "asset", id))
}

// hintCommand tells that a command moved; the id is its asset's.
func (db *DB) hintCommand(c command.Command) {
	db.Notify(name.Changes, name.Change(c.CompanyID, "command", c.AssetID))
}
