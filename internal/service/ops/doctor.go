package ops

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/database"
	"github.com/musterhq/muster/internal/platform"
)

// Finding is the result of one check of the set-up.
type Finding struct {
	Check  string   `json:"check"`
	Status Severity `json:"status"`
	Detail string   `json:"detail"`
	Remedy string   `json:"remedy,omitempty"`
}

// Severity grades a finding.
type Severity string

// The severities. Only Failed makes the doctor end with exit 1.
const (
	Fine    Severity = "ok"
	Warning Severity = "warning"
	Failed  Severity = "failed"
)

// doctor collects findings.
type doctor struct {
	settings config.Service
	now      func() time.Time
	findings []Finding
	reached  bool // the platform takes our credentials
}

func (d *doctor) note(check string, status Severity, detail, remedy string) {
	d.findings = append(d.findings, Finding{check, status, detail, remedy})
}

// Diagnose checks the set-up and says how to correct it. It changes nothing.
func Diagnose(ctx context.Context, settings config.Service, now func() time.Time) []Finding {
	d := &doctor{settings: settings.WithDefaults(), now: now}
	if err := d.settings.Check(); err != nil {
		for _, one := range unjoin(err) {
			d.note("settings", Failed, one.Error(), "correct the setting; `muster serve --help` explains each")
		}
	} else {
		d.note("settings", Fine, "each is well-formed", "")
	}
	d.openFiles()
	d.listens(ctx)
	d.publicURL(ctx)
	d.certificate()
	d.app()
	d.mail(ctx)
	if d.settings.Platform.Check() == nil {
		d.platform(ctx)
	}
	if d.settings.Store.Check() == nil {
		d.database(ctx)
	} else {
		d.keyFile(nil)
	}
	return d.findings
}

func unjoin(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	return []error{err}
}

func (d *doctor) publicURL(ctx context.Context) {
	const remedy = "set MUSTER_PUBLIC_URL to the https:// address that people and devices use"
	listens, err := net.ResolveTCPAddr("tcp", d.settings.Listen)
	if err != nil {
		d.note("public URL", Failed, err.Error(), "correct MUSTER_LISTEN")
		return
	}
	text := d.settings.PublicAddress(listens)
	address, err := url.Parse(text)
	if err != nil {
		d.note("public URL", Failed, err.Error(), remedy)
		return
	}
	loopback := address.Hostname() == "localhost" || net.ParseIP(address.Hostname()).IsLoopback()
	switch {
	case d.settings.PublicURL == "" && !listens.IP.IsLoopback():
		d.note("public URL", Warning, "not set, so links and QR codes say "+text, remedy)
	case loopback:
		d.note("public URL", Warning, text+" is reached from this machine alone", remedy+", unless you only try things out")
	case address.Scheme != "https":
		d.note("public URL", Warning, text+" is not https: keys and passwords cross the network in the clear",
			"put TLS in front, or set MUSTER_TLS_CERT and MUSTER_TLS_KEY")
	default:
		d.note("public URL", Fine, text, "")
	}
	if d.settings.PublicURL != "" {
		d.answers(ctx, text)
	}
}

// renewalTime is how long before its end a certificate should be renewed.
const renewalTime = 14 * 24 * time.Hour

func (d *doctor) certificate() {
	if d.settings.TLSCert == "" || d.settings.TLSKey == "" {
		return
	}
	pair, err := tls.LoadX509KeyPair(d.settings.TLSCert, d.settings.TLSKey)
	if err != nil {
		d.note("TLS certificate", Failed, err.Error(), "give the certificate chain and its private key in PEM files")
		return
	}
	leaf := pair.Leaf
	const remedy = "renew it; the service reads the new files by itself"
	if address, err := url.Parse(d.settings.PublicURL); err == nil && address.Scheme == "https" {
		if err := leaf.VerifyHostname(address.Hostname()); err != nil {
			d.note("TLS certificate", Warning, err.Error(), "use a certificate for the host of MUSTER_PUBLIC_URL, or correct that; if a "+
				"proxy is in front, only the proxy sees this certificate")
		}
	}
	ends := "valid until " + leaf.NotAfter.UTC().Format(time.RFC3339)
	switch left := leaf.NotAfter.Sub(d.now()); {
	case d.now().Before(leaf.NotBefore):
		d.note("TLS certificate", Failed, "not valid before "+leaf.NotBefore.UTC().Format(time.RFC3339),
			"set this machine's clock, or use a certificate that is valid now")
	case left <= 0:
		d.note("TLS certificate", Failed, "expired: "+ends, remedy)
	case left < renewalTime:
		d.note("TLS certificate", Warning, ends, remedy)
	default:
		d.note("TLS certificate", Fine, ends, "")
	}
}

// platformPatience is how long the vendor's address may take to answer at all.
const platformPatience = 5 * time.Second

// platform checks the way to the vendor's API. That it does not answer now is
// no failure: the service starts without it, and tries again.
func (d *doctor) platform(ctx context.Context) {
	const check = "platform"
	p := d.settings.Platform
	adapter, err := platform.New(PlatformConfig(p, d.now))
	if err != nil {
		d.note(check, Failed, err.Error(), "correct MUSTER_PLATFORM_CREDENTIALS; docs/how-to/google.md says how such a file is made")
		return
	}
	switch {
	case p.PlatformEndpoint == "" && p.PlatformCredentials == "":
		d.note(check, Warning, "no credentials, so only devices with our own agent can be managed",
			"set MUSTER_PLATFORM_CREDENTIALS to a service account's key file, or MUSTER_PLATFORM_ENDPOINT to an emulator's address "+
				"to rehearse")
	case p.PlatformEndpoint == "":
		d.credentials(ctx, adapter)
	default:
		if _, _, err := ask(ctx, http.DefaultClient, p.PlatformEndpoint); err != nil {
			d.note(check, Warning, fmt.Sprintf("nothing answers at %s: %s", p.PlatformEndpoint, err),
				"start what serves MUSTER_PLATFORM_ENDPOINT, such as `muster emulator`, or correct the address")
			return
		}
		d.credentials(ctx, adapter)
	}
}

// Examine returns what the doctor finds about a service that runs, without what asks other
// servers, reads the whole database, or is about one company. Paths are shortened to the
// names of the files: administrators of companies see the findings.
func Examine(ctx context.Context, settings config.Service, db *database.DB, now func() time.Time) []Finding {
	d := &doctor{settings: settings.WithDefaults(), now: now}
	d.certificate()
	d.diskFree()
	if found, err := database.Inspect(ctx, d.settings.Database); err == nil {
		d.keyFile(&found)
	} else {
		d.note("key file", Warning, "cannot compare it with the database", "run muster doctor")
	}
	if _, embedded := d.settings.SQLitePath(); !embedded {
		d.clock(ctx, db)
	}
	d.backedUp(ctx, db)
	sqlite, _ := d.settings.SQLitePath()
	for _, path := range []string{d.settings.KeyFile, d.settings.TLSCert, d.settings.TLSKey, sqlite} {
		if path == "" {
			continue
		}
		for i, f := range d.findings {
			d.findings[i].Detail = strings.ReplaceAll(f.Detail, path, filepath.Base(path))
			d.findings[i].Remedy = strings.ReplaceAll(f.Remedy, path, filepath.Base(path))
		}
	}
	return d.findings
}
