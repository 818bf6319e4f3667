package command_test

import (
	"regexp"
	"testing"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/command"
)

const anID = "0123456789abcdefghjkmnpqrs"

func TestSentence(t *testing.T) {
	t.Parallel()
	device := activity.Target{Kind: activity.Asset, ID: anID, Name: "Pixel 8 ORJ9"}
	policy := activity.Target{Kind: activity.Policy, ID: anID, Name: "Office"}
	user := activity.Target{Kind: activity.User, ID: anID, Name: "bea@acme.test"}
	wipe := []activity.Change{{Field: "command", After: "WIPE_COMPANY_DATA"}, {Field: "caller", After: "Helpdesk bot"}}
	camera := []activity.Change{{Field: "Camera", Before: "NOT_SET", After: "ALLOW"}}
	for want, e := range map[string]activity.Entry{
		"authorized a wipe of Pixel 8 ORJ9 for Helpdesk bot": {Action: activity.AuthorizationApproved,
			Target: device, Changes: wipe},
		"tried to authorize a wipe of Pixel 8 ORJ9 for Helpdesk bot": {Action: activity.AuthorizationApproved,
			Outcome: activity.Refused, Target: device, Changes: wipe},
		"declined a wipe of Pixel 8 ORJ9 for Helpdesk bot": {Action: activity.AuthorizationDeclined,
			Target: device, Changes: wipe},
		"asked a person to authorize a wipe of Pixel 8 ORJ9": {Action: activity.AuthorizationAsked,
			Target: device, Changes: wipe},
		"found no longer valid: the authorization of a wipe of Pixel 8 ORJ9 for Helpdesk bot": {Action: activity.AuthorizationVoid,
			Outcome: activity.Refused, Target: device, Changes: wipe},
		"asked a person to authorize a command to a device": {Action: activity.AuthorizationAsked,
			Target: activity.Target{Kind: activity.Asset, ID: anID}},
		"wiped Pixel 8 ORJ9": {Action: "command.wipe_company_data", Outcome: activity.OK,
			State: "SUCCESS", Target: device},
		"asked to wipe Pixel 8 ORJ9": {Action: "command.wipe_company_data", Outcome: activity.OK,
			State: "SENT", Target: device},
		"may have wiped Pixel 8 ORJ9": {Action: "command.wipe_company_data",
			Outcome: activity.Unconfirmed, Target: device},
		"tried to wipe Pixel 8 ORJ9": {Action: "command.wipe_company_data",
			Outcome: activity.Failed, Target: device},
		"proposed the change of Camera of Office from Not set to Allow": {Action: activity.ProposalMade,
			Target: policy, Changes: camera},
		"approved the change of Camera of Office from Not set to Allow": {Action: activity.ProposalApproved,
			Target: policy, Changes: camera},
		"applied the change of Name of Office from HQ_BERLIN to 日本支店": {Action: activity.ProposalApplied, Outcome: activity.OK,
			Target: policy, Changes: []activity.Change{{Field: "Name", Before: "HQ_BERLIN", After: "日本支店"}}},
		"approved the change of Account of Office from 日本支店 to Ada": {Action: activity.ProposalApproved,
			Target: policy, Changes: []activity.Change{{Field: "Account", Before: "日本支店", After: "Ada"}}},
		"declined a change of Office": {Action: activity.ProposalDeclined, Target: policy},
		"tried to apply the change of Camera of Office from Not set to Allow": {Action: activity.ProposalApplied, Outcome: activity.Failed,
			Target: policy, Changes: append(camera, activity.Change{Field: "outcome", After: "failed"})},
		"found no longer valid: the approval of the change of Camera of Office from Not set to Allow": {Action: activity.ApprovalVoid,
			Outcome: activity.Refused, Target: policy, Changes: camera},
		"changed the role of bea@acme.test from viewer to admin and gave bea@acme.test more rights": {Action: activity.UserChanged,
			Target: user,
			Changes: []activity.Change{{Field: "role", Before: "viewer", After: "admin"},
				{Field: "rights", Before: "DEVICES_READ", After: "DEVICES_READ MANAGE_USERS"}}},
		"disabled the user bea@acme.test": {Action: activity.UserChanged, Target: user,
			Changes: []activity.Change{{Field: "disabled", Before: "off", After: "on"}}},
		"tried to sign in as bea@acme.test": {Action: activity.SignInRefused, Outcome: activity.Refused, Target: user},
		"renamed Phone to Reception and tagged Pixel 8 ORJ9 with a, b": {Action: activity.AssetChanged, Target: device,
			Changes: []activity.Change{{Field: "identification", Before: "Phone", After: "Reception"}, {Field: "tags", After: "a, b"},
				{Field: "room", After: "1"}}},
		"assigned Pixel 8 ORJ9 to Ada": {Action: activity.AssetChanged, Target: device,
			Changes: []activity.Change{{Field: "user", After: "Ada"}, {Field: "userEmail", After: "a@b.example"}}},
		"took Pixel 8 ORJ9 from Ada": {Action: activity.AssetChanged, Target: device,
			Changes: []activity.Change{{Field: "user", Before: "Ada"}}},
		"changed what is noted of Pixel 8 ORJ9": {Action: activity.AssetChanged, Target: device,
			Changes: []activity.Change{{Field: "room", Before: "1"}}},
		"imported 38 assets": {Action: activity.AssetsImported,
			Changes: []activity.Change{{Field: "assets", After: "38"}}},
		"imported 1 asset and changed 5": {Action: activity.AssetsImported,
			Changes: []activity.Change{{Field: "assets", After: "1"}, {Field: "changed", After: "5"}}},
		"enrolled Pixel 8 ORJ9": {Action: activity.AssetEnrolled, Target: device,
			Changes: []activity.Change{{Field: "policyId", After: anID}}},
		"canceled the request to turn authorization of destructive commands off": {Action: activity.LooseningCanceled,
			Target:  activity.Target{Kind: activity.Company, ID: anID},
			Changes: []activity.Change{{Field: string(access.DestructiveApprovalControl), Before: "ON", After: "OFF"}}},
		"confirmed the request to turn authorization of destructive commands off": {Action: activity.LooseningConfirmed,
			Changes: []activity.Change{{Field: string(access.DestructiveApprovalControl), Before: "ON", After: "OFF"}}},
		"turned authorization of destructive commands off, as requested": {Action: activity.LooseningApplied,
			Changes: []activity.Change{{Field: string(access.DestructiveApprovalControl), Before: "ON", After: "OFF"}}},
	} {
		got := command.Sentence(e)
		if got.String() != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		if regexp.MustCompile(`[0-9a-z]{26}`).MatchString(got.String() + got.Who.Name) {
			t.Errorf("an id is in %q", got)
		}
		if loosens := e.Action == activity.LooseningConfirmed || e.Action == activity.LooseningApplied; got.Loosens != loosens {
			t.Errorf("%q loosens: %t", want, got.Loosens)
		}
	}
}

// An actor is named; a key's beginning follows, as keys may have one name.
func TestSentence_Who(t *testing.T) {
	t.Parallel()
	for want, a := range map[activity.Actor]access.Actor{
		{Name: "Helpdesk bot", Prefix: "N07UvIdx"}: {Kind: access.APIKey, ID: anID, Name: "Helpdesk bot", Prefix: "N07UvIdx"},
		{Name: "Claude (AI)"}:                      {Kind: access.Connection, ID: anID, Name: "Claude\u202e"},
		{Name: "A user"}:                           {Kind: access.User, ID: anID},
		{Name: "Muster"}:                           {},
	} {
		if got := command.Sentence(activity.Entry{Actor: a}).Who; got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// Each command that a person may have to authorize has a noun.
func TestSentence_Nouns(t *testing.T) {
	t.Parallel()
	for _, typ := range command.Types() {
		row := typ.Row()
		if (row.Destructive || row.NamesPolicy) != (row.Noun != "") {
			t.Errorf("%s has the noun %q", row.Type, row.Noun)
		}
	}
}
