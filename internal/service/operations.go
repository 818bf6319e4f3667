package service

import (
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/job"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/provisioning"
)

// handlers carry out the operations.
type handlers struct {
	assets    asset.Reader
	policies  *database.DB
	commands  *command.Service
	proposals *proposal.Service
	codes     *provisioning.Service
	feed      *event.Feed
}

// define declares all operations but explain_operation, which names all others.
func define(r *operation.Registry, h handlers) {
	asset.Define(r, h.assets)
	policy.DefineList(r, h.policies)
	command.Define(r, h.commands)
	policy.Define(r, h.policies)
	proposal.Define(r, h.proposals)
	provisioning.Define(r, h.codes)
	event.Define(r, h.feed)
}

// Declarations are all operations that a service offers, for programs that call another
// one: they have no handlers, and must not be run.
func Declarations() *operation.Registry {
	r := &operation.Registry{}
	define(r, handlers{commands: &command.Service{}, proposals: &proposal.Service{}, codes: &provisioning.Service{}, feed: &event.Feed{}})
	operation.DefineExplain(r, &operation.Explainer{Registry: r})
	return r
}

// jobService offers what jobs do to devices: the commands for several devices, and tags.
func jobService(db *database.DB, commands *command.Service, now func() time.Time) job.Service {
	all, offered := &operation.Registry{}, &operation.Registry{}
	command.Define(all, commands)
	for _, row := range command.Catalog() {
		if row.Bulk {
			offered.Add(all.Find(row.Operation))
		}
	}
	job.Offer(offered, db, db)
	return job.Service{Store: db, Assets: db, Operations: offered, Now: now}
}
