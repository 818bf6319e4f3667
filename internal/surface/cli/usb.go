package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/apk"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/usb"
	"github.com/musterhq/muster/internal/usb/adb"
)

// USB provisions devices over USB (docs/usb.md). Like every
// command here it works on the database; it also needs the running service's
// key file, which signs what devices obey.
type USB struct {
	Common
	Company    string        `name:"company" placeholder:"SLUG" help:"The company's slug; needed where --policy is no path name."`
	Policy     string        `name:"policy" required:"" placeholder:"POLICY" help:"The AGENT policy under which devices enroll: its path name, or its name or id."`
	Serial     []string      `name:"serial" sep:"none" placeholder:"SERIAL" help:"Only the device that adb lists under this serial number; repeat for more. By default every device that is connected."`
	Watch      bool          `name:"watch" help:"Go on with devices as they are plugged in, until interrupted."`
	Server     string        `name:"server" env:"MUSTER_PUBLIC_URL" placeholder:"URL" help:"The address under which devices reach the service; by default its public URL."`
	Agent      string        `name:"agent" placeholder:"FILE" help:"The agent for devices that have none in their system; by default muster-agent-ARCH beside this program."`
	App        string        `name:"app" env:"MUSTER_AGENT_APK" placeholder:"FILE" help:"The Android app (make app) for devices that have no agent in their system: it becomes their device owner. Releases hold one. With --agent it is not used."`
	Transcript string        `name:"transcript" placeholder:"FILE" help:"Record what is run on the devices and what they answer, without secrets, serial numbers and accounts: for reports about hardware."`
	Wait       time.Duration `name:"wait" default:"1m" help:"How long a device may take to enroll. Default: ${default}."`

	KeyFile        string `name:"key-file" env:"MUSTER_KEY_FILE" placeholder:"FILE" help:"The running service's keys; by default beside the SQLite file."`
	AcceptLostKeys bool   `name:"accept-lost-keys" help:"Go on although the key file lacks keys that the database names."`
	TLSCert        string `name:"tls-cert" env:"MUSTER_TLS_CERT" placeholder:"FILE" help:"The service's certificate chain, if it shows one of its own."`
	Listen         string `name:"listen" env:"MUSTER_LISTEN" default:"127.0.0.1:8080" hidden:""`
	ADBSocket      string `name:"adb-socket" env:"ADB_SERVER_SOCKET" placeholder:"tcp:HOST:PORT" help:"Where the adb server listens. Default: tcp:127.0.0.1:5037."`
	ADBPort        string `name:"adb-port" env:"ANDROID_ADB_SERVER_PORT" placeholder:"PORT" help:"Its port, if only that differs."`
}

type usbView struct {
	Policy   string       `json:"policy"`
	Enrolled int          `json:"enrolled"`
	Already  int          `json:"alreadyEnrolled"`
	Failed   int          `json:"failed"` // whatever is not good, ELSEWHERE included
	Devices  []usb.Result `json:"devices"`
}

// Run provisions the devices.
func (c *USB) Run(env *Env) error {
	server, err := adb.Address(c.ADBSocket, c.ADBPort)
	if err != nil {
		return usage(fault.Invalid(err.Error()))
	}
	settings, loopback, err := c.service()
	if err != nil {
		return err
	}
	return c.open(env, Writes, func(ctx context.Context, admin *Admin) (answer, error) {
		issuing, err := c.admin(ctx, env, admin, settings)
		if err != nil {
			return answer{}, err
		}
		tool := &usb.Tool{ADB: adb.Client{Program: env.ADB, Address: server}, Enroller: issuing, Serials: c.Serial, Patience: c.Wait,
			Programs: c.programs()}
		app, err := c.app()
		if err != nil {
			return answer{}, err
		}
		if app != nil {
			tool.App, tool.Package = app.Data, app.Package
		}
		var transcript *os.File
		if c.Transcript != "" {
			file, err := os.OpenFile(c.Transcript, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
			if err != nil {
				return answer{}, err
			}
			transcript, tool.Transcript = file, &usb.Transcript{To: file}
		}
		if c.Output == "text" {
			tool.Say = func(r usb.Result) { fmt.Fprintln(env.Out, progress(r)) }
		}
		if loopback && c.Output == "text" {
			fmt.Fprintf(env.Out, "%s is a loopback address: a device gets here only through `adb reverse`.\n", settings.PublicURL)
		}
		results, err := phrase.Either(c.Watch, tool.Watch, tool.Once)(ctx)
		if transcript != nil {
			err = cmp.Or(err, tool.Transcript.Err, transcript.Close())
		}
		view := summary(issuing.policy.PathName(), results)
		if err == nil && view.Failed > 0 {
			err = &ExitError{1, fmt.Sprintf("%d of %s not provisioned: see what is said of each", view.Failed,
				phrase.Count(len(results), "device is", "devices are"))}
		}
		return answerf(view, "%d enrolled, %d were enrolled already, %d failed.\n", view.Enrolled, view.Already, view.Failed), err
	})
}

// app is the Android app: what was given, or what this program holds. An agent that
// was given is brought along instead.
func (c *USB) app() (*apk.App, error) {
	switch {
	case c.Agent != "":
		return nil, nil
	case c.App != "":
		return apk.Open(c.App)
	}
	return apk.Embedded()
}

// programs are the agents to bring along: what was given, or what lies beside
// this program.
func (c *USB) programs() usb.Programs {
	p := usb.Programs{File: c.Agent}
	if program, err := os.Executable(); err == nil {
		p.Dir = filepath.Dir(program)
	}
	return p
}

// service is what a token says of the running service, and whether only the
// device's own loopback can lead there.
func (c *USB) service() (s config.Service, loopback bool, err error) {
	s = config.Service{Store: c.Store, PublicURL: c.Server, KeyFile: c.KeyFile, AcceptLostKeys: c.AcceptLostKeys,
		TLSCert: c.TLSCert}.WithDefaults()
	if s.PublicURL == "" {
		listening, err := net.ResolveTCPAddr("tcp", c.Listen)
		if err != nil {
			return s, false, fault.Invalid(fmt.Sprintf("MUSTER_LISTEN %q is not HOST:PORT", c.Listen))
		}
		if listening.IP == nil || listening.IP.IsLoopback() || listening.IP.IsUnspecified() {
			return s, false, fault.Invalid("devices must be told where the service is: give --server URL, or set MUSTER_PUBLIC_URL as " +
				"for the service")
		}
		s.PublicURL = s.PublicAddress(listening)
	}
	address, err := url.Parse(s.PublicURL)
	if err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != "http" {
		return s, false, usage(fault.Invalid(fmt.Sprintf("--server %q is not an https:// address", s.PublicURL)))
	}
	loopback = address.Hostname() == "localhost" || net.ParseIP(address.Hostname()).IsLoopback()
	if address.Scheme == "http" && !loopback {
		err = usage(fault.Invalid(fmt.Sprintf("--server %q is not https: devices would refuse it", s.PublicURL)))
	}
	return s, loopback, err
}

// issuingEnroller issues tokens of one policy. It implements usb.Enroller.
type issuingEnroller struct {
	provisioning *provisioning.Service
	tokens       TokenFinder
	principal    access.Principal
	policy       policy.Policy
	owner        company.Company
}

func (c *USB) admin(ctx context.Context, env *Env, admin *Admin, settings config.Service) (*issuingEnroller, error) {
	slug := c.Company
	if owner, full := resource.Owner(c.Policy); full && slug == "" {
		slug = owner
	}
	if slug == "" {
		return nil, usage(fault.Invalid(fmt.Sprintf("--policy %q is a name or a short id: give its path name, or --company as well",
			c.Policy)))
	}
	owner, err := admin.company(ctx, slug)
	if err != nil {
		return nil, err
	}
	d := &issuingEnroller{tokens: admin.Tokens, owner: owner, principal: env.operator(owner)}
	if d.provisioning, err = admin.Provisioning(ctx, settings, policy.Agent); err != nil {
		return nil, err
	}
	named, err := admin.policy(ctx, owner, c.Policy)
	if err != nil {
		return nil, err
	}
	d.policy, err = d.provisioning.Provisionable(ctx, d.principal, named.PathName())
	return d, missing(err, slug, "policy", c.Policy)
}

// Issue implements usb.Enroller.
func (d *issuingEnroller) Issue(ctx context.Context) (usb.Bundle, error) {
	token, _, err := d.provisioning.Bundle(ctx, d.principal, d.policy.ID)
	return usb.Bundle{Text: token.Payload}, err
}

// Enrolled implements usb.Enroller.
func (d *issuingEnroller) Enrolled(ctx context.Context, b usb.Bundle) (string, error) {
	code, err := protocol.ParseCode(string(b.Text))
	if err != nil {
		return "", err
	}
	device, err := d.tokens.AgentOfToken(ctx, sha256.Sum256([]byte(code.Token)))
	if fault.CodeOf(err) == fault.NotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return resource.Of(d.owner.Slug, resource.Assets, device.AssetID), nil
}

// Known implements usb.Enroller.
func (d *issuingEnroller) Known(ctx context.Context, deviceID string) (string, error) {
	device, err := d.tokens.AgentDevice(ctx, deviceID)
	if fault.CodeOf(err) == fault.NotFound || err == nil && (device.CompanyID != d.owner.ID || device.State == agentdevice.Deleted ||
		device.AssetID == "") {
		return "", nil
	}
	return resource.Of(d.owner.Slug, resource.Assets, device.AssetID), err
}

// progress is one line about a device.
func progress(r usb.Result) string {
	text := r.Title() + ": "
	switch r.Outcome {
	case usb.Working:
		return text + r.Detail
	case usb.Enrolled:
		text += "enrolled as " + r.Asset
	case usb.AlreadyEnrolled:
		text += "enrolled already as " + r.Asset
	default:
		text += strings.ToLower(strings.ReplaceAll(string(r.Outcome), "_", " "))
	}
	if r.Detail != "" {
		text += "; " + r.Detail
	}
	return text
}

func summary(policyName string, results []usb.Result) usbView {
	view := usbView{Policy: policyName, Devices: results}
	for _, r := range results {
		switch {
		case r.Outcome == usb.Enrolled:
			view.Enrolled++
		case r.Outcome == usb.AlreadyEnrolled:
			view.Already++
		default:
			view.Failed++
		}
	}
	return view
}
