package service

import (
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/passkey"
	"github.com/musterhq/muster/internal/surface/portal"
	"github.com/musterhq/muster/internal/surface/portal/activity"
	"github.com/musterhq/muster/internal/surface/portal/controls"
	"github.com/musterhq/muster/internal/surface/portal/credentials"
	"github.com/musterhq/muster/internal/surface/portal/people"
	"github.com/musterhq/muster/internal/surface/portal/settings"
	"github.com/musterhq/muster/internal/surface/web"
)

// newSignIn wires the ways in which people sign in.
func (s *Service) newSignIn(sessions web.Sessions, address clientAddress) (web.SignIn, error) {
	private, err := s.config.ProviderNetworks()
	if err != nil {
		return web.SignIn{}, err
	}
	passwords := account.NewPasswords(hashesAtOnce)
	keys := account.Passkeys{Store: s.db, Owners: s.db, Steps: s.db, Sealer: s.keys, Now: s.options.Now}
	if ceremonies, err := passkey.New(s.public); err == nil {
		keys.Ceremonies = ceremonies
	} else {
		s.options.Logger.Info("passkeys are not on offer", "reason", err)
	}
	return web.SignIn{
		Sessions: sessions, ClientAddress: address.of, Log: s.options.Logger, Passkeys: keys,
		SignIn: account.SignIn{Users: s.db, Sessions: s.db, Passwords: passwords, Reserved: account.NewPasswords(hashesReserved),
			Throttle: s.db, Log: s.db, Now: s.options.Now},
		Users:       account.Users{Store: s.db, Domains: s.db, Passwords: passwords, Now: s.options.Now},
		Invitations: account.Invitations{Store: s.db, Passwords: passwords, Now: s.options.Now},
		Federation: account.Federation{
			Providers: s.db, Users: s.db, Passkeys: s.db, Steps: s.db, Sealer: s.keys, Now: s.options.Now,
			Client: identity.New(s.public+web.CallbackPath, private, s.options.Now),
		},
	}, nil
}

// peoplesSections are the pages about people, their keys, and what they did.
func (s *Service) peoplesSections(signIn web.SignIn) []portal.Section {
	return []portal.Section{
		&activity.Section{Store: s.db, Chain: s.records},
		&credentials.Section{
			Keys:        apikey.Keys{Store: s.db, Now: s.options.Now},
			Connections: oauth.Connections{Store: s.db, Users: s.db, Now: s.options.Now},
			Companies:   s.db, Usage: s.db, Steps: s.db,
		},
		&controls.Section{Store: s.db, Passkeys: signIn.Passkeys},
		&people.Users{Service: signIn.Users, Store: s.db, Invitations: signIn.Invitations, Policies: s.db,
			Keys: apikey.Keys{Store: s.db, Now: s.options.Now}},
		&people.Account{SignIn: signIn.SignIn, Service: signIn.Users, Passkeys: signIn.Passkeys, Federation: signIn.Federation,
			Sessions: signIn.Sessions, ClientAddress: signIn.ClientAddress},
		s.settingsSection(signIn),
	}
}

func (s *Service) settingsSection(signIn web.SignIn) *settings.Section {
	return &settings.Section{Companies: s.db, Federation: signIn.Federation, Platform: s.platform, Steps: s.db,
		Assets: s.db, Policies: s.db, Keys: s.db, Users: s.db,
		Throttle: s.db, ClientAddress: signIn.ClientAddress, Now: s.options.Now, Log: s.options.Logger}
}
