package service

import (
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/surface/mcp"
	"github.com/musterhq/muster/internal/surface/oauth"
	"github.com/musterhq/muster/internal/surface/portal"
	"github.com/musterhq/muster/internal/surface/web"
)

// The passwords that are checked at a time, of strangers, and of people whose
// browser or session is known. Each takes 19 MiB.
const (
	hashesAtOnce   = 4
	hashesReserved = 2
)

// assistants mounts MCP and the authorization server that lets MCP clients in.
func (s *Service) assistants(mux *http.ServeMux, registry *operation.Registry, kernel *operation.Kernel, keys apikey.Authenticator) error {
	tools, err := mcp.New(mcp.Config{
		Registry: registry, Kernel: kernel, Keys: keys, Connections: s.db, Companies: s.db, PublicURL: s.public,
		ResourceMetadata: s.public + oauth.ResourcePath + mcp.Path, ConnectionsPage: s.public + "/access",
		Version: buildVersion(), Now: s.options.Now, Log: s.options.Logger, Observer: restMetrics{s.metrics}, Customize: s.options.CustomizeMCP,
		Claims: s.db, Sealer: s.keys,
	})
	if err != nil {
		return err
	}
	mux.Handle(mcp.Path, tools)
	mux.Handle(mcp.Path+"/{$}", tools) // as people paste it
	return s.pages(mux, registry, kernel)
}

// pages mounts what people's browsers load.
func (s *Service) pages(mux *http.ServeMux, registry *operation.Registry, kernel *operation.Kernel) error {
	own, err := portal.Static()
	if err != nil {
		return err
	}
	static, err := web.NewStatic(own)
	if err != nil {
		return err
	}
	proxies, err := s.config.Proxies()
	if err != nil {
		return err
	}
	address := clientAddress{proxies}
	sessions := web.Sessions{Store: s.db, Browsers: account.Browsers{Sealer: s.keys}, Now: s.options.Now, Secure: strings.HasPrefix(s.public, "https://")}
	server := &oauth.Server{Issuer: s.public, Resource: s.public + mcp.Path, Store: s.db, Throttle: s.db,
		Documents: oauth.NewDocumentFetcher(nil), Now: s.options.Now, Log: s.options.Logger, ClientAddress: address.of}

	pages := http.NewServeMux()
	pages.Handle("GET "+web.StaticPath, static)
	server.Mount(pages)
	oauth.Consent{Server: server, Sessions: sessions, Companies: s.db}.Mount(pages)
	signIn, err := s.newSignIn(sessions, address)
	if err != nil {
		return err
	}
	signIn.Mount(pages)
	s.portal(pages, registry, kernel, signIn)
	mux.Handle("/", web.Secure(pages, oauth.TokenPath, oauth.RegisterPath, oauth.RevokePath))
	return nil
}

// buildVersion is the version that the build carries.
func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}
