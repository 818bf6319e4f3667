package emulator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Enrollment asks for new devices. Only EnrollmentToken is required.
type Enrollment struct {
	// EnrollmentToken is a token's value, or the whole text of its QR code.
	EnrollmentToken string `json:"enrollmentToken"`
	// Count is how many devices enroll, 1 if it is 0, at most 10,000.
	Count int `json:"count"`
	// Ownership is COMPANY_OWNED or PERSONALLY_OWNED; empty is COMPANY_OWNED.
	Ownership string `json:"ownership"`
	// Notify false sends no notifications.
	Notify *bool `json:"notify"`

	Manufacturer string `json:"manufacturer"`
	Brand        string `json:"brand"`
	Model        string `json:"model"`
	SerialNumber string `json:"serialNumber"` // for one device; a known one re-enrolls that hardware
	APILevel     int    `json:"apiLevel"`     // 34 (Android 14) if it is 0

	Behavior
}

// Behavior is how simulated devices behave. Members that are nil or empty stay
// as they are; a new device is online and succeeds after [DefaultLatency].
type Behavior struct {
	Online         *bool    `json:"online"`
	CommandOutcome string   `json:"commandOutcome"` // SUCCESS, ERROR or HOLD
	ErrorCode      string   `json:"errorCode"`      // of failing commands; UNKNOWN if it is empty
	LatencyMS      *int     `json:"latencyMs"`
	Packages       []string `json:"packages"` // all that is installed
	Battery        *int     `json:"battery"`  // percent
	Latitude       *float64 `json:"latitude"`
	Longitude      *float64 `json:"longitude"`
}

// maxEnrolled bounds how many devices enroll by one call.
const maxEnrolled = 10_000

func (b *Behavior) check() error {
	switch {
	case !slices.Contains([]string{"", OutcomeSuccess, OutcomeError, OutcomeHold}, b.CommandOutcome):
		return invalid("commandOutcome must be SUCCESS, ERROR or HOLD")
	case !slices.Contains([]string{"", "UNKNOWN", "API_LEVEL", "MANAGEMENT_MODE", "INVALID_VALUE", "UNSUPPORTED"}, b.ErrorCode):
		return invalid("errorCode must be UNKNOWN, API_LEVEL, MANAGEMENT_MODE, INVALID_VALUE or UNSUPPORTED")
	case b.LatencyMS != nil && (*b.LatencyMS < 0 || *b.LatencyMS > 3_600_000):
		return invalid("latencyMs must be from 0 to 3600000")
	case b.Battery != nil && (*b.Battery < 0 || *b.Battery > 100):
		return invalid("battery must be from 0 to 100")
	case b.Latitude != nil && (*b.Latitude < -90 || *b.Latitude > 90):
		return invalid("latitude must be from -90 to 90")
	case b.Longitude != nil && (*b.Longitude < -180 || *b.Longitude > 180):
		return invalid("longitude must be from -180 to 180")
	case len(b.Packages) > 1000:
		return invalid("packages must have at most 1000 entries")
	}
	return nil
}

// set gives a device a behavior.
func (d *simulated) set(b *Behavior) {
	replace(&d.Online, b.Online)
	replace(&d.LatencyMS, b.LatencyMS)
	replace(&d.Battery, b.Battery)
	replace(&d.Latitude, b.Latitude)
	replace(&d.Longitude, b.Longitude)
	d.Outcome = cmp.Or(b.CommandOutcome, d.Outcome)
	d.ErrorCode = cmp.Or(b.ErrorCode, d.ErrorCode)
	if b.Packages != nil {
		d.Packages = slices.Clone(b.Packages)
	}
}

// replace puts a new value, if there is one, in the place of another.
func replace[T any](old, by *T) {
	if by != nil {
		*old = *by
	}
}

// Enroll enrolls devices with a token and gives their names. It returns when the
// notifications were accepted: acknowledged, if a subscriber pulls them. A bad
// request is an error whose text says what is wrong with it.
func (e *Emulator) Enroll(ctx context.Context, want Enrollment) ([]string, error) {
	want.Count = cmp.Or(want.Count, 1)
	if err := want.check(); err != nil {
		return nil, err
	}
	var names []string
	err := e.settled(ctx, want.Notify == nil || *want.Notify, func(out *outbox) (err error) {
		names, err = e.enrollAll(want, out)
		return err
	})
	return names, err
}

func (w *Enrollment) check() error {
	switch {
	case w.Count < 1 || w.Count > maxEnrolled:
		return invalid("count must be from 1 to %d", maxEnrolled)
	case !slices.Contains([]string{"", CompanyOwned, PersonallyOwned}, w.Ownership):
		return invalid("ownership must be COMPANY_OWNED or PERSONALLY_OWNED")
	case w.APILevel != 0 && (w.APILevel < minAPILevel || w.APILevel > maxAPILevel):
		return invalid("apiLevel must be from %d to %d", minAPILevel, maxAPILevel)
	case w.SerialNumber != "" && w.Count != 1:
		return invalid("serialNumber is for one device, count is %d", w.Count)
	}
	return w.Behavior.check()
}

func (e *Emulator) enrollAll(want Enrollment, out *outbox) ([]string, error) {
	t, err := e.redeemable(want)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, want.Count)
	for range want.Count {
		d := e.newDevice(t, want)
		names = append(names, d.name())
		e.notify(t.owner, "ENROLLMENT", d.enrollmentReport(e.now()), out)
		// A device that enrolls is connected, whatever becomes of it later.
		e.applyPolicy(d)
		e.report(d, out)
		e.schedulePeriodicReport(d)
		e.scheduleSetupDeadline(d)
	}
	t.Used = t.Resource.OneTimeOnly
	return names, nil
}

// setupDeadline is how long a device waits for its first policy before it gives
// up and resets itself.
const setupDeadline = 5 * time.Minute

func (e *Emulator) scheduleSetupDeadline(d *simulated) {
	if d.Applied.Version > 0 {
		return
	}
	e.at(d.Enrolled.Add(setupDeadline), func() {
		if e.world.byDevice[d.ID] == d && d.Applied.Version == 0 {
			e.forget(d)
		}
	})
}

// redeemable finds the token and checks that it may enroll what is wanted.
func (e *Emulator) redeemable(want Enrollment) (*token, error) {
	value := tokenValue(want.EnrollmentToken)
	if value == "" {
		return nil, invalid("enrollmentToken is missing")
	}
	t := e.world.byValue[value]
	if t == nil {
		return nil, invalid("enrollmentToken is not known: it was never made, or was deleted")
	}
	r := t.Resource
	switch {
	case t.Used:
		return nil, invalid("enrollmentToken was for one device, which has enrolled")
	case !t.valid(e.now()):
		return nil, invalid("enrollmentToken has expired at %s", r.ExpirationTimestamp)
	case r.OneTimeOnly && want.Count > 1:
		return nil, invalid("enrollmentToken is for one device, count is %d", want.Count)
	case want.Ownership == PersonallyOwned && r.AllowPersonalUsage != personalUsageAllowed:
		return nil, invalid("enrollmentToken forbids personally owned devices: its allowPersonalUsage is %s",
			cmp.Or(r.AllowPersonalUsage, "ALLOW_PERSONAL_USAGE_UNSPECIFIED"))
	}
	return t, nil
}

const personalUsageAllowed = "PERSONAL_USAGE_ALLOWED"

// tokenValue takes the value out of a QR code's text; anything else is a value.
func tokenValue(text string) string {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") {
		return text
	}
	var payload map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &payload) != nil {
		return text
	}
	var extras map[string]any
	if json.Unmarshal(payload[qrExtras], &extras) != nil {
		return text
	}
	value, _ := extras[qrToken].(string)
	return value
}

func (e *Emulator) newDevice(t *token, want Enrollment) *simulated {
	n, now := t.owner, e.now()
	e.world.LastDevice++
	d := &simulated{
		ID: randomHex(8), Seq: e.world.LastDevice, Enrolled: now, UserID: fmt.Sprint(1000 + e.world.LastDevice),
		TokenName: t.Resource.Name, TokenData: t.Resource.AdditionalData,
		Ownership: cmp.Or(want.Ownership, CompanyOwned), Mode: deviceOwner, APILevel: cmp.Or(want.APILevel, defaultAPILevel),
		PolicyID: t.PolicyID, State: "ACTIVE",
		Online: true, Outcome: OutcomeSuccess, LatencyMS: int(DefaultLatency / time.Millisecond),
		Packages: []string{"com.example.app"}, Battery: 60 + e.random.IntN(40),
		Latitude: 52.52 + e.random.Float64()/10, Longitude: 13.4 + e.random.Float64()/10,
		owner: n,
	}
	d.Hardware = e.build(d.Seq, want)
	if t.Resource.AllowPersonalUsage == personalUsageAllowed {
		d.Mode = profileOwner
	}
	if d.personal() && d.APILevel >= 31 {
		d.Hardware.SpecificID = specificID(n.ID, d.Hardware.Serial)
	}
	d.set(&want.Behavior)
	d.power("BOOT_COMPLETED", now)
	d.power("BATTERY_LEVEL_COLLECTED", now)
	if want.SerialNumber != "" {
		e.replaceHardware(d)
	}
	n.Devices = append(n.Devices, d)
	e.world.byDevice[d.ID] = d
	return d
}

// replaceHardware ends the earlier enrollment of the same hardware, which was
// reset to get here, and remembers its name.
func (e *Emulator) replaceHardware(d *simulated) {
	for _, old := range slices.Clone(d.owner.Devices) {
		if old.Hardware.Serial == d.Hardware.Serial {
			d.Previous = append(slices.Clone(old.Previous), old.name())
			e.forget(old)
		}
	}
}
