package service

import (
	"log/slog"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/surface/cli"
)

// Maintenance implements cli.Maintenance.
type Maintenance struct{ Log *slog.Logger }

// Migrate implements cli.Maintenance.
func (k Maintenance) Migrate(env *cli.Env, store config.Store) (done cli.Migrated, err error) {
	found, err := database.Inspect(env.Context, store.Database)
	if err != nil {
		return done, err
	}
	db, err := database.Open(env.Context, database.Options{URL: store.Database, Now: env.Now, Schema: database.Upgrade, Logger: k.Log})
	if err != nil {
		return done, err
	}
	done = cli.Migrated{From: found.Schema, To: max(found.Schema, database.SchemaNumber())}
	if found.Schema <= database.SchemaNumber() { // a newer program may count otherwise
		done.Corrected, err = db.Recount(env.Context)
	}
	if closing := db.Close(); err == nil {
		err = closing
	}
	return done, err
}

// Restore implements cli.Maintenance.
func (k Maintenance) Restore(env *cli.Env, settings config.Service, file string) (done cli.Restored, err error) {
	path, _ := settings.SQLitePath()
	prepared, err := database.PrepareRestore(env.Context, path, file)
	if err != nil {
		return done, err
	}
	defer func() { _ = prepared.Discard() }()
	if err := prepared.Found.Check(database.Upgrade); err != nil {
		return done, err
	}
	keys, err := k.keysOf(settings, prepared.Found)
	if err != nil {
		return done, err
	}
	if err := keys.Belong(prepared.Found); err != nil {
		if !settings.AcceptLostKeys {
			return done, lost(settings.KeyFile, err)
		}
		k.Log.WarnContext(env.Context, "lost keys accepted", "reason", err.Error(), "file", settings.KeyFile)
	}
	aside, err := prepared.Commit(env.Context, env.Now())
	return cli.Restored{Path: path, Aside: aside, Schema: prepared.Found.Schema, Own: database.SchemaNumber()}, err
}

// keysOf reads the key file, which a database that needs no keys may lack.
func (k Maintenance) keysOf(settings config.Service, found database.Inspection) (*ops.Keys, error) {
	keys, err := ops.LoadKeys(settings.KeyFile)
	if err != nil && ((&ops.Keys{}).Belong(found) == nil || settings.AcceptLostKeys) {
		return &ops.Keys{}, nil
	}
	return keys, err
}

// Copy implements cli.Maintenance.
func (k Maintenance) Copy(env *cli.Env, from, to config.Store) (done cli.Copied, err error) {
	tables, err := database.Copy(env.Context, database.Options{URL: from.Database, Now: env.Now, Logger: k.Log}, to.Database)
	for _, t := range tables {
		done.Rows += t.Rows
		done.Tables = append(done.Tables, cli.CopiedTable(t))
	}
	return done, err
}
