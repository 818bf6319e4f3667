package browser_test

import (
	"testing"

	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/test/browser"
	"github.com/musterhq/muster/test/needs"
)

// onPolicy opens a tab of a policy that devices use.
func onPolicy(tab string) func(*testing.T, *browser.Tab, browser.Demo) {
	return func(t *testing.T, b *browser.Tab, _ browser.Demo) {
		t.Helper()
		b.Go("/policies")
		address :=
			b.Eval(`[...document.querySelectorAll("a[data-open]")].find((a) => a.textContent.includes("Field staff")).getAttribute("href")`)
		b.Go(address + tab)
	}
}

// pick chooses a setting's value as a person does: on its label, or in its list.
func pick(b *browser.Tab, setting, value string) {
	b.TB.Helper()
	if list := `select[name="s.` + setting + `"]`; b.Eval("String(document.querySelector('"+list+"') !== null)") == "true" {
		b.Choose(list, value)
		return
	}
	b.Click(`label:has(input[name="s.` + setting + `"][value="` + value + `"])`)
}

// onProposal makes a proposal with high impact and stays on its page.
func onProposal(t *testing.T, b *browser.Tab, d browser.Demo) {
	t.Helper()
	onPolicy("")(t, b, d)
	pick(b, "FACTORY_RESET", "BLOCK")
	pick(b, "CAMERA", "BLOCK")
	b.Follow("button[data-review]")
	b.Sees("h1", "Change settings of Field staff")
}

// clean demands that nothing went wrong on the page, for every user.
func clean(b *browser.Tab) {
	b.TB.Helper()
	if bad := b.Bad() + b.Axe(); bad != "" {
		b.TB.Error(b.Path(), bad)
	}
}

// A person changes settings, sees what that does, types the policy's name,
// applies, compares, and goes back.
func TestPolicyReview_ChangesAndRollsBack(t *testing.T) {
	t.Parallel()
	needs.Chromium().Of(t)
	demo := browser.StartDemo(t)
	b := browser.Open(t, demo.URL)
	b.SignIn(demo.Email, demo.Password)
	onPolicy("")(t, b, demo)
	policy := b.Path()
	b.Size(320, 800) // the page fits a narrow window, or a wide one at 400 %
	b.Waits(`document.documentElement.scrollWidth <= 320`)
	b.Size(1440, 900)
	b.Sees("[data-tally]", "No changes")
	b.Waits(`document.querySelector("button[data-review]").disabled`)
	pick(b, "CAMERA", "BLOCK")
	b.Sees("[data-tally]", "1 change · affects")
	b.Sees("[data-tally]", "normal impact")
	pick(b, "FACTORY_RESET", "BLOCK")
	b.Sees("[data-tally]", "high impact")
	b.Follow("button[data-review]")
	b.Sees("#state", "Not applied yet")
	b.Sees("#state", "because it changes Factory reset from Settings")
	b.Sees("table", "Factory reset from Settings")
	clean(b)
	b.Waits(`document.querySelector("button[data-wants]").disabled`)
	// The server takes a name in other case and composition, too.
	for typed, asleep := range map[string]string{" STRASSE ZOE\u0308": "false", "Strasse Zoe": "true"} {
		if got := b.Eval(`(() => {
			const button = document.querySelector("button[data-wants]"), input = document.getElementById("confirmation");
			const name = button.dataset.text;
			button.dataset.text = "Straße Zoë";
			input.value = "` + typed + `";
			input.dispatchEvent(new Event("input", { bubbles: true }));
			button.dataset.text = name;
			return String(button.disabled);
		})()`); got != asleep {
			t.Errorf("with %q typed for Straße Zoë the button is disabled: %s, want %s", typed, got, asleep)
		}
	}
	b.Type("#confirmation", " field STAFF ")
	b.Waits(`!document.querySelector("button[data-wants]").disabled`)
	b.Follow("button[data-wants]")
	b.Sees("#state", "Applied")
	b.Sees("[role=status]", "saved as version 2")
	clean(b)
	b.Go(policy)
	b.Waits(`document.querySelector('input[name="s.CAMERA"][value="BLOCK"]').checked`)
	b.Sees("#held", "Current")

	// The name and what is beside it are saved at once.
	b.Click(`button[data-opens="details"]`)
	b.Type("#details-description", "For <b>drivers</b>")
	b.Follow(`form[action$="/details"] button[type=submit]`)
	b.Sees("main", "For <b>drivers</b>")
	b.Go(policy + "/revisions?from=1&to=2")
	b.Sees("#compared", "From revision 1 to 2")
	b.Sees(".now", "Block")
	b.Sees("td", "created")
	clean(b)
	b.Follow(`button[name="revision"][value="1"]`)
	b.Sees("h1", "Return Field staff to revision 1")
	b.Sees("#state", "because it returns to an earlier revision")

	// A save in between makes it out of date, which the page finds by itself.
	review := b.Path()
	b.Go(policy)
	b.Click(`button[data-opens="details"]`)
	b.Type("#details-group", "north")
	b.Follow(`form[action$="/details"] button[type=submit]`)
	b.Go(review)
	b.Sees("#state", "Out of date")
	b.Sees("[role=status]", "Propose it again")
	clean(b)
	b.Follow(`form[action$="/again"] button`)
	b.Sees("#state", "Not applied yet")
}

// Two people edit the same version: the second learns what the first did.
func TestPolicyReview_Conflict(t *testing.T) {
	t.Parallel()
	needs.Chromium().Of(t)
	demo := browser.StartDemo(t)
	b := browser.Open(t, demo.URL)
	b.SignIn(demo.Email, demo.Password)
	onPolicy("")(t, b, demo)
	pick(b, "SMS", "BLOCK")
	b.Eval(
		`fetch(location.pathname + "/details", {method: "POST", redirect: "manual", headers: {"Content-Type": "application/x-www-form-urlencoded"},
		body: "version=1&name=Field+crew"}).then(() => "")`)
	b.Follow("button[data-review]")
	b.Sees("h1", "was saved while you edited it")
	b.Sees(".now", "Field crew")
	b.Sees("li", "SMS to Block")
	clean(b)
	b.Follow(`form[action$="/review"] button`)
	b.Sees("h1", "Change settings of Field crew")
	b.Sees("table", "SMS")
}

// A proposal of an API key can be looked at by people, and proposed as one's
// own; only its owner can apply it.
func TestPolicyReview_ProposalsOfKeys(t *testing.T) {
	t.Parallel()
	needs.Chromium().Of(t)
	demo := browser.StartDemo(t)
	b := browser.Open(t, demo.URL)
	b.SignIn(demo.Email, demo.Password)
	onPolicy("")(t, b, demo)
	id := b.Path()[len("/policies/"):]
	made := proposeByKey(t, demo, id)
	b.Go("/proposals")
	b.Sees("#proposals", "demo: everything")
	clean(b)
	b.Go("/proposals/" + made)
	b.Sees("main", "who made it, can apply it")
	b.Waits(`!document.querySelector("form[action$='/apply']")`)
	clean(b)
	b.Follow(`form[action$="/again"] button`)
	b.Sees("main", "you")
	b.Follow(`form[action$="/apply"] button[type=submit]`)
	b.Sees("#state", "Applied")
	b.Go("/proposals/" + made)
	b.Sees("#state", "Out of date")
}

func proposeByKey(t *testing.T, demo browser.Demo, policyID string) string {
	t.Helper()
	answer := servertest.Client{TB: t, URL: demo.URL, Key: demo.Key}.Post("/policies/"+policyID+"/changes",
		`{"changes":[{"setting":"BLUETOOTH","value":"BLOCK"}]}`)
	var made struct{ ProposalID string }
	if answer.JSON(t, &made); made.ProposalID == "" {
		t.Fatalf("%d: %s", answer.Status, answer.Body)
	}
	return made.ProposalID
}
