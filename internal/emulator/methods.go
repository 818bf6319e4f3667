package emulator

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	am "google.golang.org/api/androidmanagement/v1"
)

// managementMethods are the methods of the Android Management API that the
// emulator has.
func managementMethods() map[string]handler {
	return map[string]handler{
		"androidmanagement.signupUrls.create": createSignupURL,

		"androidmanagement.enterprises.create": withBody(createEnterprise),
		"androidmanagement.enterprises.get":    ofEnterprise(getEnterprise),
		"androidmanagement.enterprises.list":   listEnterprises,
		"androidmanagement.enterprises.patch":  ofEnterprise(patchEnterprise),
		"androidmanagement.enterprises.delete": ofEnterprise(deleteEnterprise),

		"androidmanagement.enterprises.policies.get":    ofResource(findPolicy, getPolicy),
		"androidmanagement.enterprises.policies.list":   ofEnterprise(listPolicies),
		"androidmanagement.enterprises.policies.patch":  ofEnterprise(patchPolicy),
		"androidmanagement.enterprises.policies.delete": ofResource(findPolicy, deletePolicy),

		"androidmanagement.enterprises.enrollmentTokens.create": ofResource(bodyOf[am.EnrollmentToken], createToken),
		"androidmanagement.enterprises.enrollmentTokens.get":    ofResource(findToken, getToken),
		"androidmanagement.enterprises.enrollmentTokens.list":   ofEnterprise(listTokens),
		"androidmanagement.enterprises.enrollmentTokens.delete": ofResource(findToken, deleteToken),

		"androidmanagement.enterprises.devices.get":          ofResource(findDevice, getDevice),
		"androidmanagement.enterprises.devices.list":         ofEnterprise(listDevices),
		"androidmanagement.enterprises.devices.patch":        ofResource(findDevice, patchDevice),
		"androidmanagement.enterprises.devices.delete":       ofResource(findDevice, deleteDevice),
		"androidmanagement.enterprises.devices.issueCommand": ofResource(findDevice, issueCommand),

		"androidmanagement.enterprises.devices.operations.get":    ofResource(findDevice, getOperation),
		"androidmanagement.enterprises.devices.operations.list":   ofResource(findDevice, listOperations),
		"androidmanagement.enterprises.devices.operations.cancel": ofResource(findDevice, cancelOperation),
	}
}

// ofEnterprise is a method of an enterprise, or of what belongs to one. It runs with
// the emulator's state locked.
func ofEnterprise(do func(*Emulator, *call, *enterprise) (any, error)) handler {
	return func(e *Emulator, c *call) (any, error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		n := e.world.Enterprises[c.segment(1)]
		if n == nil { // the vendor says so of those that are not the caller's
			return nil, usual(http.StatusForbidden)
		}
		return do(e, c, n)
	}
}

// ofResource is a method of something in an enterprise that exists.
func ofResource[T any](find func(*Emulator, *call, *enterprise) (T, error), do func(*Emulator, *call, *enterprise,
	T) (any, error)) handler {
	return ofEnterprise(func(e *Emulator, c *call, n *enterprise) (any, error) {
		found, err := find(e, c, n)
		if err != nil {
			return nil, err
		}
		return do(e, c, n, found)
	})
}

// withBody is a method whose calls have a body of the vendor's type.
func withBody[T any](do func(*Emulator, *call, *T) (any, error)) handler {
	return func(e *Emulator, c *call) (any, error) {
		body, err := bodyOf[T](e, c, nil)
		if err != nil {
			return nil, err
		}
		return do(e, c, body)
	}
}

// bodyOf reads a call's body into the vendor's type.
func bodyOf[T any](_ *Emulator, c *call, _ *enterprise) (*T, error) {
	body := new(T)
	return body, fromTree(c.body, body)
}

// empty is the answer of methods that have nothing to say.
type empty struct{}

// catalog holds the makes that simulated devices take in turn.
func catalog() []hardware {
	return []hardware{
		{Manufacturer: "Google", Brand: "google", Model: "Pixel 8", Board: "shiba", MemoryGB: 8, StorageGB: 128, Width: 1080, Height: 2400,
			Density: 420, HasPhone: true},
		{Manufacturer: "samsung", Brand: "samsung", Model: "SM-G736B", Board: "qcom", MemoryGB: 6, StorageGB: 128, Width: 1080,
			Height: 2408, Density: 450, HasPhone: true},
		{Manufacturer: "Zebra Technologies", Brand: "Zebra", Model: "TC58", Board: "qcom", MemoryGB: 8, StorageGB: 128, Width: 1080,
			Height: 2160, Density: 400, HasPhone: true},
		{Manufacturer: "Honeywell", Brand: "Honeywell", Model: "CT45", Board: "qcom", MemoryGB: 6, StorageGB: 64, Width: 720, Height: 1280,
			Density: 320, HasPhone: true},
		{Manufacturer: "samsung", Brand: "samsung", Model: "SM-X306B", Board: "s5e8835", MemoryGB: 6, StorageGB: 128, Width: 1200,
			Height: 1920, Density: 280, HasPhone: true},
		{Manufacturer: "HMD Global", Brand: "Nokia", Model: "Nokia XR21", Board: "qcom", MemoryGB: 6, StorageGB: 128, Width: 1080,
			Height: 2400, Density: 400, HasPhone: true},
		{Manufacturer: "Fairphone", Brand: "Fairphone", Model: "FP5", Board: "qcom", MemoryGB: 8, StorageGB: 256, Width: 1224, Height: 2700,
			Density: 460, HasPhone: true},
		{Manufacturer: "motorola", Brand: "motorola", Model: "moto g54 5G", Board: "mt6855", MemoryGB: 8, StorageGB: 256, Width: 1080,
			Height: 2400, Density: 400, HasPhone: true},
		{Manufacturer: "LENOVO", Brand: "Lenovo", Model: "TB370FU", Board: "mt8781", MemoryGB: 8, StorageGB: 128, Width: 1840,
			Height: 2944, Density: 320},
		{Manufacturer: "Xiaomi", Brand: "Redmi", Model: "23129RAA4G", Board: "qcom", MemoryGB: 8, StorageGB: 256, Width: 1080, Height: 2400,
			Density: 440, HasPhone: true},
	}
}

// defaultAPILevel is Android 14.
const defaultAPILevel = 34

// The API levels that simulated devices may have: Android 6 to 16.
const (
	minAPILevel = 23
	maxAPILevel = 36
)

func androidVersion(apiLevel int) string {
	names := []string{"6.0.1", "7.0", "7.1.2", "8.0.0", "8.1.0", "9", "10", "11", "12", "12", "13", "14", "15", "16"}
	return names[min(max(apiLevel-minAPILevel, 0), len(names)-1)]
}

// build makes the hardware of a new device: the asked-for make, or the next of
// the catalog, with ids of its own.
func (e *Emulator) build(seq int64, want Enrollment) hardware {
	makes := catalog()
	h := makes[int(seq)%len(makes)]
	for _, known := range makes {
		if want.Model != "" && known.Model == want.Model {
			h = known
		}
	}
	h.Brand = cmp.Or(want.Brand, want.Manufacturer, h.Brand)
	h.Manufacturer, h.Model = cmp.Or(want.Manufacturer, h.Manufacturer), cmp.Or(want.Model, h.Model)
	h.Serial = cmp.Or(want.SerialNumber, randomText(11, upperDigits))
	if h.HasPhone {
		h.IMEI = withCheckDigit("35" + fmt.Sprintf("%012d", e.random.Int64N(1_000_000_000_000)))
	}
	h.MAC = fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", e.random.IntN(256), e.random.IntN(256), e.random.IntN(256),
		e.random.IntN(256), e.random.IntN(256))
	return h
}

// specificID is the id that a personally owned device keeps in one enterprise,
// across resets.
func specificID(enterpriseID, serial string) string {
	sum := sha256.Sum256([]byte(enterpriseID + "\x00" + serial))
	return strings.ToUpper(hex.EncodeToString(sum[:8]))
}

// withCheckDigit completes 14 digits to an IMEI.
func withCheckDigit(digits string) string {
	sum := 0
	for i, r := range digits {
		n := int(r - '0')
		if i%2 == 1 {
			if n *= 2; n > 9 {
				n -= 9
			}
		}
		sum += n
	}
	return digits + strconv.Itoa((10-sum%10)%10)
}
