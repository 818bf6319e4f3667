package agentserver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/resource"
)

// The device-owner app that a QR code installs. Its classes and the names of what a code
// has for it stay the same if an operator builds it under another package.
const (
	appPackage  = "dev.muster.agent"
	appReceiver = appPackage + ".AdminReceiver"
	// AppPath is where a device downloads the app from.
	AppPath = "/agent/agent.apk"
)

// payload is what the setup wizard reads from the code (Android's own names).
type payload struct {
	Component string            `json:"android.app.extra.PROVISIONING_DEVICE_ADMIN_COMPONENT_NAME"`
	Download  string            `json:"android.app.extra.PROVISIONING_DEVICE_ADMIN_PACKAGE_DOWNLOAD_LOCATION,omitempty"`
	Checksum  string            `json:"android.app.extra.PROVISIONING_DEVICE_ADMIN_SIGNATURE_CHECKSUM,omitempty"`
	KeepApps  bool              `json:"android.app.extra.PROVISIONING_LEAVE_ALL_SYSTEM_APPS_ENABLED"`
	Extras    map[string]string `json:"android.app.extra.PROVISIONING_ADMIN_EXTRAS_BUNDLE"`
}

// Issue makes an enrollment token of an AGENT policy, for one device unless its code is for
// more. It implements provisioning.Issuer.
func (l *Server) Issue(ctx context.Context, c company.Company, p policy.Policy, w provisioning.Wanted) (provisioning.Token, error) {
	text := access.NewSecret(agentdevice.ManagerTokenPrefix)
	expires := l.Now().Add(w.Lifetime)
	if err := l.Store.CreateAgentToken(ctx, agentdevice.Token{Hash: sha256.Sum256([]byte(text)), CompanyID: c.ID, PolicyID: p.ID,
		Code: w.Code, ExpiresAt: expires}); err != nil {
		return provisioning.Token{}, err
	}
	body, err := l.Code(text)
	return provisioning.Token{Payload: body, Short: l.ShortNames, ExpiresAt: expires, Ref: text, Text: text}, err
}

// Withdraw implements provisioning.Issuer.
func (l *Server) Withdraw(ctx context.Context, t provisioning.Token) error {
	return l.Store.DropAgentToken(ctx, sha256.Sum256([]byte(t.Ref)))
}

// EnrollAgain makes a token for one asset, and the text of its QR code.
func (l *Server) EnrollAgain(ctx context.Context, companyID, assetID string, by *access.Replacement) ([]byte, agentdevice.Token, error) {
	text, made, err := agentdevice.AssetTokens{Store: l.Enroller, Now: l.Now}.Issue(ctx, companyID, assetID, "", by)
	if err != nil {
		return nil, made, err
	}
	code, err := l.Code(text)
	if err == nil && l.ShortNames {
		code, err = provisioning.Shorten(code)
	}
	return code, made, err
}

// Code is the text of the QR code that enrolls a device with a token.
func (l *Server) Code(token string) ([]byte, error) {
	extras := map[string]string{appPackage + ".SERVER_URL": l.PublicURL, appPackage + ".ENROLLMENT_TOKEN": token}
	// The code does not know whose device will read it: it names both keys.
	for name, alg := range map[string]protocol.Algorithm{".COMMAND_KEY": protocol.Ed25519, ".COMMAND_KEY_ES256": protocol.ES256} {
		key, err := l.commandKey(alg)
		if err != nil {
			return nil, err
		}
		// A digest is as good as the key, which comes with the answer, and half as long: a code
		// with less in it is read from farther away.
		if extras[appPackage+name], err = key.Key.Name(); err != nil {
			return nil, err
		}
	}
	pins, err := l.pins()
	if err != nil {
		return nil, err
	}
	if len(pins) > 0 {
		extras[appPackage+".SERVER_PIN"] = strings.Join(pins, ",")
	}
	body := payload{Component: cmp.Or(l.App.Package, appPackage) + "/" + appReceiver, KeepApps: true, Extras: extras}
	if body.Download = l.download(pins); body.Download != "" {
		body.Checksum = l.App.Checksum
	}
	return json.Marshal(body)
}

func (l *Server) pins() ([]string, error) {
	if l.Pins == nil {
		return nil, nil
	}
	return l.Pins()
}

// download is where Android's setup wizard gets the app from; empty: nowhere. Its
// download trusts public authorities alone, and so cannot come from a service that
// codes have to name pins for.
func (l *Server) download(pins []string) string {
	switch {
	case l.App.Checksum == "":
		return ""
	case l.App.Location != "":
		return l.App.Location
	case len(pins) > 0:
		return ""
	}
	return l.PublicURL + AppPath
}

// AppState returns what codes have a device install now.
func (l *Server) AppState() provisioning.AppState {
	pins, err := l.pins()
	switch {
	case l.App.Checksum == "":
		return provisioning.AppMissing
	case err != nil || l.download(pins) == "":
		return provisioning.AppUnreachable
	}
	return provisioning.AppServed
}

// Enroll redeems a token and returns what the service says to that, signed (see
// protocol.Enrolled). A repetition of the same token with the same key gets the same
// device again.
func (l *Server) Enroll(ctx context.Context, r protocol.EnrollRequest) (protocol.EnrollAnswer, error) {
	var none protocol.EnrollAnswer
	var facts protocol.Facts
	if json.Unmarshal(r.Facts, &facts) != nil || r.Role != protocol.Manager && (r.Role != protocol.Companion || r.Lost != nil) ||
		r.Lost != nil && r.Former != nil {
		return none, &protocol.Refusal{Code: protocol.Malformed, Message: "facts or role cannot be read"}
	}
	if r.Key.Verify(r.Message(), r.Proof) != nil {
		return none, &protocol.Refusal{Code: protocol.BadSignature, Message: "the proof does not verify"}
	}
	companion := strings.HasPrefix(r.Token, agentdevice.CompanionTokenPrefix)
	if companion != (r.Role == protocol.Companion) {
		return none, badToken()
	}
	now := l.Now()
	made := agentdevice.Device{ID: resource.NewID(), Role: r.Role, Key: r.Key, CommandAlgorithm: r.Key.Algorithm, State: agentdevice.Active,
		EnrolledAt: now, SeenAt: now}
	if companion {
		return l.enrollCompanion(ctx, r, made)
	}
	enrollment := agentdevice.Enrollment{Hash: sha256.Sum256([]byte(r.Token)), Device: made, Again: now.Add(-redeemAgain),
		Lost: r.Lost != nil}
	if r.Former != nil {
		if err := l.former(ctx, r, &enrollment); err != nil {
			return none, err
		}
	}
	seen, err := observation(made, facts).Clean(now)
	if err != nil {
		return none, &protocol.Refusal{Code: protocol.Malformed, Message: "facts cannot be read"}
	}
	d, err := l.Enroller.EnrollAgent(ctx, enrollment, seen)
	switch {
	case errors.Is(err, agentdevice.ErrWaiting):
		return none, &protocol.Refusal{Code: protocol.Waiting, RetryAfter: int(askAgainEvery.Seconds()),
			Message: "the device asks to be enrolled again: an administrator confirms that in the portal, at the asset with this " +
				"serial number"}
	case fault.CodeOf(err) == fault.RateLimited:
		return none, &protocol.Refusal{Code: protocol.RateLimited, RetryAfter: int(askAgainEvery.Seconds()),
			Message: "too many devices ask to be enrolled again: an administrator declines some of them, or they expire"}
	case fault.CodeOf(err) == fault.Unavailable: // such as during an import
		return none, &protocol.Refusal{Code: protocol.Busy, RetryAfter: int(busyRetry.Seconds()), Message: fault.From(err).Detail}
	case fault.CodeOf(err) == fault.Refused:
		return none, badToken()
	case err != nil:
		return none, err
	}
	return l.welcome(d, r)
}

// busyRetry is when a device may ask again whose request can pass soon.
const busyRetry = 15 * time.Second

// askAgainEvery is when a device whose request waits for a person may ask again.
const askAgainEvery = time.Minute

// former checks that the key of the device that this one was so far signed the
// request as well. One that is to be erased is told so again.
func (l *Server) former(ctx context.Context, r protocol.EnrollRequest, e *agentdevice.Enrollment) error {
	refused := &protocol.Refusal{Code: protocol.BadSignature, Message: "the former device is unknown, or its signature does not verify"}
	known, err := l.Store.AgentDevice(ctx, r.Former.DeviceID)
	switch {
	case fault.CodeOf(err) == fault.NotFound:
		return refused
	case err != nil:
		return err
	case known.Key.Verify(protocol.FormerMessage(known.ID, r.Token, r.Key, r.Facts, r.Time), r.Former.Sig) != nil:
		return refused
	case known.Wiped || known.State == agentdevice.WipePending:
		return l.tombstoned(known, r.Proof, protocol.WipeAgain)
	}
	e.Former, e.FormerKey = known.ID, known.Key
	return nil
}

func badToken() error {
	return &protocol.Refusal{Code: protocol.BadToken,
		Message: "the token is unknown, spent or expired, or is for another role: create a new one"}
}

// observation is what an enrolling device says of itself.
func observation(d agentdevice.Device, facts protocol.Facts) enrollment.Observation {
	specifications := map[string]string{"osVersion": facts.OSVersion, "manufacturer": facts.Manufacturer, "brand": facts.Brand,
		"model": facts.Model, "serialNumber": facts.SerialNumber}
	return enrollment.Observation{CompanyID: unknownYet, Device: d.ID, Management: asset.Agent,
		Ownership: asset.CompanyOwned, Mode: asset.FullyManaged, SerialNumber: facts.SerialNumber, Brand: facts.Brand, Model: facts.Model,
		APILevel: facts.SDK, Enrolling: true, Specifications: specifications,
		EnrolledAt: d.EnrolledAt, ReportedAt: d.EnrolledAt, ObservedAt: d.EnrolledAt}
}

// unknownYet stands for the company, which the token names.
const unknownYet = "-"

// welcome is the signed answer to an enrollment. It answers this request and no
// other.
func (l *Server) welcome(d agentdevice.Device, r protocol.EnrollRequest) (answer protocol.EnrollAnswer, err error) {
	key, err := l.commandKey(d.CommandAlgorithm)
	if err != nil {
		return answer, err
	}
	if r.Lost != nil {
		if answer.Keys, err = l.signer(d.CommandAlgorithm).succession(r.Lost.KeyID); err != nil {
			return answer, err
		}
	}
	answer.Envelope, err = l.seal(d, protocol.KindEnrolled,
		protocol.Enrolled{DeviceID: d.ID, Key: r.Key, Proof: protocol.Digest([]byte(r.Proof)),
			CommandKey: key, Time: l.Now().UnixMilli()})
	return answer, err
}
