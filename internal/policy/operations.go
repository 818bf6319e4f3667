package policy

import (
	"context"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/slice"
)

// Target names one policy; embed it in the arguments of what concerns one.
type Target struct {
	PolicyID string `path:"policyId" rule:"required" doc:"The policy's pathName from list_policies, or its short id."`
}

// Settings is a policy seen through the catalog (contract 2.4).
type Settings struct {
	PolicyID    string  `json:"policyId" doc:"Path name of the policy."`
	DisplayName string  `json:"displayName" doc:"Name of the policy for people." example:"Warehouse"`
	Version     int     `json:"version" doc:"Grows by one with every saved change."`
	DeviceCount int     `json:"deviceCount" doc:"Devices that use the policy."`
	Editable    bool    `json:"editable" doc:"Whether changes can be proposed."`
	Settings    []Value `json:"settings" doc:"Every setting with its value and the values that it may be given."`
}

// SavedBy is who saved a revision, as the contract's revision record names it.
type SavedBy struct {
	Kind string `json:"kind" enum:"USER|API_KEY|CONNECTION|SYSTEM" doc:"USER, API_KEY, CONNECTION or SYSTEM."`
	ID   string `json:"id" doc:"Id of the user, key or connection." example:"3f8k1m6p0r5t9w2y7a4c8e1g5j"`
	Name string `json:"name" doc:"Its name for people." example:"Ada Admin"`
}

// RevisionRecord is a revision as the list shows it (contract 2.5).
type RevisionRecord struct {
	Revision    int                  `json:"revision" doc:"Number of the revision; rollback_policy takes it."`
	Version     int                  `json:"version" doc:"The policy's version that was saved."`
	SavedAt     *operation.Timestamp `json:"savedAt" doc:"When it was saved."`
	SavedBy     SavedBy              `json:"savedBy" doc:"Who saved it."`
	DisplayName string               `json:"displayName" doc:"The policy's name at that time." example:"Warehouse"`
	Origin      Origin               `json:"origin" enum:"PORTAL|PROPOSAL|ROLLBACK|CREATE" doc:"How it came about: PORTAL, PROPOSAL, ROLLBACK or CREATE."`
	ProposalID  string               `json:"proposalId,omitempty" doc:"The proposal that was applied, if one was."`
}

// Revisions is a policy's history.
type Revisions struct {
	PolicyID  string           `json:"policyId" doc:"Path name of the policy."`
	Revisions []RevisionRecord `json:"revisions" doc:"Saved revisions, newest first."`
}

// RevisionsArgs are the arguments of list_policy_revisions.
type RevisionsArgs struct {
	Target
	Limit int `query:"limit" rule:"min=1 max=100 default=20" doc:"How many revisions to return, 1 to 100."`
}

// Define declares get_policy_settings and list_policy_revisions (contract 4.3).
func Define(r *operation.Registry, s Store) {
	service := Service{Store: s}
	operation.Define(r, readOne("get_policy_settings", "Read policy settings", "/policies/{policyId}/settings",
		"Reads the settings of one policy: value, allowed values and whether a change has high impact. "+
			"NOT_SET means left to the device or vendor default, CUSTOM a value that the allowed values cannot express. "+
			"Settings of a policy with editable false are shown but cannot be changed by proposals."), service.settings)
	operation.Define(r, readOne("list_policy_revisions", "List policy revisions", "/policies/{policyId}/revisions",
		"Lists the saved revisions of one policy, newest first, with when, how and by whom each was saved. "+
			"Use a revision's number with rollback_policy to propose returning to it."), service.revisions)
}

func readOne(tool, title, path, description string) operation.Operation {
	return operation.Operation{
		Name: tool, Title: title, Description: description, Method: "GET", Path: path,
		Needs: access.PoliciesRead, Dialect: operation.Policies, Effect: operation.Reading,
		Faults: []fault.Code{fault.NotFound},
	}
}

func (s Service) settings(ctx context.Context, call operation.Call, args Target) (Settings, error) {
	p, err := Find(ctx, s.Store, call.Principal, args.PolicyID)
	if err != nil {
		return Settings{}, err
	}
	values, err := View(p.Type, p.Document)
	if err != nil {
		return Settings{}, err
	}
	return Settings{PolicyID: p.PathName(), DisplayName: p.Name, Version: p.Version,
		DeviceCount: p.DeviceCount, Editable: p.Editable(), Settings: values}, nil
}

func (s Service) revisions(ctx context.Context, call operation.Call, args RevisionsArgs) (Revisions, error) {
	p, err := Find(ctx, s.Store, call.Principal, args.PolicyID)
	if err != nil {
		return Revisions{}, err
	}
	saved, err := s.Store.Revisions(ctx, p.CompanyID, p.ID, args.Limit)
	if err != nil {
		return Revisions{}, err
	}
	return Revisions{PolicyID: p.PathName(), Revisions: slice.Map(saved, Revision.Record)}, nil
}

// Record returns the revision as the list shows it.
func (r Revision) Record() RevisionRecord {
	return RevisionRecord{Revision: r.Revision, Version: r.Version, SavedAt: operation.TimestampOf(r.SavedAt),
		SavedBy: SavedBy(r.SavedBy), DisplayName: r.Name, Origin: r.Origin, ProposalID: r.ProposalID}
}

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

// Lister reads pages of policies, without their documents. It fails as the database does.
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
		Faults: []fault.Code{fault.Unavailable},
	}, func(ctx context.Context, call operation.Call, args ListArgs) (operation.Page[Summary], error) {
		field, descending := operation.SortOrder(args.Sort)
		policies, total, err := s.Policies(ctx, Query{
			CompanyID: call.Principal.CompanyID, IDs: call.Principal.Policies, Order: Order(field), Descending: descending,
			Offset: int(args.Offset()), Limit: args.Size,
		})
		return operation.PageOf(args.PageRequest, policies, total, Policy.Summary), err
	})
}
