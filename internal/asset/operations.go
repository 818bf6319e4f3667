package asset

import (
	"context"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/resource"
)

// ListArgs are the arguments of list_assets.
type ListArgs struct {
	FilterArgs
	operation.PageRequest
	Sort string `query:"sort" rule:"enum=syncedAt,asc|syncedAt,desc|identification,asc|identification,desc|status,asc|status,desc|createdAt,asc|createdAt,desc|lastSeenAt,asc|lastSeenAt,desc default=syncedAt,desc" doc:"Field and direction. With lastSeenAt, assets without a managed device come last in both directions. To read the whole inventory page by page, sort by createdAt,asc: it never changes, and what is added while you read comes last."`
	View string `query:"view" rule:"enum=FULL|BASIC default=FULL" doc:"FULL: whole assets. BASIC: their main facts, much shorter."`
}

// Target names one asset; embed it in the arguments of what acts on one.
type Target struct {
	AssetID string `path:"assetId" doc:"The asset's pathName from list_assets, or its short id."`
}

// Count is the result of count_assets.
type Count struct {
	Count int64 `json:"count" doc:"How many assets match the filters."`
}

// Reader answers the asset reads. Companions: messages reach devices of the platform.
type Reader struct {
	Store      Store
	Editor     Editor
	Companions bool
}

// Define declares the asset operations (contract 4.1).
func Define(r *operation.Registry, reader Reader) {
	operation.Define(r, read("list_assets", "List assets", "/assets",
		"Lists the company's assets, one page at a time, most recently synchronized first unless sorted otherwise. "+
			"All filters that are given must match; those about a device find only managed devices that reported what is asked for. "+
			"Each entry holds the asset's hardware specifications, its custom data and, when it is enrolled, its managed device; "+
			"with view=BASIC only the main facts. Use an entry's pathName as assetId in other operations."), reader.List)
	operation.Define(r, read("count_assets", "Count assets", "/assets/count",
		"Counts the company's assets that match the filters, which are those of list_assets."), reader.Count)
	one := read("get_asset", "Read an asset", "/assets/{assetId}",
		"Reads one asset with its specifications, custom data and managed device. "+
			"The latest status report and location of the device are part of it, also those that a status-report or location-update command has asked for.")
	one.Ahead = operation.AheadToShow
	one.Faults = []fault.Code{fault.NotFound, fault.Unavailable}
	operation.Define(r, one, reader.Get)
	operation.DefineExplained(r, operation.Operation{
		Name: "update_asset", Title: "Change an asset", Method: "PATCH", Path: "/assets/{assetId}",
		Description: "Changes what people say of one asset: its name, its tags and its custom data, such as the user to whom the device is assigned. " +
			"Nothing is sent to the device. What is not given stays as it is; tags replace all tags that the asset has. It can be undone by another change.",
		Needs: access.DevicesCommand | access.DevicesRead, Gate: access.DeviceCommands, Budget: operation.AfterValidation,
		Dialect: operation.Commands, Effect: operation.Writing, Disruptive: true,
		Faults: []fault.Code{fault.NotFound, fault.Unsupported, fault.Unavailable},
	}, reader.Update, reader.ForeseeUpdate)
}

func read(tool, title, path, description string) operation.Operation {
	return operation.Operation{
		Name: tool, Title: title, Description: description, Method: "GET", Path: path,
		Needs: access.DevicesRead, Dialect: operation.Reads, Effect: operation.Reading,
		Faults: []fault.Code{fault.Unavailable},
	}
}

// List answers GET /assets.
func (rd Reader) List(ctx context.Context, call operation.Call, args ListArgs) (operation.Page[Listed], error) {
	page := operation.Page[Listed]{Content: []Listed{}, Request: args.PageRequest}
	filter, findable := args.Filter(call.Principal, rd.Companions)
	if !findable {
		return page, nil
	}
	field, descending := operation.SortOrder(args.Sort)
	assets, total, err := rd.Store.Assets(ctx, Query{Filter: filter, Page: args.PageRequest, Order: Order(field), Descending: descending})
	if err != nil {
		return page, err
	}
	for _, a := range assets {
		page.Content = append(page.Content, Listed{asset: a, basic: args.View == "BASIC"})
	}
	page.Total = total
	return page, nil
}

// Count answers GET /assets/count.
func (rd Reader) Count(ctx context.Context, call operation.Call, args FilterArgs) (Count, error) {
	filter, findable := args.Filter(call.Principal, rd.Companions)
	if !findable {
		return Count{}, nil
	}
	n, err := rd.Store.CountAssets(ctx, filter)
	return Count{Count: n}, err
}

// Get answers GET /assets/{assetId}.
func (rd Reader) Get(ctx context.Context, call operation.Call, args Target) (View, error) {
	a, err := Find(ctx, rd.Store, call.Principal, args.AssetID)
	if err != nil {
		return View{}, err
	}
	return a.Public(), nil
}

// Finder reads one asset of a company.
type Finder interface {
	Asset(ctx context.Context, companyID, id string) (Asset, error)
}

// Find returns the asset that ref names for the principal: fault.NotFound for
// anything that is not an asset of its company, or is beyond its limits.
func Find(ctx context.Context, s Finder, p access.Principal, ref string) (Asset, error) {
	missing := fault.New(fault.NotFound, "there is no asset with this id in your company: take the pathName from the asset list")
	id, ok := resource.Short(p.CompanySlug, resource.Assets, ref)
	if !ok {
		return Asset{}, missing
	}
	a, err := s.Asset(ctx, p.CompanyID, id)
	if fault.CodeOf(err) == fault.NotFound {
		return Asset{}, missing
	}
	if err != nil {
		return Asset{}, err
	}
	if p.Policies != nil && (a.Device == nil || !p.MaySee(a.Device.PolicyID)) {
		return Asset{}, missing
	}
	return a, nil
}

// Asset is the reference as the caller gave it.
func (t Target) Asset() string { return t.AssetID }
