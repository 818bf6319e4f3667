// Package devices is the list of devices, the page of one, and what people do
// to them. Commands go through the registry's operations, one device each; what is done to
// several is a job.
package devices

import (
	"context"
	"sync"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/job"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// Identity says which device an asset is. Each method fails as the database does, and with the faults
// that it names.
type Identity interface {
	// SameSerial returns other assets that claim the asset's serial number.
	SameSerial(ctx context.Context, companyID, id string) ([]string, error)
	// MergeAssets makes the device of the other asset that of the kept one. It fails with
	// fault.NotFound for what is not the company's, and with fault.Refused, which says why the two
	// cannot be merged. If the kept asset has a managed device, by decides whether that may leave:
	// its Refusal, or fault.RateLimited above the limit of destructive commands.
	MergeAssets(ctx context.Context, companyID, keptID, otherID string, by *access.Replacement) error
}

// Section serves the list and the pages of devices.
type Section struct {
	Assets   asset.Overview
	Commands command.Store // with who sent them (contract 1.6)
	Open     command.Overview
	Policies policy.Store
	Logs     agentdevice.LogStore
	Activity activity.Store
	Views    asset.Views
	Identity Identity
	Jobs     job.Service
	Undo     asset.Undoer
	Editor   asset.Editor
	Deleter  asset.Deleter
	// Requests are of devices that lost their key and ask to be enrolled again.
	Requests agentdevice.RequestStore
	// EnrollAgain makes a code with which a device enrolls as one asset.
	EnrollAgain func(ctx context.Context, companyID, assetID string,
		by *access.Replacement) (payload []byte, t agentdevice.Token, err error)
	// Companions says whether the service can push to companions on platform
	// devices.
	Companions bool

	importing sync.Mutex // held while a file is read and imported: it takes much memory
}

// Routes are the section's addresses.
func (s *Section) Routes() []frame.Route {
	see, do := account.ViewDevices, account.ViewDevices|account.CommandDevices
	proof := frame.Proof{Next: "/devices/{id}", Then: "choose the command again", If: destroys}
	again := frame.Proof{Next: "/devices/{id}/enroll", Then: "make the code"}
	deciding := frame.Proof{Next: "/devices/{id}/asks", Then: "decide"}
	merging := frame.Proof{Next: "/devices/{id}/merge?other={other}", Then: "compare the assets"}
	deleting := frame.Proof{Next: "/devices/{id}/delete", Then: "delete the asset"}
	return []frame.Route{
		{Pattern: "GET /devices", Needs: see, Serve: s.list},
		{Pattern: "GET /devices/export.csv", Needs: see, Serve: s.export},
		{Pattern: "GET " + frame.ImportPath, Needs: frame.ImportDevices, Serve: s.importPage},
		{Pattern: "POST " + frame.ImportPath, Needs: frame.ImportDevices, Upload: s.receive, Serve: s.importFile},
		{Pattern: "POST /views", Needs: see, Serve: s.saveView},
		{Pattern: "POST /views/{id}/drop", Needs: see, Serve: s.dropView},
		{Pattern: "GET " + frame.OpenCommandsPath, Needs: see, Serve: s.late},
		{Pattern: "GET /bulk", Needs: do, Serve: s.plan},
		{Pattern: "GET " + frame.JobsPath, Needs: see, Serve: s.jobs},
		{Pattern: "POST " + frame.JobsPath, Needs: do, Serve: s.createJob},
		{Pattern: "GET " + frame.JobsPath + "/{id}", Needs: see, Query: map[string][]string{"result": job.Results(), "from": nil},
			Serve: frame.On(s.jobOf, s.job)},
		{Pattern: "POST " + frame.JobsPath + "/{id}/{step}", Needs: do, Serve: frame.On(s.jobOf, s.moveJob)},
		{Pattern: "GET " + frame.HelpDeskPath, Needs: see, Serve: s.helpDesk},
		{Pattern: "GET /devices/{id}", Needs: see, Serve: s.tab(overviewTab)},
		{Pattern: "GET /devices/{id}/commands", Needs: see, Serve: s.tab(commandsTab)},
		{Pattern: "GET /devices/{id}/location", Needs: see, Query: map[string][]string{"at": nil}, Serve: s.tab(locationTab)},
		{Pattern: "GET /devices/{id}/apps", Needs: see, Serve: s.tab(appsTab)},
		{Pattern: "GET /devices/{id}/logs", Needs: see, Serve: s.tab(logsTab)},
		{Pattern: "GET /devices/{id}/logs/{log}", Needs: see, Serve: frame.On(s.find, s.logFile)},
		{Pattern: "GET /devices/{id}/policy", Needs: see, Serve: s.tab(policyTab)},
		{Pattern: "GET /devices/{id}/activity", Needs: see, Serve: s.tab(activityTab)},
		{Pattern: "GET /devices/{id}/quick", Needs: see, Serve: frame.On(s.find, s.quick)},
		{Pattern: "POST /devices/{id}/edit", Needs: do, Serve: frame.On(s.find, s.edit)},
		{Pattern: "POST /devices/{id}/archive", Needs: do, Serve: s.archive(true, "Archived: no list shows it until it is restored.")},
		{Pattern: "POST /devices/{id}/restore", Needs: do, Serve: s.archive(false, "Restored.")},
		{Pattern: "GET /devices/{id}/delete", Needs: deletes, Proof: deleting, Serve: frame.On(s.find, s.askDelete)},
		{Pattern: "POST /devices/{id}/delete", Needs: deletes, Proof: deleting, Serve: frame.On(s.find, s.delete)},
		{Pattern: "GET /devices/{id}/history", Needs: deletes, Serve: frame.On(s.find, s.historyFile)},
		{Pattern: "POST /devices/{id}/undo", Needs: do, Serve: frame.On(s.find, s.undo)},
		{Pattern: "POST " + frame.JobsPath + "/{id}/undo", Needs: do, Serve: frame.On(s.jobOf, s.undoJob)},
		{Pattern: "POST /devices/{id}/commands/{operation}", Needs: see, Proof: proof, Serve: s.command},
		{Pattern: "GET /devices/{id}/enroll", Needs: see | account.ProvisionDevices, Proof: again,
			Serve: frame.On(s.find, s.askEnrollAgain)},
		{Pattern: "POST /devices/{id}/enroll", Needs: see | account.ProvisionDevices, Proof: again, Serve: frame.On(s.find, s.enrollAgain)},
		{Pattern: "GET " + frame.LostDevicesPath, Needs: see | account.ProvisionDevices, Serve: s.lostDevices},
		{Pattern: "GET /devices/{id}/asks", Needs: see | account.ProvisionDevices, Proof: deciding, Serve: frame.On(s.find, s.askLost)},
		{Pattern: "POST /devices/{id}/asks/{request}/confirm", Needs: see | account.ProvisionDevices, Proof: deciding,
			Serve: s.decide("Confirmed. The device becomes this asset when it asks the next time, within a few minutes.", s.confirmLost)},
		{Pattern: "POST /devices/{id}/asks/{request}/decline", Needs: see | account.ProvisionDevices,
			Serve: s.decide("Declined. The device needs another code.", s.declineLost)},
		{Pattern: "GET /devices/{id}/merge", Needs: do | account.ProvisionDevices, Proof: merging, Serve: frame.On(s.find, s.compare)},
		{Pattern: "POST /devices/{id}/merge", Needs: do | account.ProvisionDevices, Proof: merging,
			Serve: frame.On(s.find, s.merge)},
		{Pattern: "GET " + frame.SearchPath, Serve: s.search},
	}
}

// find is the device of the address, if the person may see it.
func (s *Section) find(v *frame.Visit) (asset.Asset, error) {
	return asset.Find(v.Context(), s.Assets, v.Principal, v.PathValue("id"))
}

// maxPolicies is how many policies of a type a choice offers.
const maxPolicies = 1000

// policies are those of a type, or of both if it is empty, that the person may see, by name, and whether there are more.
func (s *Section) policies(v *frame.Visit, of policy.Type) ([]policy.Policy, bool, error) {
	all, total, err := s.Policies.Policies(v.Context(), policy.Query{CompanyID: v.Company.ID, IDs: v.Principal.Policies, Type: of,
		Order: policy.ByName, Limit: maxPolicies})
	return all, total > maxPolicies, err
}
