package demo

import (
	"context"
	"path"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/service"
	"github.com/musterhq/muster/internal/surface/cli"
	"github.com/musterhq/muster/internal/wait"
)

// filler makes what the demo shows. Every step looks first what is there, so
// that a demo that was stopped half-way is completed at its next start.
type filler struct {
	*Demo
	admin   *cli.Admin
	company company.Company
	memory  memory
	history *history // nil: the past is not lived now
}

func (d *Demo) fill(ctx context.Context) {
	admin := script.Must(service.OpenAdmin(d.now, "")(ctx, d.config().Store, cli.Creates))
	defer admin.Close()
	f := &filler{Demo: d, admin: admin}
	if d.past != nil {
		f.history = &history{filler: f}
	}
	f.remember()
	f.makeCompany(ctx)
	f.makeKeys(ctx)
	f.makeUsers(ctx)
	f.connect(ctx)
	f.makeSpares(ctx)
	f.enrollAll(ctx)
	if f.history != nil {
		f.history.finish(ctx)
		return
	}
	f.runAgents(ctx)
	if f.use != nil {
		script.Need(f.use(ctx, f.running()))
	} else {
		f.introduce(ctx)
	}
}

const slug = "acme"

func (f *filler) makeCompany(ctx context.Context) {
	var err error
	f.company, err = f.admin.Companies.CompanyBySlug(ctx, slug)
	if fault.CodeOf(err) != fault.NotFound {
		script.Need(err)
		return
	}
	f.say("Creating the company %s …", slug)
	controls := access.DefaultControls()
	controls.ApproverAge = 0 // a second administrator can be tried out at once
	f.company = script.Must(company.New(slug, "Acme", access.Settings{
		DeviceCommands: true, DestructiveCommands: true, PolicyChanges: true, Provisioning: true,
		OAuthConnections: true, Controls: controls,
	}, f.now()))
	script.Need(f.admin.Companies.CreateCompany(ctx, f.company))
}

// connect binds the company to an enterprise at the emulator, which also pushes
// what policies there are.
func (f *filler) connect(ctx context.Context) {
	if !f.company.Connected() {
		f.say("Connecting it to the platform's emulator …")
		var err error
		f.company, _, err = f.service.Platform().Connect(ctx, f.company.ID)
		script.Need(err)
	}
}

func (f *filler) makeSpares(ctx context.Context) {
	if script.Must(f.admin.Assets.CountAssets(ctx, asset.Filter{CompanyID: f.company.ID, Status: asset.Pending})) > 0 {
		return
	}
	lines, _, err := asset.ReadLines(strings.NewReader(spares))
	script.Need(err)
	script.Must(f.admin.Assets.Import(ctx, f.company.ID, lines, asset.ImportOptions{}))
}

// enrollAll enrolls what is missing of each group.
func (f *filler) enrollAll(ctx context.Context) {
	for _, g := range fleet() {
		if f.history != nil {
			f.history.pass(ctx, g.day)
		}
		p := f.policy(ctx, g.policy)
		enrolled := p.DeviceCount
		for _, m := range g.devices {
			if missing := m.count - enrolled; missing > 0 {
				f.enroll(ctx, p, g.usage, m, missing)
			}
			enrolled = max(0, enrolled-m.count)
		}
	}
}

// policy returns the policy of this name, made if need be.
func (f *filler) policy(ctx context.Context, made policy.New) policy.Policy {
	p, found, err := f.running().Policy(ctx, made.Name)
	script.Need(err)
	if found {
		return p
	}
	made.CompanyID, made.CompanySlug = f.company.ID, slug
	return script.Must(f.admin.Policies.Create(ctx, made, policy.Author{Kind: string(access.System), ID: "demo", Name: "demo"}))
}

// enroll enrolls devices with a real token and waits until the service knows
// them. Only then do they take on their mood.
func (f *filler) enroll(ctx context.Context, p policy.Policy, usage provisioning.PersonalUsage, m model, count int) {
	f.say("Enrolling %d × %s %s under “%s” …", count, m.manufacturer, m.model, p.Name)
	wanted := provisioning.Wanted{Usage: usage, Lifetime: provisioning.Lifetime}
	token := script.Must(f.service.Platform().Issue(ctx, f.company, p, wanted))
	want := emulator.Enrollment{
		EnrollmentToken: string(token.Payload), Count: count,
		Manufacturer: m.manufacturer, Brand: m.brand, Model: m.model, APILevel: m.apiLevel,
	}
	if m.personal {
		want.Ownership = emulator.PersonallyOwned
	}
	if f.history != nil {
		want.LatencyMS = new(prompt)
	}
	devices := script.Must(f.emulator.Enroll(ctx, want))
	f.awaitDevices(ctx, p, count)
	for _, device := range devices {
		script.Must(f.emulator.SetBehavior(ctx, path.Base(device), m.mood, true))
	}
}

// How long the service may take to learn of devices that have enrolled.
const (
	enrollPatience = time.Minute
	enrollGlance   = 50 * time.Millisecond
)

func (f *filler) awaitDevices(ctx context.Context, p policy.Policy, more int) {
	want := p.DeviceCount + more
	ctx, cancel := context.WithTimeout(ctx, enrollPatience)
	defer cancel()
	for {
		now, err := f.admin.Policies.Current(ctx, f.company.ID, p.ID)
		if err == nil && now.DeviceCount >= want {
			return
		}
		if !wait.For(ctx, enrollGlance) {
			script.Fail("the service did not learn of the devices under %s: %w", p.Name, ctx.Err())
		}
	}
}

// someDevice is an asset to try commands on: a willing, fully managed one.
func (f *filler) someDevice(ctx context.Context) asset.Asset {
	found, _, err := f.admin.Assets.Assets(ctx, asset.Query{
		Filter: asset.Filter{CompanyID: f.company.ID, Status: asset.Active}, Order: asset.ByCreatedAt,
		Page: operation.PageRequest{Size: 1},
	})
	script.Need(err)
	if len(found) == 0 {
		return asset.Asset{}
	}
	return found[0]
}

// group is a policy with the devices that enroll under it.
type group struct {
	day     int // of the demo's history, on which they enroll
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
		{day: 0, usage: provisioning.Disallowed, policy: policy.New{Name: "Field staff", Type: policy.Platform,
			Changes: []policy.Change{{Setting: "SCREEN_CAPTURE", Value: "BLOCK"}, {Setting: "LOCATION_MODE", Value: "ENFORCED"}}},
			devices: []model{
				{count: 5, manufacturer: "Google", brand: "google", model: "Pixel 8", apiLevel: 34},
				{count: 3, manufacturer: "Samsung", brand: "samsung", model: "Galaxy XCover7", apiLevel: 34},
				{count: 1, manufacturer: "Samsung", brand: "samsung", model: "Galaxy XCover7", apiLevel: 34, mood: offline},
				{count: 1, manufacturer: "Nokia", brand: "Nokia", model: "XR21", apiLevel: 33, mood: slow},
			}},
		{day: 5, usage: provisioning.Userless, policy: policy.New{Name: "Warehouse scanners", Type: policy.Platform,
			Changes: []policy.Change{{Setting: "CAMERA", Value: "BLOCK"}, {Setting: "FACTORY_RESET", Value: "BLOCK"},
				{Setting: "OUTGOING_CALLS", Value: "BLOCK"}}},
			devices: []model{
				{count: 4, manufacturer: "Zebra Technologies", brand: "Zebra", model: "TC58", apiLevel: 33},
				{count: 2, manufacturer: "Honeywell", brand: "Honeywell", model: "CT45", apiLevel: 31},
				{count: 1, manufacturer: "Honeywell", brand: "Honeywell", model: "CT45", apiLevel: 31, mood: failing},
				{count: 1, manufacturer: "Zebra Technologies", brand: "Zebra", model: "TC58", apiLevel: 33, mood: offline},
			}},
		{day: 10, usage: provisioning.Allowed, policy: policy.New{Name: "Office phones", Type: policy.Platform,
			Changes: []policy.Change{{Setting: "UNTRUSTED_APPS_POLICY", Value: "DISALLOW_INSTALL"}}},
			devices: []model{
				{count: 4, manufacturer: "Google", brand: "google", model: "Pixel 9", apiLevel: 35},
				{count: 1, manufacturer: "Motorola", brand: "motorola", model: "ThinkPhone", apiLevel: 34, mood: holding},
			}},
		{day: 15, usage: provisioning.Allowed, policy: policy.New{Name: "Bring your own", Type: policy.Platform},
			devices: []model{
				{count: 2, manufacturer: "Fairphone", brand: "Fairphone", model: "FP5", apiLevel: 34, personal: true},
				{count: 2, manufacturer: "OnePlus", brand: "OnePlus", model: "12R", apiLevel: 34, personal: true},
				{count: 1, manufacturer: "Xiaomi", brand: "Redmi", model: "Note 13", apiLevel: 33, personal: true, mood: offline},
			}},
		{day: 20, usage: provisioning.Userless, policy: policy.New{Name: "Meeting rooms", Type: policy.Platform,
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
