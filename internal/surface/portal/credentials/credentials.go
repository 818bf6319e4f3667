// Package credentials is the portal's page of AI access and keys: the company's
// settings for AI agents, API keys with their creation rules, and the
// connections of AI clients (contract 5.2 to 5.5).
package credentials

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/apikey"
	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/oauth"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// Usage reports what callers did and what is left of their budgets. Each method fails as the database
// does.
type Usage interface {
	// ActivityOfActors counts what callers of a kind did, by their ids, in intervals of a
	// width.
	ActivityOfActors(ctx context.Context, companyID string, kind access.Kind, since time.Time,
		width time.Duration) (map[string][]activity.Bucket, error)
	// BudgetUsed returns what keys of budgets have spent of their present window; none is left
	// out.
	BudgetUsed(ctx context.Context, keys []string, window time.Duration, now time.Time) (map[string]int, error)
}

// Section serves AI access and keys.
type Section struct {
	Keys        apikey.Keys
	Connections oauth.Connections
	Companies   company.Store
	Usage       Usage
	Steps       account.PendingStore
	Log         *slog.Logger
}

// Routes are the section's addresses.
func (s *Section) Routes() []frame.Route {
	return []frame.Route{
		{Pattern: "GET " + frame.AccessPath, Serve: s.show},
		{Pattern: "POST " + frame.AccessPath + "/gates", Needs: account.ManageCompany,
			Proof: frame.Proof{Next: frame.AccessPath, Then: "turn it on", If: opens}, Serve: s.switchGate},
		{Pattern: "GET " + newKeyPath, Needs: account.ManageKeys, Serve: s.newKey},
		{Pattern: "POST " + keysPath, Needs: account.ManageKeys, Proof: frame.Proof{Next: newKeyPath, Then: "make the key", If: writes},
			Serve: s.createKey},
		{Pattern: "GET " + ComputerPath, Needs: account.ManageKeys, Serve: s.askComputer},
		{Pattern: "POST " + ComputerPath, Needs: account.ManageKeys,
			Proof: frame.Proof{Next: ComputerPath + "?redirect={redirect}&state={state}&challenge={challenge}&name={name}",
				Then: "allow this computer"}, Serve: s.allowComputer},
		{Pattern: "POST " + keysPath + "/{key}/revoke", Needs: account.ManageKeys, Serve: s.revokeKey},
		{Pattern: "POST " + connectionsPath + "/{connection}/scopes",
			Proof: frame.Proof{Next: frame.AccessPath, Then: "allow more", If: s.widens}, Serve: s.setScopes},
		{Pattern: "POST " + connectionsPath + "/{connection}/freeze", Needs: account.ManageKeys,
			Proof: frame.Proof{Next: frame.AccessPath, Then: "thaw it", If: thaws}, Serve: s.freeze},
		{Pattern: "POST " + connectionsPath + "/{connection}/revoke", Serve: s.revokeConnection},
	}
}

const (
	keysPath        = frame.AccessPath + "/keys"
	newKeyPath      = keysPath + "/new"
	connectionsPath = frame.AccessPath + "/connections"
)

// view is what the page shows. A part that failed is nil with its flag set.
type view struct {
	Gates            []gate
	Keys             []keyRow
	KeysFail         bool
	Ended            int // keys that were revoked or have expired, not shown
	All              bool
	Gone             int // connections that were revoked, not shown
	Connections      []connectionRow
	ConnectionsFail  bool
	MayKeys, MayGate bool
}

func (s *Section) show(v *frame.Visit) error {
	page := view{MayKeys: v.May(account.ManageKeys), MayGate: v.May(account.ManageCompany), All: v.Query().Get("ended") == "shown"}
	switches, err := s.Companies.Switches(v.Context(), v.Company.ID)
	if err != nil {
		return err
	}
	page.Gates = gates(v.Company.Settings, switches)
	people, err := s.names(v)
	if err != nil {
		return err
	}
	if page.MayKeys {
		page.KeysFail = s.listKeys(v, &page, people) != nil
	}
	page.ConnectionsFail = s.listConnections(v, &page, people) != nil
	return v.Show("AI access & keys", frame.AccessPath, overview(v, page))
}

// names are the company's people by id.
func (s *Section) names(v *frame.Visit) (map[string]account.User, error) {
	users, err := s.Connections.Users.Users(v.Context(), v.Company.ID)
	people := map[string]account.User{}
	for _, u := range users {
		people[u.ID] = u
	}
	return people, err
}

// gate is one of the company's settings for AI agents.
type gate struct {
	Gate       access.Gate
	Now        string // what the limits and approvals of the company make of it
	On         bool
	Danger     bool
	Missing    string // why it cannot be switched on now
	SwitchedAt time.Time
	SwitchedBy string
}

func gates(s access.Settings, switches []company.Switch) (all []gate) {
	now := map[access.Gate]string{access.DestructiveCommands: destructiveNow(s.Controls),
		access.PolicyChanges: policyNow(s.Controls.ApplyApproval)}
	for _, one := range access.Gates() {
		g := gate{Gate: one, Now: now[one], On: s.On(one), Danger: one == access.DestructiveCommands}
		if g.Danger && !s.DeviceCommands {
			g.Missing = "Turn on device commands first."
		}
		for _, w := range switches {
			if w.Gate == one {
				g.SwitchedAt, g.SwitchedBy = w.At, w.By.Name
			}
		}
		all = append(all, g)
	}
	return all
}

// destructiveNow is what a destructive command takes now.
func destructiveNow(c access.Controls) string {
	return frame.Either(c.DestructiveApproval, "A person must authorize each command first.", "No person is asked.")
}

// policyNow is what an apply takes now.
func policyNow(rule access.ApprovalRule) string {
	switch rule {
	case access.ApproveAll:
		return "A person must approve each change first."
	case access.ApproveRisky:
		return "A person must approve risky changes first."
	default:
		return "No person is asked."
	}
}

// opens reports whether a setting is turned on.
func opens(v *frame.Visit) (bool, error) { return v.Form.Get("on") == "true", nil }

// switchGate turns one setting on or off.
func (s *Section) switchGate(v *frame.Visit) error {
	on, gate := v.Form.Get("on") == "true", access.Gate(v.Form.Get("gate"))
	if !slices.Contains(access.Gates(), gate) {
		return fault.Invalid("there is no such setting")
	}
	_, err := s.Companies.UpdateCompany(v.Context(), v.Company.ID,
		company.Change(func(c *company.Company) { c.Settings.Switch(gate, on) }))
	return v.Finish(frame.AccessPath, err, gate.Title()+": "+access.OnOff(on)+".", fault.InvalidArguments)
}

func turn(g gate) string { return frame.Either(g.On, "Turn off", "Turn on") }

func variant(g gate) string { return frame.Either(g.Danger && !g.On, "destructive", "outline") }

// barHeight is a bar's of the sparkline, of 18.
func barHeight(n int64, all []int64) int64 {
	if n == 0 {
		return 1
	}
	return max(2, n*18/max(1, slices.Max(all)))
}

func opacity(n int64) string { return frame.Either(n == 0, "0.25", "0.9") }
