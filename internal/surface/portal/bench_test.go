package portal_test

import (
	"flag"
	"net/url"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/database/benchtest"
	"github.com/musterhq/muster/internal/servertest"
)

var benchAssets = flag.Int("portal-assets", 1_000_000, "how many assets the portal's benchmark is run with")

// BenchmarkPages measures pages of a company with a million assets, as one
// person after the other asks for them: the goal is 100 ms.
func BenchmarkPages(b *testing.B) {
	for engine, make := range map[string]func(testing.TB) *servertest.Env{"sqlite": servertest.New, "postgres": servertest.NewPostgres} {
		b.Run(engine, func(b *testing.B) { benchPages(b, make(b)) })
	}
}

func benchPages(b *testing.B, env *servertest.Env) {
	fleet := benchtest.Load(b, env.Database, *benchAssets, time.Now().Add(-time.Hour), true)
	replica := env.Start()
	admin := env.Browser(fleet.Company, account.Admin)
	limited := env.Browser(fleet.Company, account.Viewer, fleet.Policies[1], fleet.Policies[2])
	for _, p := range []*servertest.Browser{admin, limited} {
		p.SignIn(replica.PublicURL())
	}
	for name, path := range map[string]string{
		"overview": "/", "devices": "/devices", "deep": "/devices?page=3000&size=100", "status": "/devices?status=INACTIVE&size=100",
		"policy": "/devices?policy=" + fleet.Policies[3] + "&sort=identification,asc", "word": "/devices?q=pixel",
		"words":  "/devices?q=" + url.QueryEscape("samsung 14"),
		"agents": "/devices?management=AGENT", "quiet": "/devices?seenBefore=24h", "none": "/devices?q=nothing-like-it",
		"device": "/devices/" + fleet.Some[0],
		"search": "/search?q=pix",
	} {
		for who, p := range map[string]*servertest.Browser{"all": admin, "limited": limited} {
			if who == "limited" && name != "overview" && name != "devices" && name != "word" {
				continue
			}
			b.Run(name+"/"+who, func(b *testing.B) {
				for b.Loop() {
					p.Send(replica.PublicURL()+path, nil, "Accept-Encoding", "gzip").Want(b, 200)
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/page")
			})
		}
	}
}
