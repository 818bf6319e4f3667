package database_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
)

func (f *fixture) newKey(name string, permissions access.Permission) (apikey.Key, string) {
	f.Helper()
	k, text := apikey.New(f.company.ID, name, "operator", permissions, f.clock.Now(), time.Time{})
	f.ok(f.db.CreateKey(f.Context(), k))
	return k, text
}

func TestKey_IsReadWithItsCompany(t *testing.T) {
	withCompany(t, func(f *fixture) {
		k, text := f.newKey("ci", access.DevicesRead|access.Provisioning)
		got, p, err := f.db.KeyByPrefix(f.Context(), k.Prefix)
		f.ok(err)
		equal(f, "key", got, k)
		if !got.Matches(text) {
			f.Fatal("the stored hash does not match the key's text")
		}
		equal(f, "principal", p, access.Principal{Kind: access.APIKey, ID: k.ID, Name: "ci", Prefix: k.Prefix,
			CompanyID: f.company.ID, CompanySlug: "acme", Permissions: k.Permissions, Settings: f.company.Settings})
		_, err = f.db.UpdateCompany(f.Context(), f.company.ID, func(c *company.Company) error {
			c.Settings.PolicyChanges = true
			return nil
		})
		f.ok(err)
		_, p, err = f.db.KeyByPrefix(f.Context(), k.Prefix)
		f.ok(err)
		equal(f, "policy changes", p.Settings.PolicyChanges, true)
		_, _, err = f.db.KeyByPrefix(f.Context(), "missing")
		f.code(fault.NotFound, err)
	})
}

func TestKey_DamagedHashIsNamed(t *testing.T) {
	withCompany(t, func(f *fixture) {
		k, _ := f.newKey("ci", access.DevicesRead)
		for _, hash := range []string{"", "abc", strings.Repeat("x", 64), strings.Repeat("0", 66)} {
			f.ok(f.db.Write(f.Context(), nil, `UPDATE api_keys SET hash = '`+hash+`' WHERE id = '`+k.ID+`'`))
			_, _, err := f.db.KeyByPrefix(f.Context(), k.Prefix)
			if err == nil || !strings.Contains(err.Error(), k.Prefix) || !strings.Contains(err.Error(), "hash") {
				f.Errorf("the hash %q: %v", hash, err)
			}
		}
	})
}

func TestKeys_ListedNewestFirst(t *testing.T) {
	withCompany(t, func(f *fixture) {
		first, _ := f.newKey("same name", access.DevicesRead)
		f.clock.Advance(time.Second)
		second, _ := f.newKey("same name", access.DevicesRead)
		other := f.newCompany("other")
		all, err := f.db.Keys(f.Context(), f.company.ID)
		f.ok(err)
		equal(f, "keys", all, []apikey.Key{second, first})
		all, err = f.db.Keys(f.Context(), other.ID)
		f.ok(err)
		equal(f, "another company's keys", len(all), 0)
	})
}

func TestKey_StaysRevoked(t *testing.T) {
	withCompany(t, func(f *fixture) {
		k, _ := f.newKey("ci", access.DevicesRead)
		other := f.newCompany("other")
		at := f.clock.Now()
		_, err := f.db.RevokeKey(f.Context(), other.ID, k.ID, at)
		f.code(fault.NotFound, err)
		got, err := f.db.RevokeKey(f.Context(), f.company.ID, k.ID, at)
		f.ok(err)
		equal(f, "revoked", got.RevokedAt, at)
		got, err = f.db.RevokeKey(f.Context(), f.company.ID, k.ID, at.Add(time.Hour))
		f.ok(err)
		equal(f, "revoked", got.RevokedAt, at)
		got, _, err = f.db.KeyByPrefix(f.Context(), k.Prefix)
		f.ok(err)
		equal(f, "usable", got.Usable(at), false)
	})
}

// What limits a key is in the activity log, and its end is once.
func TestKey_IsRecorded(t *testing.T) {
	withCompany(t, func(f *fixture) {
		fields := func(action activity.Action) (of []string) {
			entries, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: f.company.ID, Action: action}, activity.Cursor{}, 10)
			f.ok(err)
			for _, c := range entries[0].Changes {
				of = append(of, c.Field)
			}
			return of
		}
		f.newKey("plain", access.DevicesRead)
		equal(f, "without limits", fields(activity.KeyCreated), []string{"permissions", "prefix"})
		f.clock.Advance(time.Second)
		k, _ := apikey.New(f.company.ID, "limited", "operator", access.DevicesRead, f.clock.Now(), f.clock.Now().Add(time.Hour))
		k.DevicesPerDay = 3
		f.ok(f.db.CreateKey(f.Context(), k))
		equal(f, "with limits", fields(activity.KeyCreated), []string{"permissions", "prefix", "expiresAt", "devicesPerDay"})
		for range 2 {
			_, err := f.db.RevokeKey(f.Context(), f.company.ID, k.ID, f.clock.Now())
			f.ok(err)
		}
		equal(f, "revoked", f.recorded(activity.KeyRevoked), 1)
	})
}

func TestKeyUses_WrittenByClose(t *testing.T) {
	withCompany(t, func(f *fixture) {
		k, _ := f.newKey("ci", access.DevicesRead)
		unused, _ := f.newKey("unused", access.DevicesRead)
		device := f.enroll("d", "")
		second := f.open(f)
		f.clock.Advance(time.Minute)
		f.ok(second.TouchKey(f.Context(), k.ID))
		second.TouchDevice(device.ID, f.clock.Now())
		f.ok(second.TouchKey(f.Context(), "missing"))
		f.ok(second.Close())
		all, err := f.db.Keys(f.Context(), f.company.ID)
		f.ok(err)
		i := slices.IndexFunc(all, func(o apikey.Key) bool { return o.ID == k.ID })
		equal(f, "last use", all[i].LastUsedAt, f.clock.Now())
		equal(f, "last use of another", all[1-i].LastUsedAt, unused.LastUsedAt)
		equal(f, "last seen", f.asset(device.ID).Device.LastSeenAt, f.clock.Now())
	})
}

func TestKeyUses_WrittenWithinTenSeconds(t *testing.T) {
	t.Parallel()
	e := sqliteEngine(t)
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, e)
		k, _ := f.newKey("ci", access.DevicesRead)
		f.clock.Advance(time.Second)
		f.ok(f.db.TouchKey(f.Context(), k.ID))
		time.Sleep(10 * time.Second) // of the bubble's own time
		synctest.Wait()
		got, _, err := f.db.KeyByPrefix(f.Context(), k.Prefix)
		f.ok(err)
		equal(f, "last use", got.LastUsedAt, f.clock.Now())
	})
}

func TestKeyUses_WrittenTogether(t *testing.T) {
	withCompany(t, func(f *fixture) {
		var keys []apikey.Key
		for range 450 { // more than two statements' worth
			k, _ := f.newKey("ci", access.DevicesRead)
			keys = append(keys, k)
		}
		second := f.open(f)
		f.clock.Advance(time.Minute)
		for _, k := range keys {
			f.ok(second.TouchKey(f.Context(), k.ID))
		}
		f.ok(second.Close())
		all, err := f.db.Keys(f.Context(), f.company.ID)
		f.ok(err)
		for _, k := range all {
			equal(f, "last use", k.LastUsedAt, f.clock.Now())
		}
	})
}
