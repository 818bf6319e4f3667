package database

import (
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
)

// hintAsset notifies the pages that are open, on every replica, that an asset
// changed; id empty: some did. Last-seen times alone are not announced.
func (db *DB) hintAsset(companyID, id string) {
	db.Notify(resource.Changes, resource.Change(companyID, "asset", id))
}

// hintCommand announces that a command moved; the id is its asset's.
func (db *DB) hintCommand(c command.Command) {
	db.Notify(resource.Changes, resource.Change(c.CompanyID, "command", c.AssetID))
}

// hintPolicy announces that a policy, or how far the platform's copy has come,
// changed.
func (db *DB) hintPolicy(companyID, id string) {
	db.Notify(resource.Changes, resource.Change(companyID, "policy", id))
}

// hintProposal announces that a proposal was made or moved.
func (db *DB) hintProposal(p proposal.Proposal) {
	db.Notify(resource.Changes, resource.Change(p.CompanyID, "proposal", p.ID))
}
