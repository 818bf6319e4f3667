package service

import (
	"time"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/job"
	"github.com/musterhq/muster/internal/operation"
)

// jobOperations are what jobs do to devices: the commands for several devices, and tags.
func jobOperations(commands *command.Service, db *database.DB) *operation.Registry {
	all, offered := &operation.Registry{}, &operation.Registry{}
	command.Define(all, commands)
	for _, row := range command.Catalog() {
		if row.Bulk {
			offered.Add(all.Find(row.Operation))
		}
	}
	job.Offer(offered, db, db)
	return offered
}

func jobService(db *database.DB, commands *command.Service, now func() time.Time) job.Service {
	return job.Service{Store: db, Assets: db, Operations: jobOperations(commands, db), Now: now}
}
