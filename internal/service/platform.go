package service

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/platform"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/surface/cli"
	"github.com/musterhq/muster/internal/surface/portal/settings"
)

// platformConfig is what service and command line have in common.
func platformConfig(p config.Platform, publicURL string, db *database.DB, now func() time.Time) platform.Config {
	c := ops.PlatformConfig(p, now)
	c.CallbackURL = publicURL + settings.CallbackPath
	c.Stores = platform.Stores{Companies: db, Policies: db, Signups: db, Leases: db, Quota: db}
	return c
}

// adminPlatform is the platform as the command line uses it.
type adminPlatform struct{ *platform.Platform }

// Connect implements cli.Platform.
func (d adminPlatform) Connect(ctx context.Context, companyID string) (company.Company, string, error) {
	connection, err := d.Platform.Connect(ctx, companyID)
	return connection.Company, connection.SignupURL, err
}

func openPlatform(db *database.DB, now func() time.Time) func(config.Platform, string) (cli.Platform, error) {
	return func(p config.Platform, publicURL string) (cli.Platform, error) {
		made, err := platform.New(platformConfig(p, publicURL, db, now)) // the command says what went wrong: no log
		return adminPlatform{made}, err
	}
}
