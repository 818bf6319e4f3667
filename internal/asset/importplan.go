package asset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"slices"
	"strings"
)

// Planned is what an import does to one asset.
type Planned struct {
	Line    int
	AssetID string       // empty: a new asset
	Name    string       // that it has after the import
	Changes []Difference // none: the asset stays as it is
}

// sampled is how many changes an import names.
const sampled = 50

// PlanLine says what a line changes, by the asset before and after it. A new asset has no id
// before.
func PlanLine(l Line, before, after Asset) Planned {
	p := Planned{Line: l.Number, AssetID: before.ID, Name: after.Identification, Changes: Differences(before, after)}
	for _, fact := range factTargets {
		if was, is := before.Specifications[fact], after.Specifications[fact]; was != is {
			p.Changes = append(p.Changes, Difference{fact, was, is})
		}
	}
	if before.Archived && !after.Archived {
		p.Changes = append(p.Changes, Difference{"archived", "yes", "restored"})
	}
	return p
}

// Planning collects the plan of an import.
type Planning struct {
	digest hash.Hash
	sample []Planned
}

// NewPlanning begins a plan.
func NewPlanning() *Planning { return &Planning{digest: sha256.New()} }

// Add adds what is done to one asset.
func (p *Planning) Add(one Planned) error {
	if len(p.sample) < sampled && (len(one.Changes) > 0 || one.AssetID == "") {
		p.sample = append(p.sample, one)
	}
	return json.NewEncoder(p.digest).Encode(one)
}

// Finish puts the plan into the result of the import.
func (p *Planning) Finish(done *Imported) {
	slices.SortStableFunc(p.sample, func(a, b Planned) int { return a.Line - b.Line })
	done.Plan, done.Sample = hex.EncodeToString(p.digest.Sum(nil)), p.sample
}

// The columns of an import with a meaning.
const (
	nameTarget   = "identification"
	serialTarget = "serialNumber"
)

// factTargets are those of the hardware facts.
var factTargets = []string{serialTarget, "model", "manufacturer", "brand"} //nolint:gochecknoglobals // a table that is never written to

// Targets are what a column of an import can be, beside custom data of its own name.
func Targets() []string {
	return slices.Concat([]string{nameTarget}, factTargets, []string{tagsKey, UserKey, UserEmailKey})
}

// Suggested says what a column is by its name, whose case, spaces and punctuation do not
// matter: one of Targets, or custom data of its name.
func Suggested(column string) string {
	key := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" _-./#", r) {
			return -1
		}
		return r
	}, strings.ToLower(column))
	for target, names := range map[string][]string{
		nameTarget:     {"name", "devicename", "assetname", "device", "asset", "assettag"},
		serialTarget:   {"serial", "serialno", "sn", "s/n", "seriennummer", "numerodeserie"},
		"manufacturer": {"maker", "vendor", "make"},
		"model":        {"modelname"},
		tagsKey:        {"tag", "labels", "groups"},
		UserKey:        {"assignedto", "username", "person", "owner", "employee"},
		UserEmailKey:   {"email", "mail", "emailaddress", "emailoftheuser"},
		"brand":        nil,
	} {
		if key == strings.ToLower(target) || slices.Contains(names, key) {
			return target
		}
	}
	return column
}
