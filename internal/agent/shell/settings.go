package shell

import (
	"context"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/slice"
)

// find returns a setting's rule, and the device's API level, if this device and
// this agent can follow it.
func (d *Device) find(ctx context.Context, setting, value string) (rule, int, error) {
	level, err := d.sdk(ctx)
	if err != nil {
		return rule{}, 0, err
	}
	has := func(feature string) func() (bool, error) {
		return func() (bool, error) { return d.hasFeature(ctx, feature) }
	}
	r, err := find(setting, value, Powers{SDK: level, System: d.system(), Telephony: has("android.hardware.telephony"),
		Headset: has("android.hardware.vr.headtracking"), Verifier: func() (bool, error) {
			text, err := d.Tools.Run(ctx, "cmd", "package", "query-receivers", "--brief", "-a",
				"android.intent.action.PACKAGE_NEEDS_VERIFICATION")
			return strings.Contains(text, "/"), err
		}})
	return r, level, err
}

// Settings implements agent.Device.
func (d *Device) Settings() []string { return Settings() }

// Settings are the ids of the settings, in the contract's order.
func Settings() []string { return slice.Map(rules(), func(r rule) string { return r.id }) }

// Apply implements agent.Device. Locks come off before and go on after what
// they lock is changed.
func (d *Device) Apply(ctx context.Context, setting, value string) error {
	r, level, err := d.find(ctx, setting, value)
	if err != nil || r.own {
		return err
	}
	hold := slices.Contains(r.on, value)
	if !hold {
		if err := d.restrict(ctx, r, level, false); err != nil {
			return err
		}
	}
	if err := d.turn(ctx, r, level, value); err != nil || !hold {
		return err
	}
	for _, s := range r.sets {
		if _, err := d.Tools.Run(ctx, "settings", "put", s.table, s.name, s.value); err != nil {
			return err
		}
	}
	return d.restrict(ctx, r, level, true)
}

// restrict sets or lifts the user restrictions of a setting. Over USB it can do
// neither.
func (d *Device) restrict(ctx context.Context, r rule, level int, on bool) error {
	if !d.system() {
		return nil
	}
	flag := "0"
	if on {
		flag = "1"
	}
	for _, k := range r.keys {
		if level < k.sdk {
			continue
		}
		if _, err := d.Tools.Run(ctx, "pm", "set-user-restriction", "--user", "0", k.name, flag); err != nil {
			return err
		}
	}
	return nil
}

// turn switches what the setting switches.
func (d *Device) turn(ctx context.Context, r rule, level int, value string) error {
	if r.toggle == nil {
		return nil
	}
	on, named := r.toggle.values[value]
	if !named && !(value == "" && r.toggle.restore) {
		return nil // it is the user's own
	}
	order := r.toggle.turn
	if level < r.toggle.since {
		order = r.toggle.before
	}
	words := order.line(on || !named)
	_, err := d.Tools.Run(ctx, words[0], words[1:]...)
	return err
}

// Read implements agent.Device.
func (d *Device) Read(ctx context.Context, setting string) (string, error) {
	r, level, err := d.find(ctx, setting, "")
	if err != nil || r.own {
		return "", err
	}
	if r.check != "" {
		return d.encryption(ctx)
	}
	held, err := d.held(ctx, r, level)
	if err != nil || !held {
		return "", err
	}
	if t := r.toggle; t != nil {
		on, err := d.switched(ctx, t, level)
		if err != nil {
			return "", err
		}
		for value, means := range t.values {
			if means == on {
				return value, nil
			}
		}
		return "", nil
	}
	for _, s := range r.sets {
		now, err := d.Tools.Run(ctx, "settings", "get", s.table, s.name)
		if err != nil || strings.TrimSpace(now) != s.value {
			return "", err
		}
	}
	return r.on[0], nil
}

// held reports whether all restrictions of a setting are in force. Where the
// device, or this agent, has none for it, its switch speaks for itself.
func (d *Device) held(ctx context.Context, r rule, level int) (bool, error) {
	if !d.system() {
		return true, nil
	}
	text, err := d.Tools.Run(ctx, "dumpsys", "user")
	if err != nil {
		return false, err
	}
	inForce, err := parseRestrictions(text)
	if err != nil {
		return false, err
	}
	for _, k := range r.keys {
		if level >= k.sdk && !inForce[k.name] {
			return false, nil
		}
	}
	return true, nil
}

func (d *Device) switched(ctx context.Context, t *toggle, level int) (bool, error) {
	words := t.read
	if level < t.since {
		words = t.old
	}
	text, err := d.Tools.Run(ctx, words[0], words[1:]...)
	if err != nil {
		return false, err
	}
	return parseSwitch(words[len(words)-1], text)
}

func (d *Device) encryption(ctx context.Context) (string, error) {
	state, err := d.Tools.Run(ctx, "getprop", "ro.crypto.state")
	if err == nil && strings.TrimSpace(state) == "encrypted" {
		return "ENABLED_WITHOUT_PASSWORD", nil
	}
	return "", err
}
