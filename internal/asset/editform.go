package asset

import (
	"context"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// FormArgs are the arguments of edit_asset.
type FormArgs struct {
	EditArgs
	AddTags  []string `json:"addTags" rule:"maxitems=50 notblank maxchars=64 line visible" doc:"Tags to add."`
	DropTags []string `json:"dropTags" doc:"Tags to remove."`
}

// Rules implements operation.Ruler.
func (a *FormArgs) Rules(r *operation.Rules) { a.checkCustom(r) }

// DefineForPeople declares edit_asset, which the portal alone has: its form says which tags were
// added and removed since it was shown.
func DefineForPeople(r *operation.Registry, editor Editor) {
	operation.Define(r, operation.Operation{
		Name: "edit_asset", Title: "Edit an asset", Description: "Changes what people say of one asset, and adds and removes tags.",
		Method: "POST", Path: "/assets/{assetId}/edit", Needs: access.DevicesCommand | access.DevicesRead, Gate: access.DeviceCommands,
		Budget: operation.AfterValidation, Effect: operation.Writing, Faults: []fault.Code{fault.NotFound, fault.Unsupported},
	}, func(ctx context.Context, call operation.Call, args FormArgs) (View, error) {
		e := args.edit(call.Principal)
		e.AddTags, e.DropTags = args.AddTags, args.DropTags
		changed, err := editor.EditAsset(ctx, call.Principal.CompanyID, args.AssetID, e)
		return changed.Public(), err
	})
}
