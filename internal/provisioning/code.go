package provisioning

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log/slog"
	"time"
	"unicode/utf16"

	"rsc.io/qr"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/policy"
)

// Limits of codes.
const (
	MaxDevices = 100_000
	MaxTags    = 10
	// KeepCodes is how long a code is listed after it expired.
	KeepCodes = 90 * 24 * time.Hour
	// OverLimit is the tag of a device that enrolled although its code was revoked or used
	// up: on the platform that is possible until its token is deleted there.
	OverLimit = "over-code-limit"
)

// CodeStatus is the state of a code.
//
//	ACTIVE ──the last device──► USED
//	   │ └──its time──► EXPIRED
//	   └──revoke──► REVOKED
type CodeStatus string

// The statuses.
const (
	CodeActive  CodeStatus = "ACTIVE"
	CodeUsed    CodeStatus = "USED"
	CodeExpired CodeStatus = "EXPIRED"
	CodeRevoked CodeStatus = "REVOKED"
)

// Code is an enrollment code, without its secret.
type Code struct {
	ID         string
	CompanyID  string
	PolicyID   string
	PolicyName string // now
	Management policy.Type
	Usage      PersonalUsage
	Maker      access.Actor
	Tags       []string // of each device that enrolls with it
	MaxDevices int      // 0: no limit
	Devices    int      // that have enrolled
	CreatedAt  time.Time
	ExpiresAt  time.Time
	RevokedAt  time.Time // zero: it was not
	Ref        string    // the platform's name of its token
	// WaitedFor says that a device which asked to be enrolled again may enroll with the code
	// although its time is over.
	WaitedFor bool
	// Dropping says that the platform is still to delete the code's token: until it has, devices
	// can enroll with it.
	Dropping bool
}

// Status is the state of the code at a time.
func (c Code) Status(now time.Time) CodeStatus {
	switch {
	case !c.RevokedAt.IsZero():
		return CodeRevoked
	case c.Full():
		return CodeUsed
	case !now.Before(c.ExpiresAt):
		return CodeExpired
	}
	return CodeActive
}

// Full reports whether as many devices enrolled with the code as may.
func (c Code) Full() bool { return c.MaxDevices > 0 && c.Devices >= c.MaxDevices }

// GoesOn reports whether a device may enroll with the code: before it expires, and after that
// if the device asked before.
func (c Code) GoesOn() bool { return c.RevokedAt.IsZero() && !c.Full() }

// Revocable reports whether a device may still enroll with the code.
func (c Code) Revocable(now time.Time) bool {
	status := c.Status(now)
	return status == CodeActive || status == CodeExpired && c.WaitedFor
}

// Ended says that codes were revoked with their policy, after a sentence; empty: there were none.
func Ended(codes int, m policy.Type) string {
	if codes == 0 {
		return ""
	}
	return " " + phrase.Count(codes, "enrollment code is", "enrollment codes are") + " revoked. " + AfterRevoke(codes, m)
}

// AfterRevoke says what is known of codes that were revoked just now.
func AfterRevoke(codes int, m policy.Type) string {
	them, tokens := "it", "token"
	if codes != 1 {
		them, tokens = "them", "tokens"
	}
	if m == policy.Platform {
		return "The platform is asked to delete the " + tokens + ": until it has, devices can still enroll with " + them + "."
	}
	return "No device enrolls with " + them + " from now on."
}

// Codes keeps the codes of companies. Each method fails as the database does, and with the faults that
// it names.
type Codes interface {
	// CreateCode adds a code before its token is made: PolicyDeleted if its policy was deleted,
	// fault.NotFound without its company.
	CreateCode(ctx context.Context, c Code) error
	// IssueCode notes the platform's token of a code and when it ends.
	IssueCode(ctx context.Context, companyID, id, ref string, expires time.Time) error
	// DropCode removes a code that was not handed out. One that is not there is no error.
	DropCode(ctx context.Context, companyID, id string) error
	// Codes lists codes of a company, first those that can be revoked, each the newest first, at
	// most limit; of policies alone, unless these are nil.
	Codes(ctx context.Context, companyID string, policies []string, limit int) ([]Code, error)
	// RevokeCode ends a code of a company, and of policies unless these are nil: no agent
	// enrolls with it from now on, and the platform is asked to delete its token.
	// fault.NotFound if there is no such code, fault.Unsupported if it has ended already.
	RevokeCode(ctx context.Context, companyID string, policies []string, id string) (Code, error)
	// DueDrops returns codes whose tokens the platform is to delete by now, at most limit, and
	// makes each due again at next. With an error, it returns those that it put off before.
	DueDrops(ctx context.Context, now, next time.Time, limit int) ([]Code, error)
	// Dropped notes that the platform has deleted a code's token. A code that is not there is
	// no error.
	Dropped(ctx context.Context, companyID, id string) error
}

const (
	// DropEvery is how often tokens are looked for that the platform is to delete.
	DropEvery = 2 * time.Second
	dropPause = time.Minute // after an attempt
	dropBatch = 20
)

// Dropper deletes the platform's tokens of codes that were revoked or used up. Several
// replicas may.
type Dropper struct {
	Codes  Codes
	Issuer Issuer
	Now    func() time.Time
	Log    *slog.Logger
}

// Round deletes what is due. What fails is tried again, until the token has expired.
func (d Dropper) Round(ctx context.Context) error {
	now := d.Now()
	due, err := d.Codes.DueDrops(ctx, now, now.Add(dropPause), dropBatch)
	errs := []error{err}
	for _, c := range due {
		err := error(nil)
		if now.Before(c.ExpiresAt) {
			err = d.Issuer.Withdraw(ctx, Token{Ref: c.Ref})
		}
		if err == nil {
			errs = append(errs, d.Codes.Dropped(ctx, c.CompanyID, c.ID))
			continue
		}
		d.Log.WarnContext(ctx, "the platform did not delete an enrollment token; it is asked again", "code", c.ID, "error", err)
	}
	return errors.Join(errs...)
}

const (
	pixelsPerModule = 8
	quietZone       = 4 // modules, as the standard asks
)

// Draw returns text as a QR code: a black and white PNG with a quiet zone.
// Medium error correction is taken where it fits, else low.
func Draw(text []byte) ([]byte, error) {
	code, err := qr.Encode(string(text), qr.M)
	if err != nil {
		code, err = qr.Encode(string(text), qr.L)
	}
	if err != nil {
		return nil, errors.New("the payload is too long for a QR code")
	}
	side := (code.Size + 2*quietZone) * pixelsPerModule
	picture := image.NewPaletted(image.Rect(0, 0, side, side), color.Palette{color.White, color.Black})
	for y := range code.Size * pixelsPerModule {
		row := picture.Pix[(y+quietZone*pixelsPerModule)*picture.Stride+quietZone*pixelsPerModule:]
		for x := range code.Size * pixelsPerModule {
			if code.Black(x/pixelsPerModule, y/pixelsPerModule) {
				row[x] = 1
			}
		}
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := encoder.Encode(&out, picture); err != nil {
		return nil, fmt.Errorf("cannot write the QR code: %w", err)
	}
	return out.Bytes(), nil
}

// ascii writes every character of a JSON text beyond ASCII as \u escapes: the
// same JSON, but a reader need not guess in which encoding a code was written.
func ascii(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		switch {
		case r < 0x80:
			out = append(out, byte(r))
		case r < 0x10000:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		}
	}
	return out
}
