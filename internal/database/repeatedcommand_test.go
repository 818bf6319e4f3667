package database_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// killed is a replica that ends before what became of a claim is kept.
type killed struct{ *database.DB }

func (killed) SettleClaim(context.Context, operation.Holding, []byte) error { return nil }

// plain seals nothing.
type plain struct{}

func (plain) Seal(_ string, data []byte) []byte { return data }

func (plain) Open(_ string, sealed []byte) ([]byte, error) { return sealed, nil }

// hungUp is a store whose caller hangs up while the earlier command is looked up.
type hungUp struct {
	*database.DB
	hangUp context.CancelFunc
}

func (h hungUp) CommandByIdempotencyRef(ctx context.Context, companyID, ref string) (command.Command, error) {
	h.hangUp()
	return h.DB.CommandByIdempotencyRef(ctx, companyID, ref)
}

// A command is sent once under a key, also when the process ended before it kept the answer, and
// the repetition could not read whether it was sent.
func TestOnce_RepetitionThatCannotLook(t *testing.T) {
	withCompany(t, func(f *fixture) {
		phone := f.fleet(1)[0]
		_, maker := f.jobMaker()
		channel := &sender{sent: map[string]int{}}
		reboot := func(ctx context.Context, claims operation.Claims, finder command.Finder) operation.Outcome {
			registry := &operation.Registry{}
			command.Define(registry, &command.Service{Store: f.db, Finder: finder, Inventory: f.db, Now: f.clock.Now,
				Log:      slog.New(slog.DiscardHandler),
				Channels: map[asset.Management]command.Channel{asset.Platform: channel}})
			once := operation.Once{Claims: claims, Sealer: plain{},
				Kernel: operation.NewKernel(operation.Config{Budgets: operation.Budgets{Store: f.db, Now: f.clock.Now}, Now: f.clock.Now,
					Stands: f.db.PermitStands})}
			return once.Run(ctx, registry.Find("reboot_device"), maker, operation.Meta{RequestID: "r"},
				operation.Flat(`{"assetId":"`+phone.ID+`"}`), "key-1")
		}
		reboot(f.Context(), killed{f.db}, f.db)
		f.clock.Advance(16 * time.Second)
		ctx, hangUp := context.WithCancel(f.Context())
		if second := reboot(ctx, f.db, hungUp{f.db, hangUp}); fault.CodeOf(second.Fault) != fault.Unavailable {
			f.Errorf("the repetition that could not look: %v", second.Fault)
		}
		third := reboot(f.Context(), f.db, f.db)
		equal(f, "sent", channel.sent[phone.ID], 1)
		if third.Fault != nil {
			f.Errorf("the next repetition: %v", third.Fault)
		}
	})
}
