package policy

import (
	"context"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/operation"
)

// Summary is an entry of the policy list (contract 4.1).
type Summary struct {
	PathName    string               `json:"pathName" doc:"Path name of the policy; the policyId of every other operation."`
	DisplayName string               `json:"displayName" doc:"Name of the policy for people." example:"Warehouse"`
	Type        Type                 `json:"type" enum:"PLATFORM|AGENT" doc:"Whose devices it is for: PLATFORM or AGENT."`
	VROnly      bool                 `json:"vrOnly" doc:"Whether it is for VR headsets only, which enroll by USB."`
	Editable    bool                 `json:"editable" doc:"Whether changes can be proposed."`
	Version     int                  `json:"version" doc:"Grows by one with every saved change."`
	DeviceCount int                  `json:"deviceCount" doc:"Devices that use the policy."`
	UpdatedAt   *operation.Timestamp `json:"updatedAt" doc:"When it was last saved."`
}

// Summary returns the policy as the list shows it.
func (p Policy) Summary() Summary {
	return Summary{
		PathName: p.PathName(), DisplayName: p.Name, Type: p.Type, VROnly: p.VROnly, Editable: p.Editable(),
		Version: p.Version, DeviceCount: p.DeviceCount, UpdatedAt: operation.TimestampOf(p.UpdatedAt),
	}
}

// ListArgs are the arguments of list_policies.
type ListArgs struct {
	operation.PageRequest
	Sort string `query:"sort" rule:"enum=displayName,asc|displayName,desc|updatedAt,asc|updatedAt,desc|version,asc|version,desc default=displayName,asc" doc:"Field and direction."`
}

// Lister reads pages of policies.
type Lister interface {
	Policies(ctx context.Context, q Query) ([]Policy, int64, error)
}

// DefineList declares list_policies, GET /policies (contract 4.1).
func DefineList(r *operation.Registry, s Lister) {
	operation.Define(r, operation.Operation{
		Name: "list_policies", Title: "List policies", Method: "GET", Path: "/policies",
		Description: "Lists the company's policies, one page at a time, by name unless sorted otherwise, " +
			"with their type, version and number of devices. Use an entry's pathName as policyId in other operations.",
		Needs: access.PoliciesRead, Dialect: operation.Reads, Effect: operation.Reading,
	}, func(ctx context.Context, call operation.Call, args ListArgs) (operation.Page[Summary], error) {
		return list(ctx, s, call.Principal, args)
	})
}

func list(ctx context.Context, s Lister, p access.Principal, args ListArgs) (operation.Page[Summary], error) {
	field, descending := operation.SortOrder(args.Sort)
	policies, total, err := s.Policies(ctx, Query{
		CompanyID: p.CompanyID, IDs: p.Policies, Order: Order(field), Descending: descending,
		Offset: int(args.Offset()), Limit: args.Size,
	})
	return operation.PageOf(args.PageRequest, policies, total, Policy.Summary), err
}
