// Package config is what an operator may set, by MUSTER_* variables or by
// flags of the same name (docs/operating.md). The command
// line reads the values; this package names them, fills in defaults and says
// what cannot be right.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// Store says where the database is.
type Store struct {
	Database string `name:"database" env:"MUSTER_DATABASE" secret:"" default:"sqlite:muster.db" placeholder:"URL" help:"The database: sqlite:PATH or a postgres:// URL. Give a URL with a password in MUSTER_DATABASE, or a file that holds it in MUSTER_DATABASE_FILE: other users can see flags. Default: ${default}."`
}

// Platform says how the vendor's API is reached. With an endpoint set none of
// the rest is needed.
type Platform struct {
	PlatformEndpoint     string `name:"platform-endpoint" env:"MUSTER_PLATFORM_ENDPOINT" placeholder:"URL" help:"Address of the vendor's API; empty: the real one. Set an emulator's address to rehearse."`
	PlatformCredentials  string `name:"platform-credentials" env:"MUSTER_PLATFORM_CREDENTIALS" placeholder:"FILE" help:"Service-account file for the vendor's API."`
	PlatformProject      string `name:"platform-project" env:"MUSTER_PLATFORM_PROJECT" placeholder:"ID" help:"Project at the vendor that owns the enterprises."`
	PlatformSubscription string `name:"platform-subscription" env:"MUSTER_PLATFORM_SUBSCRIPTION" placeholder:"NAME" help:"Pub/Sub subscription from which notifications are pulled."`
}

// WebhookNetworks says where webhooks may send although the address is not public.
type WebhookNetworks struct {
	WebhookNetworks []string `name:"webhook-networks" env:"MUSTER_WEBHOOK_NETWORKS" placeholder:"CIDR,…" help:"Networks in which receivers of webhooks may be, there also with http; all others must have public https addresses."`
}

// Networks are those of the setting.
func (w WebhookNetworks) Networks() ([]netip.Prefix, error) {
	return networks("MUSTER_WEBHOOK_NETWORKS", w.WebhookNetworks)
}

// Service is the configuration of one service. Every empty field that has a
// default is filled in by WithDefaults.
type Service struct {
	Store
	Platform
	Listen         string   `name:"listen" env:"MUSTER_LISTEN" default:"127.0.0.1:8080" placeholder:"ADDR" help:"Address to serve on. Default: ${default}."`
	PublicURL      string   `name:"public-url" env:"MUSTER_PUBLIC_URL" placeholder:"URL" help:"Address under which people and devices reach the service; by default made from the one listened on."`
	KeyFile        string   `name:"key-file" env:"MUSTER_KEY_FILE" placeholder:"FILE" help:"The service's own signing and sealing keys; made beside the SQLite file at first start, required with PostgreSQL."`
	ReadsPerMinute int      `name:"reads-per-minute" env:"MUSTER_READS_PER_MINUTE" default:"600" placeholder:"N" help:"Ceiling of reads a minute for each API key; it protects the server. Default: ${default}."`
	TLSCert        string   `name:"tls-cert" env:"MUSTER_TLS_CERT" placeholder:"FILE" help:"Certificate chain (PEM); read again when it changes."`
	TLSKey         string   `name:"tls-key" env:"MUSTER_TLS_KEY" placeholder:"FILE" help:"Private key of the certificate (PEM)."`
	TrustedProxies []string `name:"trusted-proxies" env:"MUSTER_TRUSTED_PROXIES" placeholder:"CIDR,…" help:"Networks of reverse proxies whose X-Forwarded-For is believed, where strangers' requests are counted by address."`
	// PrivateProviders says where companies' identity providers may be although
	// the address is not public. http is allowed only where it names loopback.
	PrivateProviders []string `name:"private-providers" env:"MUSTER_PRIVATE_PROVIDERS" placeholder:"CIDR,…" help:"Networks in which companies' identity providers may be; all others must have public addresses."`
	WebhookNetworks
	SMTPURL       string        `name:"smtp-url" env:"MUSTER_SMTP_URL" secret:"" placeholder:"URL" help:"Server that takes mail: smtp://USER:PASSWORD@HOST:587 (with STARTTLS, but on loopback) or smtps://…:465. Give it in MUSTER_SMTP_URL, or a file that holds it in MUSTER_SMTP_URL_FILE: other users can see flags. Empty: no mail is sent."`
	MailFrom      string        `name:"mail-from" env:"MUSTER_MAIL_FROM" placeholder:"ADDRESS" help:"Sender of mail, such as 'Muster <muster@example.com>'."`
	LogLevel      string        `name:"log-level" env:"MUSTER_LOG_LEVEL" enum:"debug,info,warn,error" default:"info" help:"Lowest level to log: debug, info, warn or error."`
	LogFormat     string        `name:"log-format" env:"MUSTER_LOG_FORMAT" enum:"text,json" default:"text" help:"Format of the log: text or json."`
	DrainDelay    time.Duration `name:"drain-delay" env:"MUSTER_DRAIN_DELAY" default:"0s" placeholder:"DURATION" help:"How long /readyz says not ready before the service stops taking connections, when it is told to stop. Behind a proxy that checks readiness: longer than its interval, such as 5s. Default: ${default}."`
	MetricsListen string        `name:"metrics-listen" env:"MUSTER_METRICS_LISTEN" placeholder:"ADDR" help:"Serve /metrics on this address instead of the main one."`
	Pprof         bool          `name:"pprof" env:"MUSTER_PPROF" help:"Serve profiles of the process below /debug/pprof/ on --metrics-listen, which must then not be public: profiles contain parts of the memory's content."`

	AgentAPK    string `name:"agent-apk" env:"MUSTER_AGENT_APK" placeholder:"FILE" help:"The Android app that the QR codes of own-agent policies install (make app). Releases hold one; without any, a code installs nothing."`
	AgentAPKURL string `name:"agent-apk-url" env:"MUSTER_AGENT_APK_URL" placeholder:"URL" help:"Where devices download that app, instead of from this service. Needed where the service has a certificate of its own: Android's download trusts public authorities alone."`

	QRShortNames bool `name:"qr-short-names" env:"MUSTER_QR_SHORT_NAMES" help:"Write QR codes of own-agent policies with the setup wizard's short names, which Android 12L and newer know: cameras read them from farther away."`

	// NameLoopback calls a loopback address localhost, where browsers allow passkeys.
	NameLoopback bool `kong:"-"`

	AcceptLostKeys bool `name:"accept-lost-keys" help:"Start although the key file lacks keys that the database names: what they sealed cannot be opened, and devices that know only them must enroll again."`
}

// Defaults of settings that are not set.
const (
	DefaultDatabase       = "sqlite:muster.db"
	DefaultListen         = "127.0.0.1:8080"
	DefaultReadsPerMinute = 600
	sqliteScheme          = "sqlite:"
)

// WithDefaults returns the configuration with its empty fields filled in.
func (c Service) WithDefaults() Service {
	c.Database = cmp.Or(c.Database, DefaultDatabase)
	c.Listen = cmp.Or(c.Listen, DefaultListen)
	c.LogLevel = cmp.Or(c.LogLevel, "info")
	c.LogFormat = cmp.Or(c.LogFormat, "text")
	c.ReadsPerMinute = cmp.Or(c.ReadsPerMinute, DefaultReadsPerMinute)
	if path, ok := c.SQLitePath(); ok {
		c.KeyFile = cmp.Or(c.KeyFile, KeyFileBeside(path))
	}
	c.PublicURL = Origin(c.PublicURL)
	return c
}

// Origin is an address as browsers and clients write its origin: in lower case, and without the port that its scheme has
// by default or a slash at the end. What is no origin stays: Check refuses it.
func Origin(address string) string {
	address = strings.TrimRight(address, "/")
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Path+u.RawQuery+u.Fragment != "" || u.User != nil {
		return address
	}
	host := strings.TrimSuffix(strings.ToLower(u.Host), map[string]string{"http": ":80", "https": ":443"}[u.Scheme])
	return u.Scheme + "://" + host
}

// Check reports everything that cannot be right, in one error.
func (c Service) Check() error {
	var wrong []error
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if err := c.Store.Check(); err != nil {
		wrong = append(wrong, err)
	} else if c.KeyFile == "" {
		add("MUSTER_KEY_FILE is required with PostgreSQL, where every replica needs the same keys: make the file once with `muster " +
			"doctor --make-key-file FILE` and give it to each")
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		add("MUSTER_TLS_CERT and MUSTER_TLS_KEY belong together: set both or neither")
	}
	if c.PublicURL != "" {
		if err := checkAddress("MUSTER_PUBLIC_URL", c.PublicURL); err != nil {
			wrong = append(wrong, err)
		} else if u, _ := url.Parse(c.PublicURL); strings.Trim(u.Path, "/") != "" {
			add("MUSTER_PUBLIC_URL %q must have no path: the service is at the root of its host, such as %s://%s",
				c.PublicURL, u.Scheme, u.Host)
		}
	}
	if c.AgentAPKURL != "" {
		wrong = append(wrong, checkAddress("MUSTER_AGENT_APK_URL", c.AgentAPKURL))
	}
	wrong = append(wrong, c.Platform.Check())
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		add("MUSTER_LISTEN %q is not HOST:PORT, such as %s", c.Listen, DefaultListen)
	}
	if _, _, err := net.SplitHostPort(c.MetricsListen); err != nil && c.MetricsListen != "" {
		add("MUSTER_METRICS_LISTEN %q is not HOST:PORT, such as 127.0.0.1:9090", c.MetricsListen)
	}
	if c.Pprof && c.MetricsListen == "" {
		add("MUSTER_PPROF needs MUSTER_METRICS_LISTEN: profiles are never served on the main address; set it to a private address, such " +
			"as 127.0.0.1:9090")
	}
	if c.DrainDelay < 0 {
		add("MUSTER_DRAIN_DELAY %s is negative", c.DrainDelay)
	}
	if c.ReadsPerMinute < 0 {
		add("MUSTER_READS_PER_MINUTE %d is negative", c.ReadsPerMinute)
	}
	if _, err := c.Mail(); err != nil {
		wrong = append(wrong, err)
	}
	_, proxies := c.Proxies()
	_, providers := c.ProviderNetworks()
	_, webhooks := c.WebhookNetworks.Networks()
	return errors.Join(append(wrong, proxies, providers, webhooks)...)
}

// Proxies are the networks of TrustedProxies.
func (c Service) Proxies() ([]netip.Prefix, error) {
	return networks("MUSTER_TRUSTED_PROXIES", c.TrustedProxies)
}

// ProviderNetworks are the networks of PrivateProviders.
func (c Service) ProviderNetworks() ([]netip.Prefix, error) {
	return networks("MUSTER_PRIVATE_PROVIDERS", c.PrivateProviders)
}

func networks(setting string, texts []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range texts {
		network, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %q is not a network such as 10.0.0.0/8", setting, text)
		}
		all = append(all, network.Masked())
	}
	return all, nil
}

// Check reports a database setting that cannot be right. It never repeats the
// text, which may hold a password.
func (s Store) Check() error {
	if strings.TrimSpace(s.Database) != s.Database {
		return errors.New("MUSTER_DATABASE begins or ends with a blank: take it away")
	}
	if _, ok := s.SQLitePath(); ok {
		return nil
	}
	if strings.HasPrefix(s.Database, "postgres://") || strings.HasPrefix(s.Database, "postgresql://") {
		return s.checkPostgres()
	}
	return errors.New("MUSTER_DATABASE must be sqlite:PATH or a postgres:// URL")
}

// checkPostgres recognizes a password with characters that end it early: what
// is left of it would be taken for the host, and shown in every error.
func (s Store) checkPostgres() error {
	address, _, _ := strings.Cut(s.Database, "?")
	if _, err := url.Parse(s.Database); err != nil || strings.Count(address, "@") > 1 || strings.Contains(s.Database, "#") ||
		strings.Count(s.Database, "@") > 0 && !strings.Contains(address, "@") {
		return errors.New("MUSTER_DATABASE is not a valid postgres:// URL: percent-encode special characters of the user and the " +
			"password, such as %40 for @, %2F for /, %3A for :, %23 for # and %3F for ?")
	}
	return nil
}

// SQLitePath returns the file of an embedded database.
func (s Store) SQLitePath() (string, bool) {
	path, ok := strings.CutPrefix(s.Database, sqliteScheme)
	return path, ok && path != ""
}

// Engine names the database without anything secret: its file, or PostgreSQL.
func (s Store) Engine() string {
	if path, ok := s.SQLitePath(); ok {
		return sqliteScheme + path
	}
	return "postgres"
}

// Check reports an endpoint that is no address.
func (p Platform) Check() error {
	if p.PlatformEndpoint == "" {
		return nil
	}
	return checkAddress("MUSTER_PLATFORM_ENDPOINT", p.PlatformEndpoint)
}

func checkAddress(setting, text string) error {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fmt.Errorf("%s %q is not an http:// or https:// address", setting, text)
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("%s must have no user, query or fragment", setting)
	}
	return nil
}

// KeyFileBeside is where the keys of an embedded database are kept by default.
func KeyFileBeside(sqlitePath string) string { return filepath.Clean(sqlitePath) + ".keys" }

// PublicAddress is PublicURL or, if that is not set, what the address listened
// on comes to. An address that means every interface becomes localhost, and with
// NameLoopback this machine's own does, too.
func (c Service) PublicAddress(listening net.Addr) string {
	if c.PublicURL != "" {
		return c.PublicURL
	}
	scheme := "http"
	if c.TLSCert != "" {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(listening.String())
	if err != nil {
		return scheme + "://" + listening.String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() || c.NameLoopback && ip.IsLoopback() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}
