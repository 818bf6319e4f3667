package database_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/database/benchtest"
	"github.com/musterhq/muster/internal/database/pgtest"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/resource"
)

// Each figure stands beside the floor of the same engine, taken in the same
// run; see docs/performance.md. A run worth quoting is
//
//	go test ./internal/database -run '^$' -bench . -assets 1000000 -timeout 60m
var size = flag.Int("assets", 20_000, "assets in the benchmarks' database")

// fleet is a database with many assets, and its floor.
type fleet struct {
	*benchtest.Fleet
	*engine
	db    *database.DB
	floor *benchtest.Floor
}

// onFleets runs benchmarks on both engines, SQLite first.
func onFleets(b *testing.B, assets int, searched bool, run func(b *testing.B, f *fleet)) {
	open := func(b *testing.B, e *engine) *fleet {
		b.Helper()
		f := &fleet{Fleet: benchtest.Load(b, e.url, assets, e.clock.Now(), searched), engine: e}
		var err error
		if f.db, err = database.Open(b.Context(), database.Options{URL: e.url, Now: e.clock.Now}); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = f.db.Close() })
		if f.floor, err = benchtest.Open(e.url); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = f.floor.Close() })
		if err := f.floor.Prepare(b.Context()); err != nil {
			b.Fatal(err)
		}
		return f
	}
	b.Run("sqlite", func(b *testing.B) {
		run(b, open(b, &engine{"sqlite", "sqlite:" + filepath.Join(b.TempDir(), "fleet.db"), newClock()}))
	})
	b.Run("postgres", func(b *testing.B) {
		run(b, open(b, &engine{"postgres", pgtest.DSN(b), newClock()}))
	})
}

// figure is what one call cost.
type figure struct{ time, cpu float64 }

// over reports how many times its floor a figure is.
func (f *figure) over(b *testing.B, floor *figure) {
	if floor != nil && floor.time > 0 {
		b.ReportMetric(f.time/floor.time, "x-floor-time")
		b.ReportMetric(f.cpu/floor.cpu, "x-floor-cpu")
	}
}

// measure measures one call after another.
func measure(b *testing.B, what string, floor *figure, call func(ctx context.Context, n int) error) *figure {
	b.Helper()
	got := &figure{}
	b.Run(what, func(b *testing.B) {
		ctx := b.Context()
		for n := range 10 { // prepares the statements, and plans them
			if err := call(ctx, n); err != nil {
				b.Fatal(err)
			}
		}
		n, before, start := 0, cpu(b), time.Now()
		for b.Loop() {
			if err := call(ctx, n); err != nil {
				b.Fatal(err)
			}
			n++
		}
		*got = figure{float64(time.Since(start)) / float64(n), float64(cpu(b)-before) / float64(n)}
		b.ReportMetric(got.cpu, "cpu-ns/op")
		got.over(b, floor)
	})
	return got
}

// together measures one call made by 32 callers at once.
func together(b *testing.B, what string, floor *figure, call func(ctx context.Context, n int) error) *figure {
	b.Helper()
	got := &figure{}
	b.Run(what, func(b *testing.B) {
		before := cpu(b)
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			// Callers begin at different numbers.
			for n := int(time.Now().UnixNano() % 1000); pb.Next(); n++ {
				if err := call(context.Background(), n); err != nil {
					b.Error(err)
					return
				}
			}
		})
		*got = figure{float64(b.Elapsed()) / float64(b.N), float64(cpu(b)-before) / float64(b.N)}
		b.ReportMetric(got.cpu, "cpu-ns/op")
		got.over(b, floor)
	})
	return got
}

// cpu is the time that this process has computed: steadier than the clock on a
// busy machine, but blind to what PostgreSQL's own processes do.
func cpu(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func (f *fleet) list(q asset.Query, pages func(n int) int) func(ctx context.Context, n int) error {
	q.CompanyID, q.Page.Size = f.Company.ID, 20
	return func(ctx context.Context, n int) error {
		q := q
		q.Page.Page = pages(n)
		page, total, err := f.db.Assets(ctx, q)
		if err == nil && (len(page) != 20 || total < 20) {
			err = fmt.Errorf("a page of %d, of %d", len(page), total)
		}
		return err
	}
}

func (f *fleet) bare(pages func(n int) int) func(ctx context.Context, n int) error {
	return func(ctx context.Context, n int) error {
		page, err := f.floor.Page(ctx, f.Company.ID, pages(n))
		if err == nil && len(page) != 20 {
			err = fmt.Errorf("a page of %d", len(page))
		}
		return err
	}
}

func (f *fleet) bareGet(ctx context.Context, n int) error {
	_, err := f.Get(f.floor)(ctx, n)
	return err
}

// firstPages are the first 50; with few assets, those that there are.
func (f *fleet) firstPages(n int) int { return n % int(min(50, f.Active/1000+1)) }

func at(page int) func(int) int { return func(int) int { return page } }

func BenchmarkAssets(b *testing.B) {
	onFleets(b, *size, false, func(b *testing.B, f *fleet) {
		byStatus := asset.Filter{Status: asset.Active}
		newest := asset.Query{Filter: byStatus, Order: asset.BySyncedAt, Descending: true}
		filters := map[string]asset.Filter{
			"all": {}, "status": byStatus, "policy": {PolicyID: f.Policies[3]},
			"both": {Status: asset.Active, PolicyID: f.Policies[3]}, "three policies": {Policies: f.Policies[:3]},
		}

		page := measure(b, "P6/floor", nil, f.bare(f.firstPages))
		measure(b, "P6/page", page, f.list(newest, f.firstPages))
		for what, filter := range filters {
			for _, o := range []asset.Order{asset.BySyncedAt, asset.ByIdentification, asset.ByStatus, asset.ByCreatedAt} {
				measure(b, fmt.Sprintf("page/%s by %s", what, o), page, f.list(asset.Query{Filter: filter, Order: o}, f.firstPages))
			}
		}
		get := measure(b, "P7/floor get", nil, f.bareGet)
		measure(b, "P7/count one by one", get, func(ctx context.Context, _ int) error {
			_, err := f.floor.Count(ctx, f.Company.ID)
			return err
		})
		for what, filter := range filters {
			measure(b, "P7/count "+what, get, func(ctx context.Context, _ int) error {
				filter := filter
				filter.CompanyID = f.Company.ID
				_, err := f.db.CountAssets(ctx, filter)
				return err
			})
		}
		deep := measure(b, "P8/floor", nil, f.bare(at(f.Deep())))
		measure(b, "P8/deep page", deep, f.list(newest, at(f.Deep())))
		middle := measure(b, "P8/floor half way", nil, f.bare(at(int(f.Active/40))))
		measure(b, "P8/half way", middle, f.list(newest, at(int(f.Active/40))))
		measure(b, "P8/all, half way", middle, f.list(asset.Query{Order: asset.BySyncedAt}, at(*size/40)))
		measure(b, "P9/get", get, func(ctx context.Context, n int) error {
			_, err := f.db.Asset(ctx, f.Company.ID, f.Some[n%len(f.Some)])
			return err
		})
	})
}

func finding(text string) asset.Query { return asset.Query{Filter: asset.Filter{Text: text}} }

func BenchmarkSearch(b *testing.B) {
	onFleets(b, *size, true, func(b *testing.B, f *fleet) {
		now := f.clock.Now()
		many := append([]string(nil), f.Policies[:3]...)
		for n := range 30 {
			many = append(many, fmt.Sprint("nobodys", n))
		}
		serial := "s" + strings.TrimLeft(strings.TrimPrefix(f.Some[500], "asset000000000001"), "0")
		for _, c := range []struct {
			what string
			asset.Query
		}{
			{"everything", asset.Query{}},
			{"everything by last contact", asset.Query{Order: asset.ByLastSeenAt}},
			{"one serial number", finding(serial)},
			{"thousands of serial numbers", finding("s1234")},
			{"a word that all have", finding("phone")},
			{"a word of all and a word of some", finding("phone 12")},
			{"words of few in common", finding("12 34 56")},
			{"a rare tag", asset.Query{Filter: asset.Filter{Tags: []string{"rack 17"}}}},
			{"a tag that all have", asset.Query{Filter: asset.Filter{Tags: []string{"shop"}, Status: asset.Inactive}}},
			{"silent, many", asset.Query{Filter: asset.Filter{SeenBefore: now.Add(1000 * time.Hour)}}},
			{"silent, few", asset.Query{Filter: asset.Filter{SeenBefore: now.Add(time.Hour)}}},
			{"in touch, none", asset.Query{Filter: asset.Filter{SeenAfter: now.Add(10000 * time.Hour)}}},
			{"not compliant, a few thousand", asset.Query{Filter: asset.Filter{Compliant: new(false)}}},
			{"battery below 2", asset.Query{Filter: asset.Filter{BatteryBelow: 2}}},
			{"battery below 50, half of them", asset.Query{Filter: asset.Filter{BatteryBelow: 50}}},
			{"behind on policy", asset.Query{Filter: asset.Filter{PolicyBehind: new(true)}}},
			{"three policies", asset.Query{Filter: asset.Filter{Policies: f.Policies[:3], Text: "phone"}}},
			{"many policies", asset.Query{Filter: asset.Filter{Policies: many, Text: "12"}}},
			{"no hit", finding("nothing")},
		} {
			c.CompanyID, c.Page.Size = f.Company.ID, 25
			if c.Order == "" {
				c.Order, c.Descending = asset.BySyncedAt, true
			}
			measure(b, c.what, nil, func(ctx context.Context, _ int) error {
				_, _, err := f.db.Assets(ctx, c.Query)
				return err
			})
		}
	})
}

func BenchmarkWrites(b *testing.B) {
	onFleets(b, min(*size, 20_000), true, func(b *testing.B, f *fleet) {
		insert := func(ctx context.Context, _ int) error { return f.floor.Insert(ctx) }
		one := measure(b, "P2/floor insert", nil, insert)
		measure(b, "P2/begin and take", one, f.send)
		many := together(b, "P2/floor insert, 32 callers", nil, insert)
		together(b, "P2/begin and take, 32 callers", many, f.send)
		together(b, "P2/begin, 32 callers", many, func(ctx context.Context, n int) error {
			_, _, err := f.db.Begin(ctx, f.intent(n), nil)
			return err
		})
		together(b, "P2/spend, 32 callers", many, func(ctx context.Context, n int) error {
			_, _, _, err := f.db.Spend(ctx, fmt.Sprint("key", n%1000), 10, time.Minute, f.clock.Now())
			return err
		})
		k, _ := apikey.New(f.Company.ID, "k", "operator", access.All, f.clock.Now(), time.Time{})
		if err := f.db.CreateKey(b.Context(), k); err != nil {
			b.Fatal(err)
		}
		measure(b, "key by prefix", nil, func(ctx context.Context, _ int) error {
			_, _, err := f.db.KeyByPrefix(ctx, k.Prefix)
			return err
		})
		measure(b, "observe a report", one, f.report)
		together(b, "observe a report, 32 callers", many, f.report)
	})
}

func (f *fleet) intent(n int) command.Command {
	return command.Command{
		ID: resource.NewID(), CompanyID: f.Company.ID, AssetID: f.Some[n%len(f.Some)], Epoch: 1, Type: command.Lock,
		State: command.Prepared, CreatedAt: f.clock.Now(), Actor: access.Actor{Kind: access.APIKey, ID: "key", Prefix: "prefix"},
	}
}

func (f *fleet) send(ctx context.Context, n int) error {
	c, _, err := f.db.Begin(ctx, f.intent(n), nil)
	if err != nil {
		return err
	}
	_, _, err = f.db.Advance(ctx, c.ID, command.Transition{From: []command.State{command.Prepared}, To: command.Sent, Ref: "op" + c.ID})
	return err
}

// report is one more word of a device that has joined.
func (f *fleet) report(ctx context.Context, n int) error {
	f.clock.Advance(time.Millisecond)
	_, err := f.db.Observe(ctx, enrollment.Observation{
		CompanyID: f.Company.ID, Device: fmt.Sprint("bench", n%1000), Management: asset.Platform,
		ReportedAt: f.clock.Now(), ObservedAt: f.clock.Now(), MessageID: resource.NewID(),
		Specifications: map[string]string{"osVersion": "15"}, StatusReport: json.RawMessage(`{"batteryLevel":50}`),
	})
	return err
}
