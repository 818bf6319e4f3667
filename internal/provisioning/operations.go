package provisioning

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// Args are the arguments of create_provisioning_qr_code (contract 4.4). They
// print without the password.
type Args struct {
	PolicyID      string  `path:"policyId" doc:"The policy's pathName from list_policies, or its short id."`
	PersonalUsage string  `json:"personalUsage" rule:"enum=UNSPECIFIED|ALLOWED|DISALLOWED|USERLESS default=UNSPECIFIED" doc:"ALLOWED: work profile on a personally owned device. DISALLOWED: fully managed, company-owned device. USERLESS: dedicated device without a user account."`
	WifiSSID      *string `json:"wifiSsid" rule:"line minchars=1 maxbytes=32" doc:"Name of the network that the device joins to enroll; spaces around it are part of the name."`
	WifiPassword  *string `json:"wifiPassword" rule:"secret line maxbytes=63" doc:"Password of the network. It is only in the picture."`
	WifiSecurity  *string `json:"wifiSecurity" rule:"enum=NONE|WPA|WEP" doc:"How the network is protected. Default: WPA when a password is given, else NONE."`
	WifiHidden    *bool   `json:"wifiHidden" doc:"Whether the network is hidden. Default: false."`
}

// Rules implements operation.Ruler.
func (a Args) Rules(r *operation.Rules) {
	rules(r, a.WifiSSID, a.WifiPassword, a.WifiSecurity, a.WifiHidden)
}

// String keeps the password out of formatted text.
func (a Args) String() string { return "{" + a.PolicyID + " " + a.PersonalUsage + " [secret]}" }

// GoString keeps the password out of %#v.
func (a Args) GoString() string { return a.String() }

func (a Args) request() Request {
	r := Request{PolicyID: a.PolicyID, PersonalUsage: PersonalUsage(a.PersonalUsage)}
	if a.WifiSSID != nil {
		r.Wifi = Wifi{SSID: *a.WifiSSID, Password: *cmp.Or(a.WifiPassword, new(string)),
			Security: securityOf(a.WifiPassword, a.WifiSecurity), Hidden: *cmp.Or(a.WifiHidden, new(bool))}
	}
	return r
}

// Define declares create_provisioning_qr_code.
func Define(r *operation.Registry, s *Service) {
	operation.DefineExplained(r, operation.Operation{
		Name: "create_provisioning_qr_code", Title: "Create provisioning QR code", Method: "POST",
		Path: "/policies/{policyId}/provisioning-qr-codes", Created: true,
		Description: "Creates a QR code with a new enrollment token that enrolls new or factory-reset devices into the company under one " +
			"policy, for " + strconv.Itoa(int(Lifetime/time.Hour)) + " hours. To use it, tap the setup wizard's welcome screen six " +
			"times, join Wi-Fi if asked, and scan it. " +
			"Devices of VR-only policies cannot enroll this way; use the USB tool for them. The code may hold the Wi-Fi password: show " +
			"it only to who may enroll devices.",
		Needs: access.Provisioning | access.PoliciesRead, Gate: access.ProvisioningGate,
		Budget: operation.AfterValidation, Dialect: operation.Provisioning, Effect: operation.Writing,
		Faults: []fault.Code{fault.NotFound, fault.Unsupported, fault.Refused, fault.Provider},
	}, func(ctx context.Context, call operation.Call, a Args) (Result, error) {
		return s.Create(ctx, call.Principal, a.request())
	}, func(ctx context.Context, call operation.Call, a Args) (operation.Forecast, error) {
		return s.foresee(ctx, call.Principal, a.PolicyID)
	})
}

// CodeArgs are those of a person, who may limit a code.
type CodeArgs struct {
	Args
	MaxDevices int      `json:"maxDevices" rule:"min=0 max=100000" doc:"How many devices enroll with it at most; 0: one with the agent, any number on the platform."`
	Tags       []string `json:"tags" rule:"maxitems=10 notblank maxchars=64 line visible" doc:"Tags of each device."`
}

// DefineForPeople declares create_enrollment_code, which the portal alone has.
func DefineForPeople(r *operation.Registry, s *Service) {
	operation.Define(r, operation.Operation{
		Name: "create_enrollment_code", Title: "Create enrollment code", Method: "POST", Path: "/policies/{policyId}/enrollment-codes",
		Created:     true,
		Description: "Creates a QR code that enrolls devices, with a limit and tags.",
		Needs:       access.Provisioning | access.PoliciesRead, Gate: access.ProvisioningGate,
		Budget: operation.AfterValidation, Dialect: operation.Provisioning, Effect: operation.Writing,
		Faults: []fault.Code{fault.NotFound, fault.Unsupported, fault.Refused, fault.Provider},
	}, func(ctx context.Context, call operation.Call, a CodeArgs) (Result, error) {
		wanted := a.request()
		wanted.Limits = Limits{Devices: a.MaxDevices, Tags: a.Tags}
		return s.Create(ctx, call.Principal, wanted)
	})
}
