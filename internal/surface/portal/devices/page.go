package devices

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/a-h/templ"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// tabName is the last part of a tab's address.
type tabName string

const (
	overviewTab tabName = ""
	commandsTab tabName = "commands"
	locationTab tabName = "location"
	appsTab     tabName = "apps"
	logsTab     tabName = "logs"
	policyTab   tabName = "policy"
	activityTab tabName = "activity"
)

// device is what the page of one shows.
type device struct {
	asset.Asset
	Report  report
	Tab     tabName
	Choices []policy.Policy // to move it to
	More    bool            // there are more than these choices
	Wanted  int             // the present version of its policy; 0: not known, or not for the person to see
	Once    string
	Undo    string // the last edit, if it can be undone
	UndoAt  time.Time
	Desk    bool        // it is shown on the help desk, to which its forms lead back
	Again   string      // the operation whose dialog was posted, and is shown again
	Refused frame.Flash // why
	standing
}

func (d device) path(t tabName) string {
	return frame.Either(t == overviewTab, frame.DevicePath(d.ID), frame.DevicePath(d.ID)+"/"+string(t))
}

// address is that of the page as it is shown, with its query; where a form was posted, the tab's.
func (d device) address(v *frame.Visit) string {
	return frame.Either(d.Again == "", v.Request().URL.RequestURI(), d.path(d.Tab))
}

// tabs are the parts of the page. Only agents upload their logs.
func (d device) tabs() []frame.Tab {
	var all []frame.Tab
	for _, t := range []struct {
		tab  tabName
		name string
	}{{overviewTab, "Overview"}, {commandsTab, "Commands"}, {locationTab, "Location"}, {appsTab, "Apps"}, {policyTab, "Policy"},
		{activityTab, "Activity"}, {logsTab, "Logs"}} {
		if t.tab != logsTab || d.Tab == logsTab || d.Device != nil && d.Device.Management == asset.Agent {
			all = append(all, frame.Tab{Path: d.path(t.tab), Name: t.name, Current: d.Tab == t.tab})
		}
	}
	return all
}

// curl is the device's path in the API.
func (d device) curl() string { return "/assets/" + d.ID }

// name is what people call it.
func (d device) name() string {
	return cmp.Or(frame.Plain(d.Identification), "Unnamed device")
}

// tab serves one tab of a device's page, whole or its live parts.
func (s *Section) tab(t tabName) frame.Handler {
	return frame.On(s.find, func(v *frame.Visit, a asset.Asset) error {
		return s.show(v, http.StatusOK, device{Asset: a, Tab: t})
	})
}

// show reads what the page needs, and answers with it.
func (s *Section) show(v *frame.Visit, status int, d device) error {
	d.Report, d.Once = reportOf(d.Asset), frame.NewOnce()
	p, err := s.policyOf(v, d)
	if err != nil {
		return err
	}
	d.Wanted = p.Version
	if d.standing, err = s.stands(v, d.Asset); err != nil {
		return err
	}
	if d.Undo, d.UndoAt, err = s.undoable(v, d.ID); err != nil {
		return err
	}
	if v.Partial() && v.Query().Get("part") == "head" {
		return v.Fragment(head(v, s, d))
	}
	content, err := s.content(v, d, p)
	if err != nil {
		return err
	}
	if v.Partial() {
		return v.Fragment(body(v, d, content))
	}
	if d.Device != nil && v.May(account.ViewPolicies) {
		if d.Choices, d.More, err = s.choices(v, *d.Device); err != nil {
			return err
		}
	}
	return v.ShowStatus(status, d.name(), frame.DevicesPath, page(v, s, d, content))
}

// choices are the policies that the device could be moved to, and whether there are more.
func (s *Section) choices(v *frame.Visit, d asset.Device) ([]policy.Policy, bool, error) {
	all, more, err := s.policies(v, policy.Type(d.Management))
	return slices.DeleteFunc(all, func(p policy.Policy) bool { return p.ID == d.PolicyID }), more, err
}

// content reads what the tab needs.
func (s *Section) content(v *frame.Visit, d device, p policy.Policy) (templ.Component, error) {
	switch d.Tab {
	case commandsTab:
		l := frame.ParseList(frame.ListSpec{Path: d.path(commandsTab)}, v.Query())
		commands, total, err := frame.Paged(&l, func(page operation.PageRequest) ([]command.Command, int64, error) {
			return s.Commands.History(v.Context(), v.Company.ID, d.ID, page)
		})
		return commandsPart(v, d, l, commands, total), err
	case locationTab:
		t, err := s.trail(v, d)
		return locationPart(v, d, t), err
	case activityTab:
		entries, err := s.entries(v, d)
		return activityPart(v, d, entries), err
	case logsTab:
		return s.logs(v, d)
	case appsTab:
		i, err := s.apps(v, d)
		return appsPart(v, d, i), err
	case policyTab:
		settings, err := policy.View(p.Type, document(p))
		set := slices.DeleteFunc(settings, func(value policy.Value) bool { return value.Value == policy.NotSet })
		return policyPart(v, d, p, set), err
	default:
		recent, _, err := s.Commands.History(v.Context(), v.Company.ID, d.ID, operation.PageRequest{Size: 5})
		if err != nil {
			return nil, err
		}
		twins, err := s.twins(v, d.Asset)
		if err != nil {
			return nil, err
		}
		requests, err := s.asksFor(v, d.Asset)
		return overviewPart(v, d, p, recent, twins, requests), err
	}
}

// entries are what the record has of the device, if the person may see it.
func (s *Section) entries(v *frame.Visit, d device) ([]activity.Entry, error) {
	if !v.May(account.ViewActivity) {
		return nil, nil
	}
	return s.Activity.Activity(v.Context(), activity.Filter{CompanyID: v.Company.ID, AssetID: d.ID, Once: true},
		activity.Cursor{}, maxEntries)
}

// maxEntries is how much of the record a device's page shows.
const maxEntries = 100

func (s *Section) policyOf(v *frame.Visit, d device) (policy.Policy, error) {
	if d.Device == nil || d.Device.PolicyID == "" || !v.May(account.ViewPolicies) {
		return policy.Policy{}, nil
	}
	return s.Policies.Policy(v.Context(), v.Company.ID, d.Device.PolicyID)
}

func document(p policy.Policy) json.RawMessage {
	return frame.Either(p.Document == nil, json.RawMessage("{}"), p.Document)
}

// advice says what to do about a command whose outcome is unknown.
func advice(c command.Command) string {
	if c.State != command.Unconfirmed {
		return ""
	}
	return "Do not send it again yet: it is not known whether the device will carry it out. Look at the device, or wait for its " +
		"next report."
}

// quick serves what the drawer shows of a device.
func (s *Section) quick(v *frame.Visit, a asset.Asset) error {
	recent, _, err := s.Commands.History(v.Context(), a.CompanyID, a.ID, operation.PageRequest{Size: 5})
	if err != nil {
		return err
	}
	return v.Fragment(quick(v, device{Asset: a, Report: reportOf(a)}, recent))
}
