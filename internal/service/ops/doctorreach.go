package ops

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/platform"
	"github.com/musterhq/muster/internal/service/mail"
)

// PlatformConfig configures an adapter that only looks, without a database and a log:
// the doctor's findings say what is wrong.
func PlatformConfig(p config.Platform, now func() time.Time) platform.Config {
	return platform.Config{
		Endpoint: p.PlatformEndpoint, CredentialsFile: p.PlatformCredentials,
		Project: p.PlatformProject, Subscription: p.PlatformSubscription,
		Now: now, Logger: slog.New(slog.DiscardHandler),
	}
}

// credentials asks the platform whether it takes them.
func (d *doctor) credentials(ctx context.Context, adapter *platform.Platform) {
	ctx, cancel := context.WithTimeout(ctx, 2*platformPatience)
	defer cancel()
	f := adapter.ProbeAPI(ctx)
	d.graded(f)
	d.reached = f.Grade == platform.Fine
}

func (d *doctor) graded(f platform.Finding) {
	status := map[platform.Grade]Severity{platform.Fine: Fine, platform.Warning: Warning, platform.Bad: Failed}[f.Grade]
	d.note(f.Check, status, f.Detail, f.Remedy)
}

// listens says of each address of the service whether it is free, or served by Muster already.
func (d *doctor) listens(ctx context.Context) {
	scheme := "http"
	if d.settings.TLSCert != "" {
		scheme = "https"
	}
	d.listensOn(ctx, "listen address", "MUSTER_LISTEN", d.settings.Listen, func(ctx context.Context) error {
		return isMuster(ctx, loose(), scheme+"://"+d.settings.Listen)
	})
	if d.settings.MetricsListen != "" {
		d.listensOn(ctx, "metrics address", "MUSTER_METRICS_LISTEN", d.settings.MetricsListen, func(ctx context.Context) error {
			return hasMetrics(ctx, "http://"+d.settings.MetricsListen)
		})
	}
}

func (d *doctor) listensOn(ctx context.Context, check, setting, address string, isOurs func(context.Context) error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return // reported as a setting
	}
	var listener net.ListenConfig
	l, err := listener.Listen(ctx, "tcp", address)
	switch {
	case err == nil:
		_ = l.Close()
		d.note(check, Fine, address+" is free", "")
	case errors.Is(err, syscall.EADDRINUSE) && isOurs(ctx) == nil:
		d.note(check, Fine, "a Muster service is running on "+address, "")
	case errors.Is(err, syscall.EADDRINUSE):
		d.note(check, Failed, "another program listens on "+address, "stop it, or choose another address with "+setting)
	case errors.Is(err, syscall.EACCES):
		d.note(check, Failed, err.Error(), "choose a port above 1023, or allow the program to use lower ones (CAP_NET_BIND_SERVICE)")
	default:
		d.note(check, Failed, err.Error(), "set "+setting+" to an address of this machine")
	}
}

// answers says what answers at the public URL. That nothing does is no failure:
// the service may not run yet.
func (d *doctor) answers(ctx context.Context, public string) {
	const check = "public URL"
	address, err := url.Parse(public)
	if err != nil || address.Host == "" {
		return // reported as a setting
	}
	err = isMuster(ctx, http.DefaultClient, public)
	unknown, missing := errors.AsType[*net.DNSError](err)
	stranger, foreign := errors.AsType[*strangerError](err)
	switch {
	case err == nil:
		d.note(check, Fine, "a Muster service answers there", "")
	case missing && unknown.IsNotFound:
		d.note(check, Failed, "the name "+address.Hostname()+" does not exist", "add it to the DNS, or correct MUSTER_PUBLIC_URL")
	case foreign:
		d.note(check, Failed, stranger.Error(), "correct MUSTER_PUBLIC_URL, or what the proxy there leads to")
	default:
		d.note(check, Warning, "nothing answers there from this machine: "+err.Error(),
			"start the service and what is in front of it; if devices reach the address and this machine does not, this is no fault")
	}
}

// loose asks addresses of this machine, whose certificate is for another name.
func loose() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // it only asks for /healthz
	transport.DisableKeepAlives = true
	return &http.Client{Transport: transport}
}

// strangerError is an answer that is not Muster's.
type strangerError struct{ address, what string }

// Error implements error.
func (e *strangerError) Error() string {
	return "what answers at " + e.address + " is not Muster: " + e.what
}

// isMuster asks an address for its health as Muster reports it.
func isMuster(ctx context.Context, client *http.Client, address string) error {
	status, body, err := ask(ctx, client, address+"/healthz")
	if err != nil {
		return err
	}
	var health struct {
		Status string `json:"status"`
	}
	if json.Unmarshal(body, &health) != nil || health.Status != "ok" {
		return &strangerError{address, "/healthz answers " + status}
	}
	return nil
}

// hasMetrics asks an address for Muster's metrics.
func hasMetrics(ctx context.Context, address string) error {
	status, body, err := ask(ctx, http.DefaultClient, address+"/metrics")
	if err == nil && !bytes.Contains(body, []byte("muster_build_info")) {
		err = &strangerError{address, "/metrics answers " + status}
	}
	return err
}

// maxAnswer is as much of an answer as is read, in bytes.
const maxAnswer = 1 << 20

func ask(ctx context.Context, client *http.Client, address string) (status string, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, platformPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return response.Status, body, err
}

// mail opens a conversation with the mail server, and sends nothing.
func (d *doctor) mail(ctx context.Context) {
	const check = "mail"
	settings, err := d.settings.Mail()
	switch {
	case err != nil: // run has reported it with the settings
		return
	case !settings.On():
		d.note(check, Fine, "off: only the portal shows invitations and waiting approvals; set MUSTER_SMTP_URL to send mail", "")
		return
	}
	if err := (mail.Client{Config: settings}).Check(ctx); err != nil {
		d.note(check, Failed, settings.Host+": "+err.Error(),
			"correct MUSTER_SMTP_URL or the mail server; the service tries again to send mail that is due")
		return
	}
	d.note(check, Fine, settings.Host+" takes mail from "+settings.From.Address, "")
}
