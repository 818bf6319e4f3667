package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"time"

	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agentserver"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/discovery"
	"github.com/musterhq/muster/internal/passkey"
	"github.com/musterhq/muster/internal/platform"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/surface/cli"
	"github.com/musterhq/muster/internal/webhook"
)

// OpenAdmin returns how the command line opens a database for administration.
// cli.Creates sets up an empty one. Their entries of the activity log are proved
// with the service's keys: those of keyFile, or of the file beside an embedded database.
func OpenAdmin(now func() time.Time, keyFile string) func(context.Context, config.Store, cli.Intent) (*cli.Admin, error) {
	return func(ctx context.Context, store config.Store, intent cli.Intent) (*cli.Admin, error) {
		use := database.Existing
		if intent == cli.Creates {
			use = database.SetUp
			if err := provable(ctx, store, keyFile); err != nil {
				return nil, err
			}
		}
		db, err := database.Open(ctx, database.Options{URL: store.Database, Now: now, Schema: use})
		if err != nil {
			return nil, err
		}
		unproved, keys := "", (*ops.Keys)(nil)
		if intent != cli.Reads {
			if keys, unproved, err = proveEntries(ctx, db, store, keyFile, now); err != nil {
				return nil, errors.Join(err, db.Close())
			}
		}
		policies, err := policyService(db, now)
		if err != nil {
			return nil, errors.Join(err, db.Close())
		}
		return &cli.Admin{Companies: db, Keys: db, Assets: db, Editor: db, Deleter: db, DeleteCompany: db.DeleteCompany,
			Enterprises: db, Companions: db, Identity: db, AssetsNamed: db.AssetsNamed, Policies: policies, Users: db, Domains: db,
			Connections: db, Activity: db, Signed: db, PublicURL: db.PublicURL,
			Passkeys: func(publicURL string) (approval.Passkeys, error) { return passkey.New(config.Origin(publicURL)) },
			Platform: func(p config.Platform, publicURL string) (cli.Platform, error) {
				return platform.New(platformConfig(p, publicURL, db, now)) // the command says what went wrong: no log
			},
			Chain: openChain(db, now), Backup: db.Backup, Provisioning: openProvisioning(db, now),
			Tokens: db, Codes: db, Rollouts: db, Jobs: jobService(db, &command.Service{}, now), Mail: db,
			Webhooks: openWebhooks(db, keys, now), Unproved: unproved, Close: db.Close}, nil
	}
}

// provable refuses to set up PostgreSQL without the key file: its first entries of the activity log
// would have no proof, and the log would not verify. Beside a file, proveEntries makes one.
func provable(ctx context.Context, store config.Store, keyFile string) error {
	settings := config.Service{Store: store, KeyFile: keyFile}.WithDefaults()
	if _, embedded := settings.SQLitePath(); embedded {
		return nil
	}
	_, missing := ops.LoadKeys(settings.KeyFile)
	if missing == nil {
		return nil
	}
	found, err := database.Inspect(ctx, store.Database)
	if err != nil || !found.Version.Empty() {
		return err
	}
	const remedy = "make one with `muster doctor --make-key-file FILE`, if the service has none, and set MUSTER_KEY_FILE to it"
	if settings.KeyFile == "" {
		return errors.New("the database is empty, and to set it up needs the service's key file: " + remedy)
	}
	return fmt.Errorf("the database is empty, and to set it up needs the service's key file (%w): %s", missing, remedy)
}

// openWebhooks returns how the command line works with webhooks. Without keys it seals and
// opens no secrets, and neither creates nor tests any.
func openWebhooks(db *database.DB, keys *ops.Keys, now func() time.Time) func([]netip.Prefix, bool) (webhook.Service, error) {
	return func(networks []netip.Prefix, seals bool) (webhook.Service, error) {
		if seals && keys == nil {
			return webhook.Service{}, errors.New("the webhook's secret is sealed with the service's key file, which was not found: set " +
				"MUSTER_KEY_FILE")
		}
		return webhookService(db, keys, networks, now), nil
	}
}

// proveEntries gives a database the service's keys, and returns them, or why it has none. Beside
// a new embedded database it makes the key file, as the first start of the service does. Keys of
// another service are an error.
func proveEntries(ctx context.Context, db *database.DB, store config.Store, keyFile string,
	now func() time.Time) (proves *ops.Keys, why string, err error) {
	found, err := database.Inspect(ctx, store.Database)
	if err != nil {
		return nil, "", err
	}
	settings, load := config.Service{Store: store, KeyFile: keyFile}.WithDefaults(), ops.LoadKeys
	if _, embedded := settings.SQLitePath(); embedded && (&ops.Keys{}).Belong(found) == nil {
		load = func(path string) (*ops.Keys, error) { return ops.LoadOrMakeKeys(path, now()) }
	}
	keys, err := load(settings.KeyFile)
	if err != nil {
		return nil, err.Error(), nil
	}
	if _, err := db.AdmitKeys(ctx, keys.IDs(), false); err != nil {
		return nil, "", otherKeyFile(settings.KeyFile, err)
	}
	db.ProveWith(keys)
	return keys, "", nil
}

// otherKeyFile says what to do about a key file that is not the service's.
func otherKeyFile(path string, err error) error {
	return fmt.Errorf("cannot use the key file %s with this database: %w; set MUSTER_KEY_FILE to the running service's own", path, err)
}

// OpenSigner returns the keys of a key file; empty: of the file beside an embedded
// database, and none if there is no such file.
func OpenSigner(store config.Store, keyFile string) (activity.Signer, error) {
	path := config.Service{Store: store, KeyFile: keyFile}.WithDefaults().KeyFile
	keys, err := ops.LoadKeys(path)
	switch {
	case err == nil:
		return keys, nil
	case keyFile == "" && errors.Is(err, fs.ErrNotExist):
		return nil, nil
	}
	return nil, err
}

// openChain returns how the command line gets at the activity log's chain.
func openChain(db *database.DB, now func() time.Time) func(context.Context, config.Store, string) (*activity.Sealer, error) {
	return func(ctx context.Context, store config.Store, keyFile string) (*activity.Sealer, error) {
		path := config.Service{Store: store, KeyFile: keyFile}.WithDefaults().KeyFile
		keys, err := ops.LoadKeys(path)
		if err != nil {
			return nil, fmt.Errorf("%w (MUSTER_KEY_FILE): it must be the running service's own", err)
		}
		found, err := database.Inspect(ctx, store.Database)
		if err == nil {
			err = found.Lacks(keys.IDs())
		}
		if err != nil {
			return nil, otherKeyFile(path, err)
		}
		db.ProveWith(keys) // what the command does with the chain is recorded, too
		return &activity.Sealer{Store: db, Signer: keys, Now: now}, nil
	}
}

// openProvisioning returns how the command line makes enrollment tokens of a type of
// policy: for devices with our own agent as the running service does, with its keys.
func openProvisioning(db *database.DB, now func() time.Time) func(context.Context, config.Service,
	policy.Type) (*provisioning.Service, error) {
	return func(ctx context.Context, settings config.Service, of policy.Type) (*provisioning.Service, error) {
		made := &provisioning.Service{Catalog: db, Codes: db, Records: db, PublicURL: settings.PublicURL, Now: now, Log: slog.Default()}
		if of == policy.Platform {
			vendor, err := platform.New(platformConfig(settings.Platform, settings.PublicURL, db, now))
			made.Issuers = map[policy.Type]provisioning.Issuer{policy.Platform: vendor}
			return made, err
		}
		settings = settings.WithDefaults()
		keys, err := ops.LoadKeys(settings.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("%w (MUSTER_KEY_FILE): it must be the running service's own", err)
		}
		found, err := database.Inspect(ctx, settings.Database)
		if err != nil {
			return nil, err
		}
		if err := keys.Belong(found); err != nil && !settings.AcceptLostKeys {
			return nil, keyFileError(settings.KeyFile, err)
		}
		if err := recordKeys(ctx, db, keys, settings, slog.Default()); err != nil {
			return nil, err
		}
		signer, es256, err := keys.Signers()
		if err != nil {
			return nil, err
		}
		link := &agentserver.Server{Store: db, Signer: signer, ES256: es256, PublicURL: settings.PublicURL, Now: now,
			Pins: func() ([]string, error) { return ops.Pins(settings.TLSCert, settings.PublicURL, now()) }}
		made.PublicURL, made.Issuers = settings.PublicURL, map[policy.Type]provisioning.Issuer{policy.Agent: link}
		return made, nil
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
