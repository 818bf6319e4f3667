package service

import (
	"context"

	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/surface/portal"
	"github.com/musterhq/muster/internal/surface/portal/activity"
	"github.com/musterhq/muster/internal/surface/portal/approvals"
	"github.com/musterhq/muster/internal/surface/portal/controls"
	"github.com/musterhq/muster/internal/surface/portal/credentials"
	"github.com/musterhq/muster/internal/surface/portal/devices"
	"github.com/musterhq/muster/internal/surface/portal/enroll"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/surface/portal/overview"
	"github.com/musterhq/muster/internal/surface/portal/people"
	"github.com/musterhq/muster/internal/surface/portal/policies"
	"github.com/musterhq/muster/internal/surface/portal/settings"
	"github.com/musterhq/muster/internal/surface/portal/webhooks"
)

// portal makes the pages for people. Each section gets the stores that it needs.
func (w *wiring) portal() *portal.Portal {
	hub := frame.NewHub()
	w.listen(resource.Changes, hub.Changed)
	w.onDrain(hub.Close)
	now, log, signIn := w.db.Now, w.options.Logger, w.signIn
	keys := apikey.Keys{Store: w.db, Now: now}
	reviewer := proposal.Reviewer{Service: w.proposals, Store: w.db}
	company := &settings.Section{Controls: w.db, Federation: signIn.Federation, Platform: w.platform,
		Assets: w.db, Policies: w.db, Keys: w.db, Users: w.db, Updates: w.db, System: w.system, Throttle: w.db,
		ClientAddress: signIn.ClientAddress, Now: now, Log: log}
	return &portal.Portal{
		Frame: &frame.Frame{
			Registry: w.registry, Own: &w.own, Kernel: w.once.Kernel, Stands: w.db.PermitStands, Companies: w.db, Users: w.db,
			Sessions: signIn.Sessions, Sealer: w.keys, PublicURL: w.public, Hub: hub, Attention: w.db.Attention,
			Activity: w.db.Activity, Trouble: w.db.EnterpriseTrouble, Now: now, Log: log,
		},
		Sections: []portal.Section{
			&activity.Section{Store: w.db, Chain: w.records},
			&credentials.Section{Keys: keys, Connections: oauth.Connections{Store: w.db, Users: w.db, Now: now},
				Companies: w.db, Usage: w.db, Steps: w.db, Log: log},
			&controls.Section{Store: w.db},
			&people.Users{Service: signIn.Users, Store: w.db, Invitations: signIn.Invitations, Policies: w.db, Keys: keys},
			&people.Account{SignIn: signIn.SignIn, Service: signIn.Users, Passkeys: signIn.Passkeys, Federation: signIn.Federation,
				Sessions: signIn.Sessions, Mail: w.db, MailSent: w.letters() != nil, ClientAddress: signIn.ClientAddress},
			company,
			&webhooks.Section{Service: w.webhooks, Steps: w.db},
			&overview.Section{Assets: w.db, Commands: w.db, Policies: w.db, Proposals: w.db, Activity: w.db, Companies: w.db, Keys: w.db,
				Approvers: w.db.Approvers, Checklist: company.Checklist},
			&devices.Section{Assets: w.db, Commands: w.db, Open: w.db, Policies: w.db, Logs: w.db, Activity: w.db, Views: w.db,
				Identity: w.db, Jobs: w.jobs, Undo: w.db, Editor: w.db, Deleter: w.db,
				Requests: w.db, EnrollAgain: w.link.EnrollAgain, Companions: w.commands.Push != nil},
			&enroll.Section{Policies: w.db, Codes: w.db, Assets: w.db, Steps: w.db, App: w.link.AppState},
			&approvals.Section{Reviewer: reviewer, Store: w.db, Assets: w.db, Passkeys: signIn.Passkeys,
				Verifier: w.proposals.Verifier},
			&policies.Section{Policies: w.policies, Reviewer: reviewer, Assets: w.db, Progress: w.db.PolicyProgress,
				Push: w.platform.PushPolicy},
		},
	}
}

// system is what the portal's System page shows of the service to a company's administrators.
func (w *wiring) system(ctx context.Context, companyID string) (s settings.System, err error) {
	build := ops.ReadBuild(w.options.Version)
	s = settings.System{Version: build.Version, Revision: build.Revision, Engine: w.db.Engine(), Schema: database.SchemaNumber(),
		PlatformOn: w.config.PlatformEndpoint != "" || w.config.PlatformCredentials != "", MailOn: w.letters() != nil}
	s.Lag, s.NotifiedAt = w.metrics.LastNotification()
	if s.Size, err = w.db.Size(ctx); err != nil {
		return s, err
	}
	if s.Replicas, err = w.db.Replicas(ctx); err != nil {
		return s, err
	}
	if s.Commands, s.Jobs, err = w.db.Queues(ctx, companyID); err != nil {
		return s, err
	}
	if left, known := w.diskFree(); known {
		s.DiskFree = left
		if s.BackedUp, err = w.db.BackedUp(ctx); err != nil {
			return s, err
		}
	}
	s.Loops = w.running.check() != nil
	for _, f := range ops.Examine(ctx, w.config, w.db, w.options.Now) {
		s.Checks = append(s.Checks, settings.Check{Name: f.Check, Fine: f.Status == ops.Fine, Failed: f.Status == ops.Failed,
			Detail: f.Detail, Remedy: f.Remedy})
	}
	return s, nil
}
