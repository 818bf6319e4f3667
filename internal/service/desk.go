package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/platform/discovery"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/surface/cli"
)

// OpenDesk returns how the command line opens a database for administration.
func OpenDesk(now func() time.Time) func(context.Context, config.Store) (*cli.Desk, error) {
	return func(ctx context.Context, store config.Store) (*cli.Desk, error) {
		db, err := database.Open(ctx, database.Options{URL: store.Database, Now: now})
		if err != nil {
			return nil, err
		}
		policies, err := policyService(db, now)
		if err != nil {
			return nil, errors.Join(err, db.Close())
		}
		return &cli.Desk{Companies: db, Keys: db, Assets: db, Companions: db, Policies: policies, Users: db, Connections: db, Activity: db,
			Copier: db, Platform: openPlatform(db, now), Close: db.Close}, nil
	}
}

func policyService(db *database.DB, now func() time.Time) (policy.Service, error) {
	vendor, err := discovery.Load()
	if err != nil {
		return policy.Service{}, fmt.Errorf("cannot read the vendor's description of its API: %w", err)
	}
	return policy.Service{Store: db, Checker: documents{vendor}, Now: now}, nil
}

// documents holds policies against the vendor's own description.
type documents struct{ vendor *discovery.Document }

// CheckDocument implements policy.DocumentChecker.
func (d documents) CheckDocument(document json.RawMessage) error {
	return d.vendor.Validate("Policy", document)
}
