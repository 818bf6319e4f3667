package devices

import (
	"strings"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// tagList are the tags of a form's field, which commas part.
func tagList(text string) []string {
	tags := []string{}
	for tag := range strings.SplitSeq(text, ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags
}

// joined reports whether the field can show the tags: none has a comma or a space at its
// ends.
func (d device) joined() bool {
	return strings.Join(tagList(d.tagText()), "\n") == strings.Join(d.Tags, "\n")
}

func (d device) tagText() string { return strings.Join(d.Tags, ", ") }

// edit changes what people say of a device: its name, its tags, its user.
func (s *Section) edit(v *frame.Visit) error {
	d, err := asset.Find(v.Context(), s.Assets, v.Principal, v.PathValue("id"))
	if err != nil {
		return err
	}
	custom := map[string]any{}
	for _, key := range []string{asset.UserKey, asset.UserEmailKey} {
		if now := strings.TrimSpace(v.Form.Get(key)); now != d.CustomData[key] {
			if custom[key] = now; now == "" {
				custom[key] = nil
			}
		}
	}
	args := map[string]any{"assetId": d.ID, "customData": custom}
	if name := strings.TrimSpace(v.Form.Get("identification")); name != d.Identification {
		args["identification"] = name
	}
	if (device{Asset: d}).joined() {
		args["tags"] = tagList(v.Form.Get("tags"))
	}
	back := frame.DevicePath(d.ID)
	if _, err := v.Run("update_asset", args, ""); err != nil {
		return v.Redirect(back, v.Failed(err))
	}
	return v.Redirect(back, frame.Done("Saved."))
}

// whose is the line below a device's name: its serial number, and to whom it is assigned.
func whose(a asset.Asset) string {
	return strings.Trim(fact(a, "serialNumber")+" · "+a.CustomData[asset.UserKey], " ·")
}
