package job

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
)

// TagArgs are the arguments of the change of tags.
type TagArgs struct {
	asset.Target
	Add    []string `json:"add" rule:"maxitems=50 notblank maxchars=64 line visible" doc:"Tags to add." label:"Add tags" help:"One on a line"`
	Remove []string `json:"remove" rule:"maxitems=50 notblank maxchars=64 line" doc:"Tags to remove." label:"Remove tags" help:"One on a line"`
}

// Rules implements operation.Ruler.
func (a *TagArgs) Rules(r *operation.Rules) {
	r.Must("add", "must be given, or remove", len(a.Add)+len(a.Remove) > 0)
}

// Tags is the command of a job that changes tags.
const Tags = "tags"

// UndoArgs are the arguments of the operation that takes edits back.
type UndoArgs struct {
	asset.Target
	Ref string `json:"ref" rule:"required maxchars=200" doc:"The request id of the edit."`
}

// Undo is the command of a job that takes back what another did.
const Undo = "undo"

// undoWithin is how old an edit is at most that a job takes back: it may have been waiting.
const undoWithin = 24 * time.Hour

// Offer adds to a registry what jobs do beside commands.
func Offer(r *operation.Registry, editor asset.Editor, undoer asset.Undoer) {
	offer(r, Undo,
		operation.Operation{Name: "undo_edit", Title: "Undo edit", Description: "Makes an asset what it was before its last edit."},
		func(ctx context.Context, p access.Principal, id string, a UndoArgs) (asset.Asset, error) {
			return undoer.UndoEdit(ctx, p.CompanyID, id, a.Ref, undoWithin, p.Policies)
		})
	offer(r, Tags,
		operation.Operation{Name: "change_tags", Title: "Change tags", Description: "Adds tags to an asset and removes others."},
		func(ctx context.Context, p access.Principal, id string, a TagArgs) (asset.Asset, error) {
			return editor.EditAsset(ctx, p.CompanyID, id, asset.Edit{AddTags: a.Add, DropTags: a.Remove, Policies: p.Policies})
		})
}

// offer adds the operation of a command that changes what people say of an asset.
func offer[A interface{ Asset() string }](r *operation.Registry, command string, o operation.Operation,
	change func(ctx context.Context, p access.Principal, id string, a A) (asset.Asset, error)) {
	o.Method, o.Path = "POST", "/assets/{assetId}/"+command
	o.Needs, o.Gate = access.DevicesCommand|access.DevicesRead, access.DeviceCommands
	o.Budget, o.Effect = operation.AfterValidation, operation.Writing
	o.Faults = []fault.Code{fault.NotFound, fault.Unsupported}
	operation.Define(r, o, func(ctx context.Context, call operation.Call, a A) (asset.View, error) {
		id, ok := resource.Short(call.Principal.CompanySlug, resource.Assets, a.Asset())
		if !ok {
			return asset.View{}, fault.New(fault.NotFound, "no such asset")
		}
		changed, err := change(ctx, call.Principal, id, a)
		return changed.Public(), err
	})
}

// commandOf is how people call an operation of a job: the last part of its path.
func commandOf(o *operation.Operation) string { return o.Path[strings.LastIndexByte(o.Path, '/')+1:] }

func find(r *operation.Registry, command string) *operation.Operation {
	i := slices.IndexFunc(r.All(), func(o *operation.Operation) bool { return commandOf(o) == command })
	if i < 0 {
		return nil
	}
	return r.All()[i]
}

// names are the commands that people ask for: Undo is that of a button.
func names(r *operation.Registry) string {
	var all []string
	for _, o := range r.All() {
		if command := commandOf(o); command != Undo {
			all = append(all, command)
		}
	}
	return strings.Join(all, ", ")
}

// call are the arguments of one device's call.
func call(assetID string, arguments json.RawMessage) operation.Flat {
	members := map[string]json.RawMessage{}
	if json.Unmarshal(arguments, &members) != nil && len(arguments) > 0 {
		return operation.Flat(arguments) // refused as it is
	}
	members["assetId"], _ = json.Marshal(assetID) // a string
	text, _ := json.Marshal(members)              // texts that were read as JSON
	return operation.Flat(text)
}
