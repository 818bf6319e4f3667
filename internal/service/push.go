package service

import (
	"cmp"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fcm"
	"github.com/musterhq/muster/internal/platform"
)

// push makes the channel to companions on platform devices, or none: it takes
// the platform's credentials, or its endpoint (docs/operating.md: FCM is
// then taken from the same address).
func (s *Service) push() (command.Channel, error) {
	settings := fcm.Config{
		Endpoint: s.config.PlatformEndpoint, CredentialsFile: s.config.PlatformCredentials, Project: s.config.PlatformProject,
		Store: s.db, Otherwise: s.platform, Now: s.options.Now, Log: s.options.Logger,
	}
	if settings.Endpoint != "" {
		settings.Project = cmp.Or(settings.Project, platform.DefaultProject)
	}
	made, err := fcm.New(settings)
	if made == nil || err != nil {
		return nil, err
	}
	return made, nil
}
