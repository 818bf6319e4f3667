package emulator

// managementMethods are the methods of the Android Management API that the
// emulator has.
func managementMethods() map[string]handler {
	return map[string]handler{
		"androidmanagement.signupUrls.create": createSignupURL,

		"androidmanagement.enterprises.create": createEnterprise,
		"androidmanagement.enterprises.get":    getEnterprise,
		"androidmanagement.enterprises.list":   listEnterprises,
		"androidmanagement.enterprises.patch":  patchEnterprise,
		"androidmanagement.enterprises.delete": deleteEnterprise,

		"androidmanagement.enterprises.policies.get":    getPolicy,
		"androidmanagement.enterprises.policies.list":   listPolicies,
		"androidmanagement.enterprises.policies.patch":  patchPolicy,
		"androidmanagement.enterprises.policies.delete": deletePolicy,

		"androidmanagement.enterprises.enrollmentTokens.create": createToken,
		"androidmanagement.enterprises.enrollmentTokens.get":    getToken,
		"androidmanagement.enterprises.enrollmentTokens.list":   listTokens,
		"androidmanagement.enterprises.enrollmentTokens.delete": deleteToken,

		"androidmanagement.enterprises.devices.get":          getDevice,
		"androidmanagement.enterprises.devices.list":         listDevices,
		"androidmanagement.enterprises.devices.patch":        patchDevice,
		"androidmanagement.enterprises.devices.delete":       deleteDevice,
		"androidmanagement.enterprises.devices.issueCommand": issueCommand,

		"androidmanagement.enterprises.devices.operations.get":    getOperation,
		"androidmanagement.enterprises.devices.operations.list":   listOperations,
		"androidmanagement.enterprises.devices.operations.cancel": cancelOperation,
	}
}

// empty is the answer of methods that have nothing to say.
type empty struct{}
