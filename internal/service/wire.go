package service

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/agentserver"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/fcm"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/job"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/passkey"
	"github.com/musterhq/muster/internal/platform"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/proposal"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/service/mail"
	"github.com/musterhq/muster/internal/service/ops"
	"github.com/musterhq/muster/internal/surface/agentapi"
	"github.com/musterhq/muster/internal/surface/edge"
	"github.com/musterhq/muster/internal/surface/mcp"
	"github.com/musterhq/muster/internal/surface/oauth"
	"github.com/musterhq/muster/internal/surface/portal/credentials"
	"github.com/musterhq/muster/internal/surface/rest"
	"github.com/musterhq/muster/internal/surface/web"
	"github.com/musterhq/muster/internal/webhook"
)

// wiring is what assemble makes, from the store up: each layer is one function, and
// uses what those before it made.
type wiring struct {
	*Service
	mux     *http.ServeMux
	address clientAddress

	// Use cases.
	passkeys    *passkey.Ceremonies // nil: none at this address
	records     *activity.Sealer
	commands    *command.Service
	enrollments *enrollment.Service
	policies    policy.Service
	proposals   *proposal.Service
	jobs        job.Service
	feed        *event.Feed
	outages     outages
	webhooks    webhook.Service

	// Surfaces.
	once    operation.Once     // with the kernel
	own     operation.Registry // of the portal alone
	callers apikey.Authenticator
	signIn  web.SignIn
}

// assemble puts the service together.
func (s *Service) assemble(ctx context.Context) error {
	if err := s.warnOfNames(ctx); err != nil {
		return err
	}
	w := &wiring{Service: s, mux: http.NewServeMux()}
	for _, layer := range []func() error{
		w.useCases,
		func() error { return w.takeOver(ctx) },
		w.channels,   // to devices: the platform, agents, companions
		w.operations, // what REST, MCP and the portal offer
		w.agentAPI,
		w.tools, // MCP
		w.people,
		w.pages,
	} {
		if err := layer(); err != nil {
			return err
		}
	}
	w.probes()
	api := rest.New(rest.Config{
		Registry: s.registry, Once: w.once, Authenticator: w.callers, PublicURL: s.public,
		Served: s.metrics.Served, Log: s.options.Logger, Now: s.db.Now,
	})
	s.handler = edge.Harden(w.address.withOrigin(api.Wrap(w.mux)), s.public, s.options.Logger)
	w.background()
	return nil
}

// takeOver ends what a former process held, where this one is alone with its database.
func (w *wiring) takeOver(ctx context.Context) error {
	if _, embedded := w.config.SQLitePath(); !embedded {
		return nil
	}
	for _, end := range []func(context.Context) error{
		w.db.EndClaimLeases,
		w.db.ExpireDeliveryLeases, // devices may not have received what was offered
		w.commands.Abandon,        // they are not being sent
		w.db.EndProposalLeases,    // of proposals that are EXECUTING: the reconciler may look now
	} {
		if err := end(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *wiring) useCases() (err error) {
	proxies, err := w.config.Proxies()
	if err != nil {
		return err
	}
	w.address = clientAddress{proxies}
	if w.passkeys, err = passkey.New(w.public); err != nil {
		w.options.Logger.Info("passkeys are not on offer", "reason", err)
	}
	w.records = &activity.Sealer{Store: w.db, Signer: w.keys, Now: w.db.Now, Log: w.options.Logger, Alarm: w.metrics.BrokenChains}
	verifier := approval.Verifier{Service: w.keys}
	if w.passkeys != nil {
		verifier.Passkeys = w.passkeys
	}
	w.commands = &command.Service{
		Store: w.db, Finder: w.db, Inventory: w.db, Cancels: w.db, Logs: w.db, Channels: map[asset.Management]command.Channel{},
		Now: w.db.Now, Log: w.options.Logger, Observer: w.metrics, Crash: w.options.Crash,
		Digest: w.keys.Digest, Verifier: verifier, PublicURL: w.public,
	}
	networks, err := w.config.WebhookNetworks.Networks()
	if err != nil {
		return err
	}
	w.webhooks = webhookService(w.db, w.keys, networks, w.db.Now)
	w.jobs = jobService(w.db, w.commands, w.db.Now)
	w.enrollments = &enrollment.Service{Store: w.db, Companies: w.db.Companies, Now: w.db.Now}
	if w.policies, err = policyService(w.db, w.db.Now); err != nil {
		return err
	}
	w.proposals = &proposal.Service{
		Store: w.db, Policies: w.db, Companies: w.db, Checker: w.policies.Checker,
		PublicURL: w.public, Verifier: verifier, Log: w.options.Logger, Crash: w.options.Crash,
	}
	return nil
}

func (w *wiring) channels() (err error) {
	settings := platformConfig(w.config.Platform, w.public, w.db, w.db.Now)
	w.outages = newOutages(w.db, w.db.Now)
	settings.Logger, settings.Observer = w.options.Logger, watched{w.metrics, w.outages}
	settings.Stores.Commands, settings.Stores.Inventory, settings.Stores.Records = w.commands, w.enrollments, w.db
	if w.platform, err = platform.New(settings); err != nil {
		return err
	}
	w.commands.Channels[asset.Platform] = w.platform
	w.proposals.Publisher = w.platform
	if err := w.push(); err != nil {
		return err
	}
	ed25519, es256, err := w.keys.Signers()
	if err != nil {
		return err
	}
	w.link = &agentserver.Server{
		Store: w.db, Enroller: w.db, Deliveries: w.db, Logs: w.db, Companions: w.db, Directory: w.db, Observer: w.enrollments,
		Commands: w.commands,
		Waker:    w.db, Updates: w.db, Signer: ed25519, ES256: es256, PublicURL: w.public, ShortNames: w.config.QRShortNames,
		Now: w.db.Now, Since: w.db.Now(), Log: w.options.Logger,
		Pins: func() ([]string, error) { return ops.Pins(w.config.TLSCert, w.public, w.options.Now()) },
	}
	w.commands.Channels[asset.Agent] = w.link
	return nil
}

// push makes the channel to companions on platform devices, or none: it takes the
// platform's credentials, or its endpoint (docs/operating.md: FCM is then taken from
// the same address).
func (w *wiring) push() error {
	settings := fcm.Config{
		Endpoint: w.config.PlatformEndpoint, CredentialsFile: w.config.PlatformCredentials, Project: w.config.PlatformProject,
		Store: w.db, Otherwise: w.platform, Now: w.db.Now, Log: w.options.Logger,
	}
	if settings.Endpoint != "" {
		settings.Project = cmp.Or(settings.Project, platform.DefaultProject)
	}
	made, err := fcm.New(settings)
	if made != nil {
		w.commands.Push = made
	}
	return err
}

func (w *wiring) operations() error {
	r := &operation.Registry{}
	codes := &provisioning.Service{
		Catalog: w.db, Codes: w.db, Records: w.db, Stands: w.db.PermitStands, PublicURL: w.public, Now: w.db.Now,
		Log:     w.options.Logger,
		Issuers: map[policy.Type]provisioning.Issuer{policy.Platform: w.platform, policy.Agent: w.link},
	}
	// A quarter of the requests at a time may wait for events.
	w.feed = &event.Feed{Store: w.db, Stands: w.db.PermitStands, Waiters: max(w.shares.Requests/4, 1)}
	w.listen(event.Topic, w.feed.Wake)
	w.onDrain(w.feed.Close)
	define(r, handlers{asset.Reader{Store: w.db, Editor: w.db, Companions: w.commands.Push != nil}, w.db, w.commands,
		w.proposals, codes, w.feed})
	provisioning.DefineForPeople(&w.own, codes)
	asset.DefineForPeople(&w.own, w.db)
	w.once = operation.Once{Claims: w.db, Sealer: w.keys, Kernel: operation.NewKernel(operation.Config{
		Budgets: operation.Budgets{Store: w.db, Now: w.db.Now}, ReadsPerMinute: w.config.ReadsPerMinute, Limited: w.metrics.Limited,
		Stands: w.db.PermitStands, Log: w.options.Logger, Now: w.db.Now,
	})}
	operation.DefineExplain(r, &operation.Explainer{Registry: r, Kernel: w.once.Kernel, DestructiveLeft: w.db.DestructiveLeft,
		Status:  edge.Status,
		Success: edge.Success})
	w.metrics.Operations(r.All())
	w.registry = r
	w.callers = apikey.Authenticator{Keys: w.db, Now: w.db.Now}
	return nil
}

// listen has a function hear of a topic until the service closes.
func (w *wiring) listen(topic string, hear func(ids []string)) {
	stop := w.db.Listen(topic, hear)
	w.onClose(func() error {
		stop()
		return nil
	})
}

func (w *wiring) agentAPI() error {
	hub := agentapi.NewHub(w.db.Now, w.shares.Streams)
	w.link.Streams = hub
	hub.Counted = w.metrics.Streams(hub.Count, w.shares.Streams, agentapi.CommandOutcomes())
	hub.Opened = func(id string) { w.db.Notify(agentdevice.StreamTopic, id) }
	w.onClose(func() error {
		hub.Close()
		return nil
	})
	w.listen(agentdevice.WakeTopic, hub.Wake)
	w.listen(agentdevice.EndTopic, hub.End)
	w.listen(agentdevice.StreamTopic, hub.Replace)
	api := &agentapi.API{Service: w.link, Hub: hub, Log: w.options.Logger}
	door := api.Handler()
	w.mux.Handle(protocol.Base+"/", door)
	w.mux.Handle(protocol.FormerBase, door)
	w.mux.Handle(protocol.FormerBase+"/", door)
	app, err := ops.OpenApp(w.config)
	switch {
	case err != nil:
		return err
	case app == nil:
		w.mux.Handle("GET "+agentserver.AppPath, agentapi.NoApp(w.options.Logger))
	default:
		w.link.App = agentserver.App{Checksum: app.Checksum, Package: app.Package, Location: w.config.AgentAPKURL}
		w.mux.Handle("GET "+agentserver.AppPath, agentapi.App(app.Data))
		w.options.Logger.Info("serving the Android app", "signer", app.Signer, "checksum", app.Checksum)
	}
	return nil
}

func (w *wiring) tools() error {
	tools, err := mcp.New(mcp.Config{
		Registry: w.registry, Once: w.once, Keys: w.callers, Connections: w.db, Companies: w.db, PublicURL: w.public,
		ResourceMetadata: w.public + oauth.ResourcePath + mcp.Path, ConnectionsPage: w.public + "/access",
		Version: ops.ReadBuild(w.options.Version).Version, Now: w.db.Now, Log: w.options.Logger, Served: w.metrics.Served,
		Customize: w.options.CustomizeMCP,
	})
	if err != nil {
		return err
	}
	w.mux.Handle(mcp.Path, tools)
	w.mux.Handle(mcp.Path+"/{$}", tools) // as people paste it
	return nil
}

// The passwords that are checked at a time, of strangers, and of people whose
// browser or session is known. Each takes 19 MiB.
const (
	hashesAtOnce   = 4
	hashesReserved = 2
)

// people makes the ways in which people sign in.
func (w *wiring) people() error {
	private, err := w.config.ProviderNetworks()
	if err != nil {
		return err
	}
	now, passwords := w.db.Now, account.NewPasswords(hashesAtOnce)
	keys := account.Passkeys{Store: w.db, Owner: w.db.PasskeyUser, Steps: w.db, Sealer: w.keys, Now: now}
	if w.passkeys != nil {
		keys.Ceremonies = w.passkeys
	}
	w.signIn = web.SignIn{
		Sessions: web.Sessions{Store: w.db, Browsers: account.Browsers{Sealer: w.keys}, Now: now,
			Secure: strings.HasPrefix(w.public, "https://")},
		SignIn: account.SignIn{Users: w.db, Sessions: w.db, Passwords: passwords, Reserved: account.NewPasswords(hashesReserved),
			Throttle: w.db, Refused: w.db.SignInFailed, Now: now},
		Users:       account.Users{Store: w.db, Domains: w.db, Passwords: passwords, Now: now},
		Invitations: account.Invitations{Store: w.db, Passwords: passwords, Now: now, Mail: w.letters()},
		Federation: account.Federation{
			Providers: w.db, Users: w.db, Passkeys: w.db, Steps: w.db, Sealer: w.keys, Now: now,
			Client: identity.New(w.public+web.CallbackPath, private, now),
		},
		Passkeys: keys, ClientAddress: w.address.of, Log: w.options.Logger, Once: w.options.SignInOnce,
	}
	return nil
}

// letters seals the tokens of invitations that are sent by mail; nil: none are.
func (w *wiring) letters() func(token string) []byte {
	if settings, err := w.config.Mail(); err != nil || !settings.On() {
		return nil
	}
	return func(token string) []byte { return w.keys.Seal(mail.InvitationPurpose, []byte(token)) }
}

// pages mounts what browsers load.
func (w *wiring) pages() error {
	server := &oauth.Server{Issuer: w.public, Resource: w.public + mcp.Path, Store: w.db, Throttle: w.db,
		Documents: oauth.NewDocumentFetcher(nil), Now: w.db.Now, Log: w.options.Logger, ClientAddress: w.address.of}
	pages := http.NewServeMux()
	pages.Handle("GET "+web.StaticPath, web.Static())
	server.Mount(pages)
	oauth.Consent{Server: server, Sessions: w.signIn.Sessions, Companies: w.db}.Mount(pages)
	w.signIn.Mount(pages)
	(&credentials.Exchange{Keys: apikey.Keys{Store: w.db, Now: w.db.Now}, Callers: w.callers, Steps: w.db, Sessions: w.db,
		Throttle: w.db, ClientAddress: w.address.of, Now: w.db.Now, Log: w.options.Logger}).Mount(pages)
	sections := w.portal()
	w.routes = sections.Routes()
	sections.Mount(pages)
	w.mux.Handle("/", web.Secure(pages, oauth.TokenPath, oauth.RegisterPath, oauth.RevokePath))
	return nil
}
