package portal_test

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/servertest"
)

// The System page shows an administrator the state of the service, nothing of another
// company, and no path of the server. Others do not see it.
func TestSystem_ForAdministrators(t *testing.T) {
	t.Parallel()
	servertest.OnEach(t, func(t *testing.T, env *servertest.Env) {
		tenant := env.NewTenant("acme")
		other := env.NewTenant("globex")
		service := env.Start()
		o := &office{Tenant: tenant, replica: service, base: service.PublicURL()}
		theirs := &office{Tenant: other, replica: service, base: service.PublicURL()}
		a := theirs.device(t, "s1", "SYS-1", "Phone", other.Policy)
		sender := theirs.person(t, account.Admin)
		sender.Send(o.base+"/devices/"+a.ID+"/commands/lock_device", map[string][]string{"once": {"x"}})
		if open, err := o.DB().OpenOf(t.Context(), a.ID); err != nil || len(open) > 1 || len(open) == 1 && open[0].Type != command.Lock {
			t.Fatal(open, err)
		}
		admin, viewer := o.person(t, account.Admin), o.person(t, account.Viewer)
		page := o.get(t, admin, "/settings/system", 200)
		for _, want := range []string{"Version", "Schema", "Replicas", "Last backup", "Last notification", "Commands without a result",
			"Key file", "Disk"} {
			if want == "Disk" && !strings.Contains(page, "SQLite") {
				continue
			}
			if !strings.Contains(page, want) {
				t.Errorf("no %q", want)
			}
		}
		for _, wrong := range []string{"globex", "/tmp/", t.TempDir()} {
			if strings.Contains(page, wrong) {
				t.Errorf("%q is shown", wrong)
			}
		}
		if commands, jobs, err := o.DB().Queues(t.Context(), o.Company.ID); err != nil || commands != 0 || jobs != 0 {
			t.Errorf("the queues count those of another company: %d, %d, %v", commands, jobs, err)
		}
		if replicas, err := o.DB().Replicas(t.Context()); err != nil || replicas < 1 {
			t.Errorf("%d replicas, %v", replicas, err)
		}
		o.get(t, viewer, "/settings/system", 403)
	})
}
