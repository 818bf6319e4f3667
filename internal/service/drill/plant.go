package drill

import (
	"bytes"
	"context"
	_ "embed" // the corpus
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agent/simulated"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/emulator"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/script"
)

// The longest texts that the fields take.
const (
	longest    = 1000
	longName   = policy.MaxNameLength
	longReason = access.MaxReason
	longTicket = access.MaxTicket
)

// planter writes the corpus into whatever a device, the vendor or another user can
// write.
type planter struct {
	*drill
	mu    sync.Mutex // the devices take their texts while others are planted
	texts []*injected
}

func (p *planter) next(most int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return take(p.texts, most)
}

func (p *planter) plant(ctx context.Context) {
	p.policies(ctx)
	p.spares(ctx)
	p.platformDevices(ctx)
	p.agents(ctx)
	p.commands(ctx)
}

// author is who makes policies in a drill.
func author() policy.Author {
	return policy.Author{Kind: string(access.System), ID: "drill", Name: "drill"}
}

// policies are named by another user; each restricts something.
func (p *planter) policies(ctx context.Context) {
	for range 8 {
		name := p.next(longName)
		if name == "no text left" {
			return
		}
		made := script.Must(p.Admin.Policies.Create(ctx, policy.New{CompanyID: p.Company.ID, CompanySlug: p.Company.Slug, Name: name,
			Type:        policy.Platform,
			Description: p.next(longest), Changes: []policy.Change{{Setting: "CAMERA", Value: "BLOCK"}}}, author()))
		script.Must(p.Admin.Policies.Save(ctx, p.Company.ID, made.ID, made.Version, // a revision that is stricter than the first
			policy.Edit{Changes: []policy.Change{{Setting: "SCREEN_CAPTURE", Value: "BLOCK"}}}, author()))
	}
}

// spares are assets that another user imports.
func (p *planter) spares(ctx context.Context) {
	var all []asset.Asset
	for range 16 {
		a := asset.Asset{ID: resource.NewID(), CompanyID: p.Company.ID, CompanySlug: p.Company.Slug, Status: asset.Pending,
			CreatedAt:      p.clock.now(),
			Identification: p.next(longest), Tags: []string{p.next(longest), p.next(longest)},
			CustomData:     map[string]string{"owner": p.next(longest), "room": p.next(longest), p.next(longest): "value"},
			Specifications: map[string]string{}}
		for _, name := range []string{"serialNumber", "model", "manufacturer", "brand"} {
			a.Specifications[name] = p.next(longest)
		}
		all = append(all, a)
	}
	script.Need(p.Admin.Assets.ImportAssets(ctx, all))
}

// policyNamed finds one of the demo's policies.
func (d *drill) policyNamed(ctx context.Context, name string) policy.Policy {
	p, found, err := d.Policy(ctx, name)
	script.Need(err)
	if !found {
		script.Fail("the demo has no policy %s", name)
	}
	return p
}

// platformDevices are devices whose makers wrote the texts into them.
func (p *planter) platformDevices(ctx context.Context) {
	under := p.policyNamed(ctx, "Field staff")
	token := script.Must(p.Service.Platform().Issue(ctx, p.Company, under,
		provisioning.Wanted{Usage: provisioning.Disallowed, Lifetime: provisioning.Lifetime}))
	for range 5 {
		script.Must(p.Emulator.Enroll(ctx, emulator.Enrollment{EnrollmentToken: string(token.Payload), Manufacturer: p.next(longest),
			Brand: p.next(longest),
			Model: p.next(longest), SerialNumber: p.next(longest),
			Behavior: emulator.Behavior{Packages: []string{p.next(longest), p.next(longest)}}}))
	}
}

// liar is a device whose reports and results are texts of the corpus.
type liar struct {
	*simulated.Device
	facts   protocol.Facts
	report  json.RawMessage
	outcome func() string
}

// Facts implements agent.Device.
func (l *liar) Facts(context.Context) (protocol.Facts, error) { return l.facts, nil }

// Report implements agent.Device.
func (l *liar) Report(context.Context, agent.Reporting) (agent.Report, error) {
	return agent.Report{Values: l.report}, nil
}

// Do implements agent.Device: it does nothing, and says what it likes.
func (l *liar) Do(context.Context, agent.Action) (string, error) {
	return "", errors.New(l.outcome())
}

// agents are devices with Muster's own agent that say what they like.
func (p *planter) agents(ctx context.Context) {
	under := p.policyNamed(ctx, "Kiosk")
	for i := range 3 {
		var apps []map[string]string
		for range 6 {
			apps = append(apps, map[string]string{"packageName": "com.example.app", "label": p.next(longest)})
		}
		report := script.Must(json.Marshal(map[string]any{"batteryLevel": 50, "installedApps": apps, "wifiSsid": p.next(longest),
			"networkInfo": map[string]string{"ssid": p.next(longest), "operator": p.next(longest)}}))
		device := &liar{Device: simulated.New(simulated.Default("liar-"+strconv.Itoa(i)), p.clock.now), report: report,
			facts: protocol.Facts{SerialNumber: p.next(longest), Manufacturer: p.next(longest), Brand: p.next(longest),
				Model: p.next(longest),
				SDK:   33, OSVersion: p.next(longest)}, outcome: func() string { return p.next(longest) }}
		p.live(ctx, "liar-"+strconv.Itoa(i), device, under)
	}
}

// commands have reasons, tickets and messages of another user, errors of the
// vendor, and results of devices.
func (p *planter) commands(ctx context.Context) {
	_, devices := p.look(ctx)
	sent := 0
	for _, a := range devices {
		name, args := "lock_device", map[string]any{"assetId": a.ID}
		if a.Device.Management == asset.Agent {
			name, args = "launch_app", map[string]any{"assetId": a.ID, "packageName": "com.example.app"}
		} else if sent++; sent > 12 {
			continue
		} else {
			fault := emulator.Fault{Method: "devices.issueCommand", Status: http.StatusBadRequest, Reason: p.next(longest)}
			script.Need(p.Emulator.AddFault(fault))
		}
		by := p.rest(p.Key, nil)
		by.reason, by.ticket = p.next(longReason), p.next(longTicket)
		p.patient(ctx, by, name, args, "")
	}
}

//go:embed corpus.jsonl
var corpusFile []byte

// injected is a text that orders a model to do something.
type injected struct {
	// Ask names what it orders: a key of obedience.
	Ask  string `json:"ask"`
	Text string `json:"text"`
	used bool
}

// mark is in each text, as its number in the corpus.
var mark = regexp.MustCompile(`\[#(\d{3})\]`)

// corpus is all texts. The mark of a text is its place, counted from 1.
func corpus() (all []*injected) {
	for line := range bytes.Lines(corpusFile) {
		one := &injected{}
		script.Need(json.Unmarshal(line, one))
		all = append(all, one)
	}
	return all
}

// take returns the next text of at most so many characters, or a harmless one if
// there is none left.
func take(all []*injected, most int) string {
	for _, one := range all {
		if !one.used && utf8.RuneCountInString(one.Text) <= most {
			one.used = true
			return one.Text
		}
	}
	return "no text left"
}
