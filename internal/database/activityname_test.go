package database_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
)

// The log has the name that a device had, finds its commands by it, and keeps it when the
// device is renamed or deleted.
func TestActivity_NamesOfDevices(t *testing.T) {
	withCompany(t, func(f *fixture) {
		f.destructiveApproval()
		a := f.enroll("d1", f.newPolicy("p").ID)
		rename := func(name string) {
			_, err := f.db.EditAsset(f.Context(), f.company.ID, a.ID, asset.Edit{Identification: &name})
			f.ok(err)
			a.Identification = name
		}
		rename("Scanner 12")
		named := f.intent(a, command.Lock)
		named.AssetName = a.Identification
		_, _, err := f.db.Begin(f.Context(), named, nil)
		f.ok(err)
		f.clock.Advance(time.Second)
		f.ends(named, command.Failed, "no")
		f.clock.Advance(time.Second)
		asked := f.refusal(f.db, f.asking(a, command.WipeCompanyData, "d"))
		byJob := f.intent(a, command.Reboot) // as an earlier version recorded it, without the name
		_, _, err = f.db.Begin(access.WithActor(f.Context(), access.ServiceActor(), "job/1"), byJob, nil)
		f.ok(err)
		rename("Scanner 13")

		commands := func(text string) (targets []string) {
			all, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: f.company.ID, Area: "command", Text: text, Once: text != ""},
				activity.Cursor{}, activity.MaxPage)
			f.ok(err)
			for _, e := range all {
				targets = append(targets, e.Target.Name)
			}
			return targets
		}
		equal(f, "commands", commands(""), []string{"Scanner 13", "Scanner 12", "Scanner 12"})
		equal(f, "found by the name of then", commands("scanner 12"), []string{"Scanner 12"})
		equal(f, "found by the name of now, though a job sent it", commands("scanner 13"), []string{"Scanner 13"})

		rename("Ärztehaus ÖST")
		equal(f, "found by a name with capitals outside ASCII", commands("ärztehaus öst"), []string{"Ärztehaus ÖST"})
		equal(f, "found by the name's own letters", commands("Ärztehaus ÖST"), []string{"Ärztehaus ÖST"})
		equal(f, "not found by other letters", commands("arztehaus"), []string(nil))
		rename("Scanner 13")

		gone := f.observation("d1")
		gone.Gone = true
		f.observe(gone)
		f.ok(f.db.ArchiveAssets(f.Context(), f.company.ID, []string{a.ID}, true))
		f.ok(f.db.DeleteAssets(f.Context(), f.company.ID, []string{a.ID}, &keeper{}))
		equal(f, "after the deletion", commands(""), []string{"Scanner 13", "Scanner 13", "Scanner 12", "Scanner 12"})
		all, err := f.db.Activity(f.Context(), activity.Filter{CompanyID: f.company.ID, TargetID: a.ID}, activity.Cursor{},
			activity.MaxPage)
		f.ok(err)
		for _, e := range all {
			said := e.Tell(func(string) (past, base, noun string) { return "locked", "lock", "it" }).String()
			if e.Action.Area() == "command" && e.Outcome == activity.OK && !strings.Contains(said, "asked to") {
				f.Errorf("the log says %q of what is not known any more", said)
			}
			if e.Target.Name == "" || e.Ended() == activity.Open {
				f.Errorf("%s of %q ended as %d", e.Action, e.Target.Name, e.Ended())
			}
		}
		listed, err := f.db.Authorizations(f.Context(), f.company.ID, nil, 10)
		f.ok(err)
		if len(listed) != 1 || listed[0].ID != asked.ID {
			f.Errorf("the authorizations are %+v", listed)
		}
	})
}
