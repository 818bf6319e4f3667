package service

import (
	"net/http"

	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/surface/portal"
	"github.com/musterhq/muster/internal/surface/portal/approvals"
	"github.com/musterhq/muster/internal/surface/portal/authorizations"
	"github.com/musterhq/muster/internal/surface/portal/devices"
	"github.com/musterhq/muster/internal/surface/portal/enroll"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/surface/portal/overview"
	"github.com/musterhq/muster/internal/surface/portal/policies"
	"github.com/musterhq/muster/internal/surface/web"
)

// portal mounts the people's pages. Each section gets the stores that it needs.
func (s *Service) portal(mux *http.ServeMux, registry *operation.Registry, kernel *operation.Kernel, signIn web.SignIn) {
	hub := frame.NewHub()
	stop := s.db.Listen(resource.Changes, hub.Changed)
	s.onClose(func() error {
		stop()
		return nil
	})
	s.onDrain(hub.Close)
	(&portal.Portal{
		Frame: frame.New(frame.Config{
			Registry: registry, Kernel: kernel, Companies: s.db, Users: s.db, Sessions: signIn.Sessions, Sealer: s.keys,
			PublicURL: s.public, Hub: hub, Now: s.options.Now, Log: s.options.Logger,
		}),
		Sections: append(s.peoplesSections(signIn), []portal.Section{
			&overview.Section{Assets: s.db, Commands: s.db, Policies: s.db, Proposals: s.db, Activity: s.db, Companies: s.db, Keys: s.db,
				Checklist: s.settingsSection(signIn).Checklist},
			&devices.Section{Assets: s.db, Commands: s.db, Policies: s.db, Activity: s.db, Views: s.db, Identity: s.db, Enroller: s.link, Companions: s.companions},
			&authorizations.Section{Store: s.db, Assets: s.db, Passkeys: signIn.Passkeys},
			&enroll.Section{Policies: s.db, Assets: s.db, App: s.link.AppState},
			&approvals.Section{Reviewer: s.reviewer, Store: s.db, Passkeys: signIn.Passkeys},
			&policies.Section{Editor: s.editor, Reviewer: s.reviewer, Assets: s.db, Pusher: s.platform},
		}...),
	}).Mount(mux)
}
