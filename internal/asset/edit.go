package asset

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/durable"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/validate"
)

// Limits of what people say of an asset (the contract).
const (
	MaxName       = 200 // characters
	MaxTags       = 50
	MaxTag        = 64       // characters
	MaxCustomData = 16 << 10 // bytes of keys and values in UTF-8
	maxKey        = 128      // characters
)

// EditArgs are the arguments of update_asset.
type EditArgs struct {
	Target
	Identification *string          `json:"identification" rule:"notblank maxchars=200 line visible" doc:"New name of the asset for people." example:"Warehouse 7"`
	Tags           []string         `json:"tags" rule:"maxitems=50 notblank maxchars=64 line visible" doc:"The asset's tags from now on: they replace those that it has."`
	CustomData     operation.Object `json:"customData" doc:"Keys of the custom data, each with a string; null removes the key. Keys that are not named stay. user and userEmail are the person to whom the device is assigned." example:"{\"user\":\"Ada Lovelace\"}"`
}

// Rules implements operation.Ruler.
func (a *EditArgs) Rules(r *operation.Rules) {
	r.Must("identification", "must be given, or tags, or customData", a.Identification != nil || a.Tags != nil || a.CustomData != nil)
	a.checkCustom(r)
}

func (a *EditArgs) checkCustom(r *operation.Rules) {
	custom, err := a.custom()
	_, tags := custom[tagsKey]
	r.Must("customData", "must have strings and null as values", err == nil)
	r.Must("customData", "must not have the key tags: tags are an argument of their own", !tags)
	r.Must("customData", "must have keys of 1 to 128 characters",
		!slices.ContainsFunc(slices.Collect(maps.Keys(custom)), func(key string) bool {
			return validate.Blank(key) || utf8.RuneCountInString(key) > maxKey
		}))
}

// custom are the changes of custom data; nil removes a key.
func (a *EditArgs) custom() (changes map[string]*string, err error) {
	if a.CustomData != nil {
		err = json.Unmarshal(a.CustomData, &changes)
	}
	return changes, err
}

// Edit is a change of what people say of an asset. Members that are nil change nothing.
type Edit struct {
	Identification *string
	Tags           []string // all tags from now on
	AddTags        []string // tags to add and to remove, where Tags is nil
	DropTags       []string
	CustomData     map[string]*string // nil removes the key
	// Policies limits the caller to devices of these policies; nil: no limit.
	Policies []string
}

// checkEdit checks the members of an edit.
var checkEdit = sync.OnceValue(operation.Checker[EditArgs]) //nolint:gochecknoglobals // made once, never changed

// Check checks an edit that no request's rules have checked. It fails with
// fault.InvalidArguments.
func (e Edit) Check() error {
	members := map[string]any{}
	if e.Identification != nil {
		members["identification"] = *e.Identification
	}
	if e.Tags != nil || e.AddTags != nil || e.DropTags != nil {
		members["tags"] = append([]string{}, slices.Concat(e.Tags, e.AddTags)...)
	}
	if len(e.CustomData) > 0 {
		members["customData"] = e.CustomData
	}
	text, err := json.Marshal(members)
	if err != nil {
		return err
	}
	return checkEdit()(text)
}

// Apply changes the asset. It fails with fault.Unsupported for an archived asset, and with
// fault.InvalidArguments if there would be too many tags or too much custom data.
func (e Edit) Apply(a *Asset) error {
	if a.Archived {
		return fault.New(fault.Unsupported, "the asset is archived: restore it first")
	}
	if e.Identification != nil {
		a.Identification = *e.Identification
	}
	if e.Tags != nil {
		a.Tags = nil
	}
	a.Tags = slices.DeleteFunc(slices.Clone(a.Tags), func(tag string) bool { return slices.Contains(e.DropTags, tag) })
	for _, tag := range slices.Concat(e.Tags, e.AddTags) {
		if !slices.Contains(a.Tags, tag) {
			a.Tags = append(a.Tags, tag)
		}
	}
	custom := map[string]string{}
	maps.Copy(custom, a.CustomData)
	for key, value := range e.CustomData {
		if value == nil {
			delete(custom, key)
		} else {
			custom[key] = *value
		}
	}
	grown := bytesOf(custom) > bytesOf(a.CustomData)
	a.CustomData = custom
	switch {
	case len(a.Tags) > MaxTags && (e.Tags != nil || e.AddTags != nil):
		return fault.Invalid("the asset would have too many tags", fault.Field{Field: "tags", Message: "must have at most 50 entries"})
	case grown && bytesOf(custom) > MaxCustomData:
		return fault.Invalid("the asset would have too much custom data",
			fault.Field{Field: "customData", Message: "must be at most 16 KiB after merging"})
	}
	return nil
}

func bytesOf(custom map[string]string) (n int) {
	for key, value := range custom {
		n += len(key) + len(value)
	}
	return n
}

// Editor changes what people say of assets, archives assets and restores them.
type Editor interface {
	// EditAsset changes an asset of a company and records it. An edit that would change
	// nothing changes and records nothing. It fails as Edit.Apply does, and with
	// fault.NotFound for what is not the company's or beyond the policies.
	EditAsset(ctx context.Context, companyID, id string, e Edit) (Asset, error)
	// ArchiveAssets archives assets of a company that are not managed, or restores
	// archived ones, all or none: fault.Unsupported names the first that is not so, and
	// fault.NotFound means that one is not the company's. A device that enrolls as an archived asset, or a line of an import, restores it.
	ArchiveAssets(ctx context.Context, companyID string, ids []string, archive bool) error
}

// UndoFor is how long an edit can be undone.
const UndoFor = 10 * time.Minute

// Undoer takes back the last edit of an asset, if it was a person's. Each method fails as the database
// does, and with the faults that it names.
type Undoer interface {
	// LastEdit names an asset's last edit; empty: a person did not make it, or it is older
	// than a day.
	LastEdit(ctx context.Context, companyID, id string) (ref string, at time.Time, err error)
	// EditedBy returns the assets whose last edit has a name: that of a request, or a job.
	EditedBy(ctx context.Context, companyID, ref string) ([]string, error)
	// UndoEdit makes the asset what it was before the edit, if that was made within a
	// time. It fails with fault.Unsupported if it was changed since, and with
	// fault.NotFound as EditAsset does.
	UndoEdit(ctx context.Context, companyID, id, ref string, within time.Duration, policies []string) (Asset, error)
}

// Deleter ends assets for good.
type Deleter interface {
	// DeleteAssets deletes archived assets of a company with all that is known of them, all
	// or none, after exporter has all of it. It fails with fault.Unsupported, which names the
	// first that is not archived, with fault.NotFound for what is not the company's, with the
	// error of exporter, and with operation.ErrDoubt if they may be deleted all the same. The
	// activity log keeps its entries, and gets one more.
	DeleteAssets(ctx context.Context, companyID string, ids []string, exporter durable.RowExporter) error
	// ExportAsset exports what DeleteAssets would delete of one archived asset, and deletes
	// nothing. It fails with fault.NotFound and fault.Unsupported as DeleteAssets does.
	ExportAsset(ctx context.Context, companyID, id string, exporter durable.RowExporter) error
}

// ExportLine is the line of an export for a row: JSON with table and row, and a line feed.
func ExportLine(table string, row map[string]any) ([]byte, error) {
	line, err := json.Marshal(map[string]any{"table": table, "row": row})
	return append(line, '\n'), err
}

// edit of the arguments, for a principal.
func (a *EditArgs) edit(p access.Principal) Edit {
	custom, _ := a.custom() // the rules hold
	return Edit{Identification: a.Identification, Tags: a.Tags, CustomData: custom, Policies: p.Policies}
}

// Update answers PATCH /assets/{assetId}.
func (rd Reader) Update(ctx context.Context, call operation.Call, args EditArgs) (View, error) {
	a, err := Find(ctx, rd.Store, call.Principal, args.AssetID)
	if err != nil {
		return View{}, err
	}
	changed, err := rd.Editor.EditAsset(ctx, a.CompanyID, a.ID, args.edit(call.Principal))
	return changed.Public(), err
}

// ForeseeUpdate says what Update would do.
func (rd Reader) ForeseeUpdate(ctx context.Context, call operation.Call, args EditArgs) (operation.Forecast, error) {
	a, err := Find(ctx, rd.Store, call.Principal, args.AssetID)
	if err != nil {
		return operation.Forecast{}, err
	}
	after := a
	f := operation.Forecast{Devices: 1, Effects: []string{}}
	if err := args.edit(call.Principal).Apply(&after); err != nil {
		return f, err
	}
	for _, c := range Differences(a, after) {
		f.Effects = append(f.Effects, c.Sentence())
	}
	return f, nil
}

// Difference is one fact that people say of an asset, before and after a change.
type Difference struct{ Field, Before, After string }

// Sentence says what changes.
func (d Difference) Sentence() string {
	switch {
	case d.Before == "":
		return "The asset's " + d.Field + " becomes “" + d.After + "”."
	case d.After == "":
		return "The asset's " + d.Field + ", “" + d.Before + "”, is removed."
	}
	return "The asset's " + d.Field + " changes from “" + d.Before + "” to “" + d.After + "”."
}

// Differences are what people say otherwise of an asset than before, in the order name,
// tags, custom data by key.
func Differences(before, after Asset) []Difference {
	var all []Difference
	add := func(field, was, is string) {
		if was != is {
			all = append(all, Difference{field, was, is})
		}
	}
	add("identification", before.Identification, after.Identification)
	add("tags", strings.Join(before.Tags, ", "), strings.Join(after.Tags, ", "))
	both := map[string]string{}
	maps.Copy(both, before.CustomData)
	maps.Copy(both, after.CustomData)
	for _, key := range slices.Sorted(maps.Keys(both)) {
		add(key, before.CustomData[key], after.CustomData[key])
	}
	return all
}
