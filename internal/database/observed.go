package database

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/enrollment"
)

// enroll begins a new enrollment: nothing that the device said before holds.
func (h *lockedAsset) enroll(o enrollment.Observation) {
	h.epoch++
	h.status, h.archived = asset.Synchronizing, ""
	h.management, h.ownership, h.mode = string(o.Management), "", ""
	h.policyID, h.appliedPolicy, h.appliedVersion, h.appliedPush = "", "", 0, 0
	h.lostMode, h.reported, h.location = false, "", ""
	h.pushReachable = o.Management == asset.Agent // its wake-up stream; a companion registers
	h.device = o.Device
	h.enrolled = millis(o.EnrolledAt)
	if h.enrolled == 0 {
		h.enrolled = millis(o.ObservedAt)
	}
	h.seen = max(h.enrolled, millis(o.ReportedAt))
}

// learn takes over what the device and its channel said of themselves.
func (h *lockedAsset) learn(o enrollment.Observation) {
	h.management = cmp.Or(string(o.Management), h.management)
	h.ownership = cmp.Or(string(o.Ownership), h.ownership)
	h.mode = cmp.Or(string(o.Mode), h.mode)
	h.apiLevel = cmp.Or(o.APILevel, h.apiLevel)
	h.stableID = cmp.Or(o.StableID, h.stableID)
	h.serialKey = cmp.Or(asset.IdentityKey(o.SerialNumber), h.serialKey)
	h.brandKey = cmp.Or(asset.IdentityKey(o.Brand), h.brandKey)
	h.policyID = cmp.Or(o.PolicyID, h.policyID)
	switch {
	case o.AppliedPolicy == "":
	case o.AppliedPolicy != h.appliedPolicy:
		h.appliedPolicy, h.appliedVersion, h.appliedPush = o.AppliedPolicy, o.AppliedVersion, o.AppliedPush
	case o.AppliedVersion != 0 || o.AppliedPush != 0:
		h.appliedVersion, h.appliedPush = cmp.Or(o.AppliedVersion, h.appliedVersion), o.AppliedPush
	}
	if o.LostMode != nil {
		h.lostMode = *o.LostMode
	}
	h.synced = max(h.synced, millis(o.ReportedAt))
	h.seen = max(h.seen, millis(o.ReportedAt))
}

// learnFacts takes over what is kept as JSON, and names the asset after its
// device while no person has.
func (h *lockedAsset) learnFacts(o enrollment.Observation) error {
	facts := map[string]string{}
	if err := decode(h.specifications, &facts); err != nil {
		return err
	}
	h.learnSpecifications(facts, o)
	for key, value := range map[string]string{"serialNumber": o.SerialNumber, "brand": o.Brand, "model": o.Model} {
		if value != "" {
			facts[key] = value
		}
	}
	h.specifications = encodeSome(facts)
	if err := h.hear(o); err != nil {
		return err
	}
	if !h.named {
		h.identification = identification(facts, h.device)
	}
	return h.locate(o.Location)
}

// learnSpecifications takes over what a device reports of its hardware and
// software. The platform names a fixed set, so its reports add to what is known.
// An agent names what it likes: its report replaces all but what it enrolled
// with, of which the serial number and the brand say which asset it is.
func (h *lockedAsset) learnSpecifications(facts map[string]string, o enrollment.Observation) {
	if o.Management != asset.Agent || o.Enrolling || o.Specifications == nil {
		maps.Copy(facts, o.Specifications)
		return
	}
	maps.DeleteFunc(facts, func(name, _ string) bool {
		return !slices.Contains([]string{"serialNumber", "brand", "model", "manufacturer", "osVersion"}, name)
	})
	for name, value := range o.Specifications {
		if name != "serialNumber" && name != "brand" {
			facts[name] = value
		}
	}
}

// hear takes over a status report, and what is said of the policy alone. An
// agent's status report says nothing of the policy: what was known of it stays.
func (h *lockedAsset) hear(o enrollment.Observation) (err error) {
	compliance := o.Compliance
	if len(o.StatusReport) > 0 {
		if len(compliance) == 0 && o.Management == asset.Agent {
			if compliance, err = complianceOf(h.reported); err != nil {
				return err
			}
		}
		h.reported = string(o.StatusReport)
	}
	if len(compliance) == 0 {
		return nil
	}
	if h.reported, err = overlay(h.reported, compliance); err == nil && len(h.reported) > enrollment.MaxReport {
		h.reported = string(compliance)
	}
	return err
}

// complianceOf are the members of a status report that say how far the device
// has its policy; nil: there are none.
func complianceOf(report string) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if err := decode(report, &members); err != nil {
		return nil, err
	}
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool { return name == "reportedAt" || !enrollment.OwnMember(name) })
	if len(members) == 0 {
		return nil, nil
	}
	return json.Marshal(members)
}

// mayLocate reports whether a device managed by our own agent may tell its
// place: while it is asked to, or lost.
func (h lockedAsset) mayLocate(ctx context.Context, t *tx, deviceID string) bool {
	return h.lostMode ||
		valueIn[bool](ctx, t, `SELECT EXISTS (SELECT 1 FROM agent_deliveries WHERE device_id = ? AND type = 'LOCATION_UPDATE')`, deviceID)
}

// locate keeps the newer of the location known and the one reported.
func (h *lockedAsset) locate(reported *asset.Location) error {
	if reported == nil {
		return nil
	}
	var last asset.Location
	if err := decode(h.location, &last); err != nil {
		return err
	}
	if last.ReportedAt.After(reported.ReportedAt) {
		return nil
	}
	text, err := json.Marshal(reported)
	h.location = string(text)
	return err
}

// settled is the status of a device that speaks: SYNCHRONIZING until it has
// applied the policy that it is to have, or reported if there is none.
func (h *lockedAsset) settled(o enrollment.Observation) asset.Status {
	switch {
	case h.policyID != "" && h.appliedPolicy == h.policyID:
		return asset.Active
	case h.policyID == "" && (h.status == asset.Active || !o.ReportedAt.IsZero()):
		return asset.Active
	default:
		return asset.Synchronizing
	}
}

// tailLength is how much of a serial number distinguishes devices of a model.
const tailLength = 4

// identification is what a device is called until a person names it: its model
// and the end of its serial number.
func identification(facts map[string]string, device string) string {
	tail := facts["serialNumber"]
	if asset.IdentityKey(tail) == "" {
		tail = device[strings.LastIndexByte(device, '/')+1:]
	}
	if r := []rune(tail); len(r) > tailLength {
		tail = string(r[len(r)-tailLength:])
	}
	return strings.TrimSpace(cmp.Or(facts["model"], facts["brand"], "Device") + " " + tail)
}
