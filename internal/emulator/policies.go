package emulator

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	"google.golang.org/api/googleapi"
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
	ids, next, err := page(c, slices.Sorted(maps.Keys(n.Policies)), func(id string) string { return id }, 100, 100)
	if err != nil {
		return nil, err
	}
	answer := struct {
		Policies      []googleapi.RawMessage `json:"policies,omitempty"`
		NextPageToken string                 `json:"nextPageToken,omitempty"`
	}{NextPageToken: next}
	for _, id := range ids {
		answer.Policies = append(answer.Policies, n.Policies[id].resource(n))
	}
	return answer, nil
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
			e.schedulePolicy(d)
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
		clone := make([]any, len(value))
		for i, element := range value {
			clone[i] = cloneValue(element)
		}
		return clone
	default:
		return value
	}
}
