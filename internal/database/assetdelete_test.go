package database_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// keeper keeps what is deleted in memory.
type keeper struct {
	rows      map[string][]map[string]any
	committed bool
	fail      error
}

func (k *keeper) Begin() error {
	k.rows = map[string][]map[string]any{}
	return nil
}

func (k *keeper) Keep(table string, row map[string]any) error {
	k.rows[table] = append(k.rows[table], row)
	return nil
}

func (k *keeper) Commit() error {
	k.committed = true
	return k.fail
}

// remains says how many rows of which tables still name an asset.
func (f *fixture) remains(id string) string {
	f.Helper()
	var all []string
	for _, table := range []string{"asset_places", "asset_apps", "installed_apps", "asset_edits", "asset_terms", "commands",
		"device_logs", "agent_devices",
		"agent_tokens", "companion_tokens", "enrollment_requests", "device_names"} {
		n, err := f.db.Text(f.Context(), fmt.Sprintf(`SELECT CAST(COUNT(*) AS TEXT) FROM %s WHERE asset_id = '%s'`, table, id))
		f.ok(err)
		if n[0] != "0" {
			all = append(all, table+" "+n[0])
		}
	}
	return strings.Join(all, ", ")
}

func TestDeleteAssets(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.newPolicy("Office")
		a, other := f.enroll("d1", p.ID), f.enroll("d2", p.ID)
		f.begin(a, command.Lock)
		ctx := access.WithActor(f.Context(), access.OperatorActor("ada"), "r1")
		_, err := f.db.EditAsset(ctx, f.company.ID, a.ID, asset.Edit{AddTags: []string{"old"}})
		f.ok(err)
		f.code(fault.Unsupported, f.db.DeleteAssets(f.Context(), f.company.ID, []string{a.ID}, &keeper{}))
		gone := f.observation("d1")
		gone.Gone = true
		f.observe(gone)
		f.ok(f.db.ArchiveAssets(f.Context(), f.company.ID, []string{a.ID}, true))

		kept := &keeper{}
		f.code(fault.Unsupported, f.db.DeleteAssets(f.Context(), f.company.ID, []string{a.ID, other.ID}, kept))
		f.code(fault.NotFound, f.db.DeleteAssets(f.Context(), f.newCompany("other").ID, []string{a.ID}, kept))
		if kept.rows != nil {
			f.Error("an export was begun for what cannot be deleted")
		}
		full := errors.New("the disk is full")
		if err := f.db.DeleteAssets(f.Context(), f.company.ID, []string{a.ID}, &keeper{fail: full}); !errors.Is(err, full) ||
			!f.asset(a.ID).Archived {
			f.Errorf("an export that failed: %v", err)
		}
		seen := &keeper{}
		f.code(fault.Unsupported, f.db.ExportAsset(f.Context(), f.company.ID, other.ID, seen))
		f.code(fault.NotFound, f.db.ExportAsset(f.Context(), f.newCompany("third").ID, a.ID, seen))
		if seen.rows != nil {
			f.Error("an export was begun of what cannot be deleted")
		}
		f.ok(f.db.ExportAsset(f.Context(), f.company.ID, a.ID, seen))
		f.ok(f.db.DeleteAssets(f.Context(), f.company.ID, []string{a.ID}, kept))
		equal(f, "exported before", fmt.Sprint(seen.committed, seen.rows), fmt.Sprint(true, kept.rows))
		equal(f, "exported", fmt.Sprint(kept.committed, len(kept.rows["assets"]), len(kept.rows["commands"]),
			len(kept.rows["asset_edits"])), "true 1 1 1")
		equal(f, "identification", fmt.Sprint(kept.rows["assets"][0]["identification"]), a.Identification)
		equal(f, "remains", f.remains(a.ID), "")
		_, err = f.db.Asset(f.Context(), f.company.ID, a.ID)
		f.code(fault.NotFound, err)
		equal(f, "recorded", f.recorded(activity.AssetDeleted), 1)
		f.checkCounts()
		f.checkTerms()
		late := f.joined("d1", p.ID)
		late.EnrolledAt, late.ObservedAt, late.ReportedAt = a.Device.EnrolledAt, a.Device.EnrolledAt, a.Device.EnrolledAt
		if f.observe(late).Applied {
			f.Error("a late message made the asset again")
		}
		equal(f, "the other one", f.asset(other.ID).Status, other.Status)
	})
}

// timed marks the context of what a test measures.
type timed struct{}

// Many assets are archived and deleted, all or none, and may take minutes. What failed before it was
// committed is no doubt.
func TestDeleteAssets_Many(t *testing.T) {
	withCompany(t, func(f *fixture) {
		left := time.Hour // to the end of a transaction, the least
		spent := func(ctx context.Context, _ database.Cost) {
			if deadline, ends := ctx.Deadline(); ends && ctx.Value(timed{}) != nil {
				left = min(left, time.Until(deadline))
			}
		}
		db, err := database.Open(f.Context(), database.Options{URL: f.url, Now: f.clock.Now, Spent: spent})
		f.ok(err)
		defer func() { f.ok(db.Close()) }()
		var ids []string
		var all []asset.Asset
		for n := range 101 {
			ids = append(ids, fmt.Sprint("a", n))
			all = append(all, asset.Asset{ID: ids[n], CompanyID: f.company.ID, Identification: ids[n]})
		}
		f.ok(f.db.ImportAssets(f.Context(), all))
		ctx := context.WithValue(f.Context(), timed{}, true)
		f.ok(db.ArchiveAssets(ctx, f.company.ID, ids, true))
		late := db.DeleteAssets(ctx, f.company.ID, ids, &keeper{fail: context.DeadlineExceeded})
		if !errors.Is(late, context.DeadlineExceeded) || errors.Is(late, operation.ErrDoubt) {
			f.Errorf("error = %v, want that there was no time left, without a doubt", late)
		}
		kept := &keeper{}
		f.ok(db.DeleteAssets(ctx, f.company.ID, ids, kept))
		equal(f, "exported", len(kept.rows["assets"]), len(ids))
		equal(f, "left", f.finds(asset.Filter{Archived: true}), "")
		if left <= time.Minute {
			f.Errorf("a transaction has %s left, want minutes", left)
		}
		f.checkCounts()
		f.checkTerms()
	})
}
