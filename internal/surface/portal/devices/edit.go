package devices

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/surface/edge"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// joined reports whether the field can show the tags: none has a comma or a space at its
// ends.
func (d device) joined() bool {
	return strings.Join(frame.Parted(d.tagText()), "\n") == strings.Join(d.Tags, "\n")
}

func (d device) tagText() string { return strings.Join(d.Tags, ", ") }

// edit changes what people say of a device: its name, its tags, its user. What the form
// was shown with and still has is left as it is by now.
func (s *Section) edit(v *frame.Visit, d asset.Asset) error {
	typed := func(name string) (string, bool) {
		now, was := strings.TrimSpace(v.Form.Get(name)), v.Form.Get("was-"+name)
		return now, strings.ReplaceAll(now, "\r", "") != strings.ReplaceAll(was, "\r", "")
	}
	args, custom := map[string]any{"assetId": d.ID}, map[string]any{}
	for _, key := range []string{asset.UserKey, asset.UserEmailKey} {
		if now, changed := typed(key); changed && now == "" {
			custom[key] = nil
		} else if changed {
			custom[key] = now
		}
	}
	if other, changed := typed("other"); changed {
		was, _ := dataOf(v.Form.Get("was-other"))
		now, err := dataOf(other)
		if err != nil {
			return s.editAgain(v, device{Asset: d}, err)
		}
		maps.Copy(custom, changesOf(was, now))
	}
	if len(custom) > 0 {
		args["customData"] = custom
	}
	if name, changed := typed("identification"); changed {
		args["identification"] = name
	}
	now, was := frame.Parted(v.Form.Get("tags")), frame.Parted(v.Form.Get("was-tags"))
	if added := without(now, was); len(added) > 0 {
		args["addTags"] = added
	}
	if removed := without(was, now); len(removed) > 0 {
		args["dropTags"] = removed
	}
	back := frame.DevicePath(d.ID)
	if len(args) == 1 {
		return v.Redirect(back)
	}
	if _, err := v.Run("edit_asset", args, ""); err != nil {
		return s.editAgain(v, device{Asset: d}, err)
	}
	return v.Redirect(back, frame.Done("Saved."))
}

// without are the tags that are not among others.
func without(tags, others []string) []string {
	return slices.DeleteFunc(slices.Clone(tags), func(tag string) bool { return slices.Contains(others, tag) })
}

// editAgain shows the form that was refused, with what is wrong at its fields.
func (s *Section) editAgain(v *frame.Visit, d device, cause error) error {
	if fault.CodeOf(cause) == fault.Internal || d.Archived {
		return v.Redirect(frame.DevicePath(d.ID), v.Failed(cause))
	}
	wrong, problem := map[string]string{}, v.Failed(cause).Text
	for field, text := range frame.Fields(cause) {
		name, _, _ := strings.Cut(field, "[")
		switch name {
		case "customData":
			name = "other"
		case "addTags":
			name = "tags"
		}
		if wrong[name] = text; v.Form.Has(name) {
			problem = ""
		}
	}
	return v.ShowStatus(edge.Status(fault.CodeOf(cause)), "Edit "+d.name(), frame.DevicesPath, editPage(v, d, wrong, problem))
}

// otherData is the custom data beside the assigned user.
func (d device) otherData() map[string]string {
	other := maps.Clone(d.CustomData)
	delete(other, asset.UserKey)
	delete(other, asset.UserEmailKey)
	return other
}

// dataText is custom data for a field: a line of KEY=VALUE for each key.
func dataText(data map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(data)) {
		b.WriteString(key + "=" + data[key] + "\n")
	}
	return strings.TrimSpace(b.String())
}

// dataOf reads dataText. It fails with fault.InvalidArguments for a line without "=", and for a key that stands twice.
func dataOf(text string) (map[string]string, error) {
	data := map[string]string{}
	for _, line := range frame.Lines(text) {
		key, value, is := strings.Cut(line, "=")
		key = strings.TrimSpace(key)
		if _, twice := data[key]; twice || !is {
			return nil, fault.Invalid("the other data cannot be read", fault.Field{Field: "customData",
				Message: "must have lines of KEY=VALUE, each key once: look at “" + frame.Plain(line) + "”"})
		}
		data[key] = strings.TrimSpace(value)
	}
	return data, nil
}

// keyed reports whether a field can show the other custom data.
func (d device) keyed() bool {
	shown, err := dataOf(dataText(d.otherData()))
	return err == nil && maps.Equal(shown, d.otherData())
}

// changesOf are the values that differ; nil removes a key.
func changesOf(before, after map[string]string) map[string]any {
	changes := map[string]any{}
	for key, value := range after {
		if was, there := before[key]; !there || was != value {
			changes[key] = value
		}
	}
	for key := range before {
		if _, there := after[key]; !there {
			changes[key] = nil
		}
	}
	return changes
}

// undo takes back the last edit of a device.
func (s *Section) undo(v *frame.Visit, d asset.Asset) error {
	_, err := s.Undo.UndoEdit(v.Context(), v.Company.ID, d.ID, v.Form.Get("ref"), asset.UndoFor, v.Principal.Policies)
	return v.Finish(frame.DevicePath(d.ID), err, "Undone.", fault.Unsupported)
}

// archive puts an asset away, or takes it back.
func (s *Section) archive(away bool, done string) frame.Handler {
	return frame.On(s.find, func(v *frame.Visit, d asset.Asset) error {
		err := s.Editor.ArchiveAssets(v.Context(), v.Company.ID, []string{d.ID}, away)
		return v.Finish(frame.DevicePath(d.ID), err, done, fault.Unsupported)
	})
}

// undoable names a device's last edit, if the person may take it back now.
func (s *Section) undoable(v *frame.Visit, id string) (ref string, at time.Time, err error) {
	if !v.May(account.CommandDevices) {
		return "", at, nil
	}
	ref, at, err = s.Undo.LastEdit(v.Context(), v.Company.ID, id)
	if !at.Add(asset.UndoFor).After(v.Now) {
		ref = ""
	}
	return ref, at, err
}

// whose is the line below a device's name: its serial number, and to whom it is assigned.
func whose(a asset.Asset) string {
	return strings.Trim(fact(a, "serialNumber")+" · "+a.CustomData[asset.UserKey], " ·")
}
