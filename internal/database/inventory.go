package database

import (
	"context"
	"time"

	"github.com/musterhq/muster/internal/database/engine"
	"github.com/musterhq/muster/internal/fault"
)

// errInventory ends an attempt at a transaction that finds the inventory taken. The transaction holds
// nothing while it waits, neither a row nor a connection: write runs it again after inventoryPause.
var errInventory error = &fault.Error{Code: fault.Unavailable, Retryable: true,
	Detail: "devices of the company are being imported, archived or deleted: try again when that has ended"}

const inventoryPause = 250 * time.Millisecond

// inventoryWait is how long a write waits for the inventory: one that may take minutes itself, such as
// an import, for as long as another may take, and what a device or a person waits for a few seconds.
func inventoryWait(ctx context.Context) time.Duration {
	if engine.IsLong(ctx) {
		return 10 * time.Minute
	}
	return 5 * time.Second
}

// holdInventory takes the inventory of a company alone until the transaction ends, for work that may
// take minutes and locks assets in an order of its own. Such work must not hold the company's row: an
// emergency stop needs that at once. It fails with errInventory if another transaction has or shares it.
func holdInventory(ctx context.Context, t *tx, companyID string) error {
	return takeInventory(ctx, t, companyID, t.Dialect().Rows().TryAlone)
}

// shareInventory keeps holdInventory out until the transaction ends. What makes assets or gives them other
// devices calls it, and what locks assets while it holds the company's row: it would keep
// that from others for as long as it waits for an import. It fails with errInventory.
func shareInventory(ctx context.Context, t *tx, companyID string) error {
	return takeInventory(ctx, t, companyID, t.Dialect().Rows().TryShared)
}

func takeInventory(ctx context.Context, t *tx, companyID, try string) error {
	if try == "" {
		return nil
	}
	free, err := value[bool](ctx, t, try, "inventory/"+companyID)
	if err == nil && !free {
		err = errInventory
	}
	return err
}
