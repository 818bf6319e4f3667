package portal_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/servertest"
)

// BenchmarkImport previews and imports a file in the portal: the goal for 100,000 lines is a
// minute and 500 MB of memory, which the process has from the system at the end.
func BenchmarkImport(b *testing.B) {
	for _, lines := range []int{25_000, 100_000} {
		b.Run(fmt.Sprint(lines), func(b *testing.B) {
			env := servertest.New(b)
			replica, tenant := env.Start(), env.NewTenant(fmt.Sprint("acme", lines))
			admin := tenant.Browser(tenant.Company, account.Admin)
			admin.SignIn(replica.PublicURL())
			var file strings.Builder
			file.WriteString("identification,serialNumber,model,tags,user,department\n")
			for i := range lines {
				fmt.Fprintf(&file, "Phone %d,SN%d,Pixel 8,store-%d;office,Person %d,Sales\n", i, i, i%100, i)
			}
			send := func(step string, fields ...string) servertest.Answer {
				contentType, body := fileForm(b, file.String(), step, fields...)
				return admin.Upload(replica.PublicURL()+"/devices/import", contentType, strings.NewReader(body))
			}
			for b.Loop() {
				preview := send("preview").Want(b, 200)
				send("import", "plan", servertest.Page{Body: string(preview.Body)}.Field(b, "plan")).Want(b, 303)
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.Sys)/(1<<20), "MB")
		})
	}
}
