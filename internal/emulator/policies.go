package emulator

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"

	"google.golang.org/api/googleapi"

	"github.com/musterhq/muster/internal/slice"
)

// maxApplications is how many applications a policy may have.
const maxApplications = 3000

func findPolicy(_ *Emulator, c *call, n *enterprise) (*policy, error) {
	p := n.Policies[c.segment(3)]
	if p == nil {
		return nil, notFound()
	}
	return p, nil
}

func getPolicy(_ *Emulator, _ *call, n *enterprise, p *policy) (any, error) {
	return p.resource(n), nil
}

// resource is the policy as the API answers it. The members are shared, so it
// must be marshalled before the lock is given up; see [policy.resource]'s callers.
func (p *policy) resource(n *enterprise) googleapi.RawMessage {
	tree := maps.Clone(p.Document)
	tree["name"] = n.name() + "/policies/" + p.ID
	tree["version"] = strconv.FormatInt(p.Version, 10)
	return marshaled(tree)
}

func listPolicies(_ *Emulator, c *call, n *enterprise) (any, error) {
	part, next, err := page(c, slices.Sorted(maps.Keys(n.Policies)), func(id string) string { return id },
		func(id string) googleapi.RawMessage { return n.Policies[id].resource(n) }, 100, 100)
	return struct {
		Policies      []googleapi.RawMessage `json:"policies,omitempty"`
		NextPageToken string                 `json:"nextPageToken,omitempty"`
	}{part, next}, err
}

func patchPolicy(e *Emulator, c *call, n *enterprise) (any, error) {
	id := c.segment(3)
	p := n.Policies[id]
	next := c.body
	if mask := c.query.Get("updateMask"); mask != "" {
		paths, err := parseMask(e.management, "Policy", mask, "name", "version")
		if err != nil {
			return nil, err
		}
		next = map[string]any{}
		if p != nil {
			next = cloneTree(p.Document)
		}
		applyMask(next, c.body, paths)
	}
	delete(next, "name")
	delete(next, "version")
	if err := checkPolicy(next); err != nil {
		return nil, err
	}
	effective := cloneTree(next)
	e.management.Prune("Policy", effective)
	if !e.settings.Quirks.EchoDefaults {
		next = effective
	}
	if p == nil {
		p = &policy{ID: id}
		n.Policies[id] = p
	}
	e.storePolicy(n, p, next, effective)
	return p.resource(n), nil
}

// storePolicy saves a policy's document, under a new version if it differs in
// effect from the old one, and lets the devices know.
func (e *Emulator) storePolicy(n *enterprise, p *policy, document, effective map[string]any) {
	old := cloneTree(p.Document)
	e.management.Prune("Policy", old)
	changed := p.Version == 0 || !reflect.DeepEqual(old, effective)
	p.Document = document
	e.touch()
	if !changed && !e.settings.Quirks.NoOpPatchBumpsVersion {
		return
	}
	p.Version++
	for _, d := range n.Devices {
		if d.PolicyID == p.ID && !d.Deleted {
			e.schedulePolicy(d, false)
		}
	}
}

// checkPolicy makes the checks that a schema cannot express.
func checkPolicy(document map[string]any) error {
	if err := checkRanges(document, ""); err != nil {
		return err
	}
	rules, _ := document["policyEnforcementRules"].([]any)
	for i, rule := range rules {
		rule, _ := rule.(map[string]any)
		if rule["blockAction"] == nil || rule["wipeAction"] == nil {
			return invalid("policyEnforcementRules[%d] must have a block action and a wipe action", i)
		}
	}
	applications, _ := document["applications"].([]any)
	if len(applications) > maxApplications {
		return invalid("A policy can have at most %d applications.", maxApplications)
	}
	seen, kiosks := map[any]bool{}, 0
	for i, application := range applications {
		application, _ := application.(map[string]any)
		name, _ := application["packageName"].(string)
		if name == "" {
			return invalid("applications[%d] must have a package name", i)
		}
		if seen[name] {
			return invalid("applications[%d] has the same package name as another application: %s", i, name)
		}
		seen[name] = true
		if application["installType"] == "KIOSK" {
			kiosks++
		}
	}
	if kiosks > 1 {
		return invalid("Only one application can have the install type KIOSK.")
	}
	return nil
}

func deletePolicy(e *Emulator, _ *call, n *enterprise, p *policy) (any, error) {
	if slices.ContainsFunc(n.Devices, func(d *simulated) bool { return !d.Deleted && d.PolicyID == p.ID }) {
		return nil, failAs("FAILED_PRECONDITION", "Policy %s/policies/%s cannot be deleted because it is in use by at least one device.",
			n.name(), p.ID)
	}
	delete(n.Policies, p.ID)
	e.touch()
	return empty{}, nil
}

// cloneTree copies a decoded JSON tree.
func cloneTree(tree map[string]any) map[string]any {
	clone := make(map[string]any, len(tree))
	for name, value := range tree {
		clone[name] = cloneValue(value)
	}
	return clone
}

func cloneValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return cloneTree(value)
	case []any:
		return slice.Map(value, cloneValue)
	default:
		return value
	}
}

// bounds are the values that the vendor's description of a member allows.
// Unset is 0 where that is outside of them.
type bounds struct{ least, most int64 }

// ranges are the members of a policy whose values the schema's types do not
// bound, by name: each name means the same wherever it occurs.
var ranges = map[string]bounds{ //nolint:gochecknoglobals // a table that is never written to
	"installPriority":          {0, 10_000},
	"minimumVersionCode":       {0, math.MaxInt32},
	"maxDaysWithWorkOff":       {3, math.MaxInt32},
	"startMinutes":             {0, 1439},
	"endMinutes":               {0, 1439},
	"screenBrightness":         {1, 255},
	"minApiLevel":              {1, math.MaxInt32},
	"maximumTimeToLock":        {0, math.MaxInt64},
	"passwordMinimumLength":    {0, math.MaxInt32},
	"passwordMinimumLetters":   {0, math.MaxInt32},
	"passwordMinimumLowerCase": {0, math.MaxInt32},
	"passwordMinimumNonLetter": {0, math.MaxInt32},
	"passwordMinimumNumeric":   {0, math.MaxInt32},
	"passwordMinimumSymbols":   {0, math.MaxInt32},
	"passwordMinimumUpperCase": {0, math.MaxInt32},
	"passwordHistoryLength":    {0, math.MaxInt32},
	"carrierId":                {0, math.MaxInt32},
	"mmsProxyPort":             {0, math.MaxInt32},
	"proxyPort":                {0, math.MaxInt32},
	"mtuV4":                    {0, math.MaxInt32},
	"mtuV6":                    {0, math.MaxInt32},
}

// checkRanges refuses numbers in a decoded policy that are out of their range.
func checkRanges(tree any, path string) error {
	switch tree := tree.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			if err := checkRange(name, tree[name], path+name); err != nil {
				return err
			}
			if err := checkRanges(tree[name], path+name+"."); err != nil {
				return err
			}
		}
	case []any:
		for i, element := range tree {
			if err := checkRanges(element, fmt.Sprintf("%s[%d].", path[:max(0, len(path)-1)], i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkRange(name string, value any, path string) error {
	allowed, bound := ranges[name]
	if !bound {
		return nil
	}
	text, _ := value.(string) // a 64-bit integer
	if number, ok := value.(json.Number); ok {
		text = string(number)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n == 0 || n >= allowed.least && n <= allowed.most {
		return nil
	}
	return invalid("Invalid value at '%s': %d is not in the range %d to %d", path, n, allowed.least, allowed.most)
}
