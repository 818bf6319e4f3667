package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
)

// cities are where the demo's devices are in pictures.
var cities = [...][2]float64{{52.52, 13.40}, {48.86, 2.35}, {41.39, 2.17}, {51.51, -0.13}, {55.68, 12.57}, {50.11, 8.68}, {45.46, 9.19}, {48.21, 16.37}, {59.33, 18.07}, {52.37, 4.90}}

// Seed gives the demo's devices places, and a month of commands to look back
// on, so that pictures show what a company in use sees.
func (d Demo) Seed(tb testing.TB) {
	tb.Helper()
	db, err := database.Open(tb.Context(), database.Options{URL: "sqlite:" + d.Data + "/muster.db", Now: time.Now})
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	owner, err := db.CompanyBySlug(tb.Context(), "acme")
	if err != nil {
		tb.Fatal(err)
	}
	devices, _, err := db.Assets(tb.Context(), asset.Query{Filter: asset.Filter{CompanyID: owner.ID, Status: asset.Active},
		Order: asset.ByIdentification, Page: operation.PageRequest{Size: 100}})
	if err != nil {
		tb.Fatal(err)
	}
	for i, a := range devices {
		locate(tb, db, a, cities[(i*i)%len(cities)])
		for n := range 6 {
			remember(tb, db, a, i*i*3+n*n*5+i*n)
		}
	}
}

// locate lets a device tell a trail of places.
func locate(tb testing.TB, db *database.DB, a asset.Asset, city [2]float64) {
	for step := range 9 {
		at := time.Now().Add(time.Duration(step-9) * 7 * time.Minute)
		shift := float64(step*step%5) * 0.0009
		if _, err := db.Observe(tb.Context(), enrollment.Observation{CompanyID: a.CompanyID, Device: a.Device.Name, Management: a.Device.Management,
			ReportedAt: time.Now(), ObservedAt: time.Now(), StatusReport: a.Device.StatusReport,
			Location: &asset.Location{Latitude: city[0] + shift, Longitude: city[1] + float64(step)*0.0012, AccuracyMeters: 35 + float64(step%3)*20, ReportedAt: at}}); err != nil {
			tb.Fatal(err)
		}
	}
}

// remember adds a command of a day in the last month, with an outcome.
func remember(tb testing.TB, db *database.DB, a asset.Asset, n int) {
	types := []command.Type{command.Lock, command.StatusReport, command.Reboot, command.LocationUpdate, command.Lock}
	actors := []command.Actor{{Kind: access.APIKey, ID: resource.NewID(), Prefix: "k7Qw2xZp", Name: "Inventory sync"}, {Kind: access.User, ID: "u", Name: "Ada Admin"},
		{Kind: access.Connection, ID: resource.NewID(), Name: "Desk assistant"}}
	at := time.Now().Add(-time.Duration(n%30)*24*time.Hour - time.Duration(n%9)*time.Hour - 5*time.Minute)
	c, _, err := db.Begin(tb.Context(), command.Command{ID: resource.NewID(), CompanyID: a.CompanyID, AssetID: a.ID, Epoch: a.Device.Epoch,
		Type: types[n%len(types)], State: command.Prepared, CreatedAt: at, Actor: actors[n%len(actors)]}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	step := command.Transition{From: []command.State{command.Prepared}, To: command.Succeeded, Outcome: "the device confirmed it", Feedback: at.Add(3 * time.Second), Ref: fmt.Sprint("operations/", c.ID)}
	switch n % 11 {
	case 3:
		step.To, step.Outcome = command.Failed, "the device was switched off until the command expired"
	case 7:
		step.To, step.Outcome, step.Feedback = command.Unconfirmed, "the platform did not answer in time", time.Time{}
	}
	if _, _, err := db.Take(tb.Context(), c.ID, step); err != nil {
		tb.Fatal(err)
	}
}
