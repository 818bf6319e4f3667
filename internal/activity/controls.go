package activity

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/slice"
)

// companyClauses are what changed about a company: a clause for each change.
func (e Entry) companyClauses() (all []clause) {
	switch e.Action {
	case CompanyStopped:
		return []clause{stopClause(e.after("portal") == "on", e.after("reason"))}
	case CompanyResumed:
		return []clause{resumes()}
	case LooseningAsked, LooseningConfirmed, LooseningApplied, LooseningCanceled:
		return slice.Map(e.settingClauses(), e.looseningClause)
	case CompanyChanged, SignInSetUp, CompanyDomains:
		if all = e.settingClauses(); len(all) == 0 {
			all = append(all, does("changed", "change", "company sign-in"))
		}
	default: // nothing of the company changed
	}
	return all
}

// settingClauses are the changes of settings that are known.
func (e Entry) settingClauses() (all []clause) {
	for _, f := range e.Changes {
		if c, known := settingClause(f); known {
			all = append(all, c)
		}
	}
	return all
}

// looseningClause is what was done about a change that waits.
func (e Entry) looseningClause(c clause) clause {
	did := map[Action][3]string{
		LooseningAsked: {"asked", "ask", " to "}, LooseningConfirmed: {"confirmed", "confirm", " the request to "},
		LooseningCanceled: {"canceled", "cancel", " the request to "},
	}
	w, known := did[e.Action]
	if !known { // it has waited long enough
		return c.words(", as requested")
	}
	c.rest = append([]Part{{Text: w[2] + c.base}}, c.rest...)
	c.past, c.base = w[0], w[1]
	c.loosens = c.loosens && e.Action != LooseningCanceled
	return c
}

func stopClause(portal bool, reason string) clause {
	words := "changes by API keys and AI clients"
	if portal {
		words = "changes by API keys and AI clients, and in the portal"
	}
	c := does("stopped", "stop", words)
	if reason != "" {
		c = c.words(":").name(reason)
	}
	return c
}

func resumes() clause {
	c := does("resumed", "resume", "changes by API keys and AI clients")
	c.loosens = true
	return c
}

// settingClause says what became of a setting, and in which direction. A field that it
// does not know, of another version, is a change of it.
func settingClause(f Change) (clause, bool) {
	for _, s := range switches() {
		if s.field == f.Field {
			return s.turned(f), true
		}
	}
	switch f.Field {
	case string(access.ApplyApprovalControl):
		return ranked(f, "approval of policy changes", access.ApprovalRules(), map[access.ApprovalRule]string{
			access.ApproveRisky: "risky changes", access.ApproveAll: "all changes"}), true
	case "requireReason":
		return ranked(f, "the required reason", access.ReasonRules(), map[access.ReasonRule]string{
			access.ReasonDestructive: "destructive commands", access.ReasonAll: "all commands and changes"}), true
	case string(access.DestructiveLimitControl):
		return limitClause(f), true
	case string(access.ApproverAgeControl):
		return spanClause(f, "the minimum age of approvers", true), true
	case string(access.KeepActivityControl):
		return spanClause(f, "how long activity is kept", true), true
	case "keepCommands":
		return spanClause(f, "how long commands are kept", true), true
	case "keepPlaces":
		return spanClause(f, "how long places are kept", true), true
	case "keepEvents":
		return spanClause(f, "how long events are kept", true), true
	case "inactiveAfter":
		return spanClause(f, "the time after which a silent device is inactive", false), true
	case string(access.StopControl):
		return resumes(), true
	}
	return textClause(f)
}

// toggle is a setting that is on or off.
type toggle struct {
	field, words string
	onLoosens    bool      // else off loosens it
	neutral      bool      // neither way does
	on, off      [2]string // verbs, past and base; zero: turned … on
}

func switches() []toggle {
	const callers = " by API keys and AI clients"
	return []toggle{
		{field: string(access.SecondPersonControl), words: "the second person rule"},
		{field: string(access.DestructiveApprovalControl), words: "authorization of destructive commands"},
		{field: string(access.DeviceCommands), words: "device commands" + callers, onLoosens: true},
		{field: string(access.DestructiveCommands), words: "destructive commands" + callers, onLoosens: true},
		{field: string(access.PolicyChanges), words: "policy changes" + callers, onLoosens: true},
		{field: string(access.ProvisioningGate), words: "enrollment by AI clients", onLoosens: true},
		{field: string(access.OAuthGate), words: "sign-in of AI clients", onLoosens: true},
		{field: "enabled", words: "company sign-in", neutral: true},
		{field: "createsUsers", words: "new users by company sign-in", neutral: true},
		{field: "agentUpdates", words: "updates of the agent", neutral: true, on: [2]string{"resumed", "resume"},
			off: [2]string{"paused", "pause"}},
	}
}

func (s toggle) turned(f Change) clause {
	on := strings.EqualFold(f.After, "on")
	verbs, word := s.off, "off"
	if on {
		verbs, word = s.on, "on"
	}
	c := does(verbs[0], verbs[1], s.words)
	if verbs[0] == "" {
		c = does("turned", "turn", s.words+" "+word)
	}
	c.loosens = !s.neutral && on == s.onLoosens
	return c
}

// ranked says how a control with values from loose to strict moved.
func ranked[T ~string](f Change, words string, all []T, names map[T]string) clause {
	before, after := max(0, slices.Index(all, T(f.Before))), max(0, slices.Index(all, T(f.After)))
	var c clause
	switch {
	case after == 0:
		c = does("turned", "turn", words+" off")
	case before == 0:
		c = does("turned", "turn", words+" on for "+names[all[after]])
	case after < before:
		c = does("lowered", "lower", words+" from "+names[all[before]]+" to "+names[all[after]])
	default:
		c = does("raised", "raise", words+" from "+names[all[before]]+" to "+names[all[after]])
	}
	c.loosens = after < before
	return c
}

func limitClause(f Change) clause {
	const words = "the limit of destructive commands"
	before, errBefore := access.ParseDestructiveLimit(f.Before)
	after, err := access.ParseDestructiveLimit(f.After)
	var c clause
	switch {
	case err != nil || errBefore != nil:
		return does("changed", "change", words)
	case after.Off():
		c = does("turned", "turn", words+" off")
	case before.Off():
		c = does("turned", "turn", words+" on: "+limitText(after))
	case after.Within(before):
		c = does("lowered", "lower", words+" from "+limitText(before)+" to "+limitText(after))
	default:
		c = does("raised", "raise", words+" from "+limitText(before)+" to "+limitText(after))
	}
	c.loosens = !after.Within(before)
	return c
}

func limitText(l access.DestructiveLimit) string {
	return phrase.Count(l.Devices, "device", "devices") + " in " + spanText(l.Window)
}

// spanClause is for durations. To lower one of a control loosens it.
func spanClause(f Change, words string, control bool) clause {
	before, after := spanOf(f.Before), spanOf(f.After)
	c := does("raised", "raise", words+" from "+spanText(before)+" to "+spanText(after))
	if after < before {
		c.past, c.base = "lowered", "lower"
		c.loosens = control
	}
	return c
}

// spanOf reads a duration as the log has it: "30 days" or 24h0m0s.
func spanOf(text string) time.Duration {
	if days, found := strings.CutSuffix(text, " days"); found {
		n, _ := strconv.Atoi(days)
		return time.Duration(n) * 24 * time.Hour
	}
	d, _ := time.ParseDuration(text)
	return d
}

// spanText is a duration in words.
func spanText(d time.Duration) string {
	return cmp.Or(map[time.Duration]string{0: "no time", 24 * time.Hour: "24 hours"}[d], phrase.InWords(d))
}

// textClause is for names and other texts.
func textClause(f Change) (clause, bool) {
	switch f.Field {
	case "name":
		return does("renamed", "rename", "the company from").name(f.Before).words(" to").name(f.After), true
	case "agentRollout":
		if f.Before != "" {
			return does("paused", "pause", "the rollout of the agent's version").name(f.Before), true
		}
		if f.After == "" {
			return does("paused", "pause", "the rollouts of the agent to all companies"), true
		}
		return does("began", "begin", "the rollout of the agent's version").name(f.After), true
	case "enterprise":
		return does("changed", "change", "the company's enterprise"), true
	case "domain":
		if f.After != "" {
			return does("added", "add", "the e-mail domain").name(f.After), true
		}
		return does("removed", "remove", "the e-mail domain").name(f.Before), true
	case "lostMessage", "lostPhone", "lostOrganization":
		words := map[string]string{"lostMessage": "message", "lostPhone": "phone number", "lostOrganization": "organization"}[f.Field]
		return does("changed", "change", "the "+words+" that the form for lost mode begins with"), true
	case "issuer", "clientId", "clientSecret", "domains", "role":
		words := map[string]string{"issuer": "the provider", "clientId": "the client id", "clientSecret": "the client secret",
			"domains": "the e-mail domains", "role": "the role of new users"}[f.Field]
		return does("changed", "change", words+" of company sign-in"), true
	}
	return does("changed", "change", "the setting").name(f.Field), f.Field != ""
}
