package config_test

import (
	"net"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/config"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	c := config.Service{}.WithDefaults()
	if c.Database != "sqlite:muster.db" || c.Listen != "127.0.0.1:8080" || c.KeyFile != "muster.db.keys" || c.ReadsPerMinute != 600 {
		t.Errorf("defaults are %+v", c)
	}
	if err := c.Check(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	const secret = "hunter2hunter2"
	for name, tc := range map[string]struct {
		change func(*config.Service)
		says   string
	}{
		"unknown database":         {func(c *config.Service) { c.Database = "mysql://u:" + secret + "@h/d" }, "MUSTER_DATABASE"},
		"sqlite without path":      {func(c *config.Service) { c.Database = "sqlite:" }, "MUSTER_DATABASE"},
		"database with a blank":    {func(c *config.Service) { c.Database = "sqlite:muster.db " }, "blank"},
		"postgres without keys":    {func(c *config.Service) { c.Database = "postgres://u:" + secret + "@h/d" }, "MUSTER_KEY_FILE"},
		"certificate without key":  {func(c *config.Service) { c.TLSCert = "c.pem" }, "MUSTER_TLS_KEY"},
		"public URL without http":  {func(c *config.Service) { c.PublicURL = "muster.example" }, "MUSTER_PUBLIC_URL"},
		"public URL with query":    {func(c *config.Service) { c.PublicURL = "https://m.example/?a=b" }, "MUSTER_PUBLIC_URL"},
		"public URL with path":     {func(c *config.Service) { c.PublicURL = "https://m.example/muster/" }, "must have no path"},
		"profiles without address": {func(c *config.Service) { c.Pprof = true }, "MUSTER_METRICS_LISTEN"},
		"negative delay":           {func(c *config.Service) { c.DrainDelay = -1 }, "MUSTER_DRAIN_DELAY"},
		"password with @":          {func(c *config.Service) { c.Database = "postgres://u:p@" + secret + "@h/d" }, "percent-encode"},
		"password with @ and /": {func(c *config.Service) { c.Database = "postgres://u:p@" + secret + "/w:rd@h:5432/d" },
			"percent-encode"},
		"password with ?":       {func(c *config.Service) { c.Database = "postgres://u:p?" + secret + "@h/d" }, "percent-encode"},
		"password with #":       {func(c *config.Service) { c.Database = "postgres://u:p#" + secret + "@h/d" }, "percent-encode"},
		"password with %":       {func(c *config.Service) { c.Database = "postgres://u:p%" + secret + "@h/d" }, "percent-encode"},
		"endpoint":              {func(c *config.Service) { c.PlatformEndpoint = "localhost:9000" }, "MUSTER_PLATFORM_ENDPOINT"},
		"listen without port":   {func(c *config.Service) { c.Listen = "localhost" }, "MUSTER_LISTEN"},
		"proxy without network": {func(c *config.Service) { c.TrustedProxies = []string{"10.0.0.1"} }, "MUSTER_TRUSTED_PROXIES"},
		"mail without sender":   {func(c *config.Service) { c.SMTPURL = "smtp://u:" + secret + "@mail.test" }, "MUSTER_MAIL_FROM"},
		"mail of another scheme": {func(c *config.Service) { c.SMTPURL, c.MailFrom = "http://u:"+secret+"@mail.test", "m@acme.test" },
			"MUSTER_SMTP_URL"},
		"mail URL with %": {func(c *config.Service) { c.SMTPURL, c.MailFrom = "smtp://u:p%"+secret+"@mail.test", "m@acme.test" },
			"MUSTER_SMTP_URL"},
		"sender that is no address": {func(c *config.Service) { c.SMTPURL, c.MailFrom = "smtp://mail.test", "m\r\nBcc: x" },
			"MUSTER_MAIL_FROM"},
		"negative ceiling": {func(c *config.Service) { c.ReadsPerMinute = -1 }, "MUSTER_READS_PER_MINUTE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := config.Service{}
			tc.change(&c)
			err := c.WithDefaults().Check()
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("got %v; want an error about %s", err, tc.says)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

func TestCheck_NamesEverything(t *testing.T) {
	t.Parallel()
	err := config.Service{Store: config.Store{Database: "x"}, Listen: "y", TLSKey: "z"}.WithDefaults().Check()
	for _, setting := range []string{"MUSTER_DATABASE", "MUSTER_LISTEN", "MUSTER_TLS_CERT"} {
		if err == nil || !strings.Contains(err.Error(), setting) {
			t.Errorf("%s is not in: %v", setting, err)
		}
	}
}

func TestPublicAddress(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config    config.Service
		listening string
		want      string
	}{
		"as set":          {config.Service{PublicURL: "https://m.example/"}, "127.0.0.1:1", "https://m.example"},
		"capital letters": {config.Service{PublicURL: "HTTPS://Muster.Example"}, "127.0.0.1:1", "https://muster.example"},
		"default port":    {config.Service{PublicURL: "https://m.example:443/"}, "127.0.0.1:1", "https://m.example"},
		"plain port":      {config.Service{PublicURL: "http://[::1]:80"}, "127.0.0.1:1", "http://[::1]"},
		"another port":    {config.Service{PublicURL: "https://m.example:80"}, "127.0.0.1:1", "https://m.example:80"},
		"no port":         {config.Service{PublicURL: "https://[::443]"}, "127.0.0.1:1", "https://[::443]"},
		"derived":         {config.Service{}, "127.0.0.1:8080", "http://127.0.0.1:8080"},
		"everywhere":      {config.Service{}, "0.0.0.0:8080", "http://localhost:8080"},
		"everywhere6":     {config.Service{}, "[::]:8080", "http://localhost:8080"},
		"with TLS":        {config.Service{TLSCert: "c", TLSKey: "k"}, "[::1]:443", "https://[::1]:443"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, err := net.ResolveTCPAddr("tcp", tc.listening)
			if err != nil {
				t.Fatal(err)
			}
			if got := tc.config.WithDefaults().PublicAddress(address); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
