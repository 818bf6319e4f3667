package emulator

import (
	"net/http"

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
func ofResource[T any](find func(*Emulator, *call, *enterprise) (T, error), do func(*Emulator, *call, *enterprise, T) (any, error)) handler {
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
