package emulator

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/discovery"
	am "google.golang.org/api/androidmanagement/v1"
)

// latest is the last moment that the vendor's timestamps can express: when
// tokens end whose duration is longer than Go can hold (292 years).
var latest = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) //nolint:gochecknoglobals // a constant that Go cannot declare as one

func createToken(e *Emulator, _ *call, n *enterprise, resource *am.EnrollmentToken) (any, error) {
	t, err := e.makeToken(n, resource)
	if err != nil {
		return nil, err
	}
	e.dropOldTokens(n)
	n.Tokens[t.ID] = t
	e.world.byValue[t.Resource.Value] = t
	e.touch()
	return t.Resource, nil
}

func (e *Emulator) makeToken(n *enterprise, r *am.EnrollmentToken) (*token, error) {
	if utf8.RuneCountInString(r.AdditionalData) > 1024 {
		return nil, invalid("Additional data must be at most 1024 characters long.")
	}
	r.Duration = cmp.Or(r.Duration, discovery.FormatDuration(time.Hour))
	duration, err := discovery.ParseDuration(r.Duration)
	if err != nil || duration < time.Minute {
		return nil, invalid("Duration must be at least 1 minute.")
	}
	policyID, err := e.resolvePolicy(n, r.PolicyName)
	if err != nil {
		return nil, err
	}
	expires := latest // what a duration beyond Go's is cut down to
	if duration < math.MaxInt64 {
		expires = e.now().UTC().Add(duration)
		r.Duration = discovery.FormatDuration(duration)
	}
	id := randomText(20, upper+lowerDigits)
	r.Name = n.name() + "/enrollmentTokens/" + id
	r.Value = randomText(20, upper)
	r.ExpirationTimestamp = timestamp(expires)
	r.QrCode = qrCode(r.Value)
	if r.PolicyName != "" {
		r.PolicyName = n.name() + "/policies/" + policyID
	}
	r.User = nil // deprecated and ignored
	return &token{ID: id, Resource: r, PolicyID: policyID, Expires: expires, owner: n}, nil
}

// resolvePolicy gives the id of the policy that a name means: a whole name, a
// bare id, or nothing for the enterprise's default. A named policy must exist.
func (e *Emulator) resolvePolicy(n *enterprise, name string) (string, error) {
	if name == "" {
		return defaultPolicy, nil
	}
	id := strings.TrimPrefix(name, n.name()+"/policies/")
	if strings.Contains(id, "/") {
		return "", invalid("Policy name must be in the form enterprises/{enterpriseId}/policies/{policyId}.")
	}
	if n.Policies[id] == nil {
		if e.settings.Quirks.MissingPolicyAs404 {
			return "", notFound()
		}
		return "", invalid("Policy %s/policies/%s does not exist.", n.name(), id)
	}
	return id, nil
}

// defaultPolicy is the id of the policy for devices that were given none.
const defaultPolicy = "default"

// qrCode is the text of the QR code that enrolls a device with a token.
func qrCode(value string) string {
	const extra = "android.app.extra.PROVISIONING_"
	text, err := json.Marshal(map[string]any{
		extra + "DEVICE_ADMIN_COMPONENT_NAME":            "com.google.android.apps.work.clouddpc/.receivers.CloudDeviceAdminReceiver",
		extra + "DEVICE_ADMIN_SIGNATURE_CHECKSUM":        "I5YvS0O5hXY46mb01BlRjq4oJJGs2kuUcHvVkAPEXlg",
		extra + "DEVICE_ADMIN_PACKAGE_DOWNLOAD_LOCATION": "https://play.google.com/managed/downloadManagingApp?identifier=setup",
		qrExtras: map[string]string{qrToken: value},
	})
	if err != nil {
		panic(err) // strings always marshal
	}
	return string(text)
}

const (
	qrExtras = "android.app.extra.PROVISIONING_ADMIN_EXTRAS_BUNDLE"
	qrToken  = "com.google.android.apps.work.clouddpc.EXTRA_ENROLLMENT_TOKEN"
)

// keepExpired is how long an expired token is remembered, so that an enrollment
// with it can be told that it is expired rather than unknown.
const keepExpired = 30 * 24 * time.Hour

func (e *Emulator) dropOldTokens(n *enterprise) {
	for id, t := range n.Tokens {
		if e.now().Sub(t.Expires) > keepExpired {
			delete(n.Tokens, id)
			delete(e.world.byValue, t.Resource.Value)
		}
	}
}

// partial is what the API shows of a token after its creation.
func (t *token) partial() *am.EnrollmentToken {
	r := t.Resource
	return &am.EnrollmentToken{
		Name: r.Name, ExpirationTimestamp: r.ExpirationTimestamp,
		AllowPersonalUsage: r.AllowPersonalUsage, Value: r.Value, QrCode: r.QrCode,
	}
}

func findToken(e *Emulator, c *call, n *enterprise) (*token, error) {
	t := n.Tokens[c.segment(3)]
	if t == nil || !t.valid(e.now()) {
		return nil, notFound()
	}
	return t, nil
}

func getToken(_ *Emulator, _ *call, _ *enterprise, t *token) (any, error) { return t.partial(), nil }

func listTokens(e *Emulator, c *call, n *enterprise) (any, error) {
	var found []*token
	for _, id := range slices.Sorted(maps.Keys(n.Tokens)) {
		if t := n.Tokens[id]; t.valid(e.now()) {
			found = append(found, t)
		}
	}
	part, next, err := page(c, found, func(t *token) string { return t.Resource.Name }, (*token).partial, 10, 100)
	return &am.ListEnrollmentTokensResponse{EnrollmentTokens: part, NextPageToken: next}, err
}

func deleteToken(e *Emulator, _ *call, n *enterprise, t *token) (any, error) {
	delete(n.Tokens, t.ID)
	delete(e.world.byValue, t.Resource.Value)
	e.touch()
	return empty{}, nil
}

// timestamp writes a time in the vendor's form.
func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.999Z07:00")
}
