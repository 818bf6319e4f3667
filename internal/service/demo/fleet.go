package demo

import (
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
)

// group is a policy with the devices that enroll under it.
type group struct {
	policy  policy.New
	usage   provisioning.PersonalUsage
	devices []model
}

// model is some devices of one make that behave alike.
type model struct {
	count        int
	manufacturer string
	brand        string
	model        string
	apiLevel     int
	personal     bool
	mood         emulator.Behavior // once it has enrolled
}

// fleet is the demo's company: about thirty devices of several makes,
// ownerships and moods.
func fleet() []group {
	offline := emulator.Behavior{Online: new(false)}                    // does not answer until it is switched on
	slow := emulator.Behavior{LatencyMS: new(30_000)}                   // answers after half a minute
	failing := emulator.Behavior{CommandOutcome: emulator.OutcomeError} // fails every command
	holding := emulator.Behavior{CommandOutcome: emulator.OutcomeHold}  // never says what became of a command
	return []group{
		{usage: provisioning.Disallowed, policy: policy.New{Name: "Field staff", Type: policy.Platform,
			Changes: []policy.Change{{Setting: "SCREEN_CAPTURE", Value: "BLOCK"}, {Setting: "LOCATION_MODE", Value: "ENFORCED"}}},
			devices: []model{
				{count: 5, manufacturer: "Google", brand: "google", model: "Pixel 8", apiLevel: 34},
				{count: 3, manufacturer: "Samsung", brand: "samsung", model: "Galaxy XCover7", apiLevel: 34},
				{count: 1, manufacturer: "Samsung", brand: "samsung", model: "Galaxy XCover7", apiLevel: 34, mood: offline},
				{count: 1, manufacturer: "Nokia", brand: "Nokia", model: "XR21", apiLevel: 33, mood: slow},
			}},
		{usage: provisioning.Userless, policy: policy.New{Name: "Warehouse scanners", Type: policy.Platform,
			Changes: []policy.Change{{Setting: "CAMERA", Value: "BLOCK"}, {Setting: "FACTORY_RESET", Value: "BLOCK"}, {Setting: "OUTGOING_CALLS", Value: "BLOCK"}}},
			devices: []model{
				{count: 4, manufacturer: "Zebra Technologies", brand: "Zebra", model: "TC58", apiLevel: 33},
				{count: 2, manufacturer: "Honeywell", brand: "Honeywell", model: "CT45", apiLevel: 31},
				{count: 1, manufacturer: "Honeywell", brand: "Honeywell", model: "CT45", apiLevel: 31, mood: failing},
				{count: 1, manufacturer: "Zebra Technologies", brand: "Zebra", model: "TC58", apiLevel: 33, mood: offline},
			}},
		{usage: provisioning.Allowed, policy: policy.New{Name: "Office phones", Type: policy.Platform,
			Changes: []policy.Change{{Setting: "UNTRUSTED_APPS_POLICY", Value: "DISALLOW_INSTALL"}}},
			devices: []model{
				{count: 4, manufacturer: "Google", brand: "google", model: "Pixel 9", apiLevel: 35},
				{count: 1, manufacturer: "Motorola", brand: "motorola", model: "ThinkPhone", apiLevel: 34, mood: holding},
			}},
		{usage: provisioning.Allowed, policy: policy.New{Name: "Bring your own", Type: policy.Platform},
			devices: []model{
				{count: 2, manufacturer: "Fairphone", brand: "Fairphone", model: "FP5", apiLevel: 34, personal: true},
				{count: 2, manufacturer: "OnePlus", brand: "OnePlus", model: "12R", apiLevel: 34, personal: true},
				{count: 1, manufacturer: "Xiaomi", brand: "Redmi", model: "Note 13", apiLevel: 33, personal: true, mood: offline},
			}},
		{usage: provisioning.Userless, policy: policy.New{Name: "Meeting rooms", Type: policy.Platform,
			Changes: []policy.Change{{Setting: "BLUETOOTH", Value: "BLOCK"}, {Setting: "USB_DATA_ACCESS", Value: "BLOCK"}}},
			devices: []model{
				{count: 2, manufacturer: "Lenovo", brand: "Lenovo", model: "Tab M10", apiLevel: 32},
			}},
	}
}

// spares are assets that are in the inventory and were never enrolled.
const spares = `identification,serialNumber,model,manufacturer,brand,tags,department,location
Spare phone 1,SP-0001,Pixel 8,Google,google,spare,IT,Store room
Spare phone 2,SP-0002,Pixel 8,Google,google,spare,IT,Store room
Loaner tablet,SP-0003,Tab M10,Lenovo,Lenovo,spare;loaner,IT,Front desk
`
