// Package browser drives the portal in headless Chromium, as a person does, and
// holds each page against axe-core. Tests are skipped where Chromium is
// missing, and fail where CI=true.
package browser

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"github.com/musterhq/muster/test/needs"
	"github.com/musterhq/muster/test/poll"
)

// axe is axe-core, for tests alone (MPL-2.0, testdata/axe.min.js).
//
//go:embed testdata/axe.min.js
var axe string

// watch collects what must not happen on any page.
const watch = `window.__bad = [];
document.addEventListener("securitypolicyviolation", (e) => window.__bad.push("policy: " + e.violatedDirective + " " + e.blockedURI + " "
	+ e.sample + " " + e.sourceFile + ":" + e.lineNumber));
addEventListener("error", (e) => window.__bad.push("error: " + (e.message ?? "cannot load " + (e.target.src ?? e.target.href))), true);
addEventListener("unhandledrejection", (e) => window.__bad.push("rejection: " + e.reason));
window.alert = window.confirm = window.prompt = (text) => { window.__bad.push("dialog: " + text); };`

// patience bounds every single step.
const patience = 45 * time.Second

// Tab is one person's browser at one address.
type Tab struct {
	TB   testing.TB
	Base string // the portal's public URL
	ctx  context.Context

	authenticator webauthn.AuthenticatorID // empty: none was plugged in
	clicks        int
}

// Open starts a browser of its own for a test.
func Open(tb testing.TB, base string) *Tab {
	tb.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(needs.Chromium().Of(tb)), chromedp.NoSandbox,
		chromedp.DisableGPU,
		// There is no GPU to put frames together: without this, one is emulated.
		chromedp.Flag("disable-gpu-compositing", true),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("hide-scrollbars", true),
		chromedp.UserDataDir(tb.TempDir()))
	allocated, stop := chromedp.NewExecAllocator(context.WithoutCancel(tb.Context()), options...)
	t := &Tab{TB: tb, Base: base}
	t.start(allocated, stop)
	return t
}

// Another is a second tab of the same browser, whose person is signed in there too.
func (t *Tab) Another() *Tab {
	t.TB.Helper()
	other := &Tab{TB: t.TB, Base: t.Base}
	other.start(t.ctx, func() {})
	return other
}

// start opens the tab in a browser, until the test ends.
func (t *Tab) start(in context.Context, stop func()) {
	t.TB.Helper()
	ctx, cancel := chromedp.NewContext(in)
	t.TB.Cleanup(func() {
		_ = chromedp.Cancel(ctx)
		cancel()
		stop()
	})
	t.ctx = ctx
	t.must("start", chromedp.Do(ctx, // the browser lives as long as this context
		chromedp.EmulateViewport(1440, 900),
		chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watch})
			return err
		})))
}

func (t *Tab) must(what string, err error) {
	t.TB.Helper()
	if err == nil {
		return
	}
	state, _ := chromedp.Run(t.ctx,
		chromedp.Evaluate[string](
			`location.href + "\n" + (window.__bad ?? []).join("\n") + "\n" + document.body?.innerText.slice(0, 2500)`))
	t.TB.Fatalf("%s: %v\n%s", what, err, state)
}

// do takes a step within patience, and again where its element was replaced before it was used:
// while a page loads, and where it refreshes itself.
func (t *Tab) do(what string, step chromedp.Action[chromedp.Void]) {
	t.TB.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	err := chromedp.Do(ctx, step)
	for replaced(err) {
		err = chromedp.Do(ctx, step)
	}
	t.must(what, err)
}

// replaced tells that an element that was found left the page before it was used. Each of these
// comes before a key or a button of the mouse is pressed.
func replaced(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "Could not find node with given id") ||
		strings.Contains(err.Error(), "Node is detached from document"))
}

// Go opens a path of the portal and waits until it is loaded. What is still loading before is
// waited for, and where the answer to a form that was sent before arrives only then, and aborts
// this, it is opened again.
func (t *Tab) Go(path string) {
	t.TB.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	for {
		t.Waits(`document.readyState === "complete"`)
		err := chromedp.Do(ctx, chromedp.Navigate(t.Base+path))
		if err != nil && strings.Contains(err.Error(), "net::ERR_ABORTED") {
			continue
		}
		t.must("open "+path, err)
		return
	}
}

// SignIn signs a person in.
func (t *Tab) SignIn(email, password string) {
	t.TB.Helper()
	t.Go("/signin")
	t.Type("#email", email)
	t.Type("#password", password)
	t.Follow("form[action='/signin'] button[type=submit]")
}

// Click clicks what a CSS selector finds.
func (t *Tab) Click(selector string) {
	t.TB.Helper()
	t.clicks++
	t.do("click "+selector, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// Follow clicks what leads to another page and waits for that.
func (t *Tab) Follow(selector string) {
	t.TB.Helper()
	t.clicks++
	t.do("follow "+selector, func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
		return chromedp.Void{}, err
	})
}

// Within begins a task at a page, and returns what ends it: it fails the test if the task
// took more clicks.
func (t *Tab) Within(clicks int, path string) (end func(task string)) {
	t.TB.Helper()
	t.Go(path)
	before := t.clicks
	return func(task string) {
		t.TB.Helper()
		if took := t.clicks - before; took > clicks {
			t.TB.Errorf("%s took %d clicks, want at most %d", task, took, clicks)
		}
	}
}

// Type replaces the text of an input.
func (t *Tab) Type(selector, text string) {
	t.TB.Helper()
	t.do("see "+selector, chromedp.WaitVisible(chromedp.CSS(selector)))
	t.Eval(fmt.Sprintf(`document.querySelector(%q).value = ""`, selector))
	t.do("type into "+selector, chromedp.SendKeys(chromedp.CSS(selector), text))
}

// Press presses keys, as chromedp/kb names them.
func (t *Tab) Press(keys string) {
	t.TB.Helper()
	t.do("press", chromedp.KeyEvent(keys))
}

// Choose sets a select's value, as a person's choice.
func (t *Tab) Choose(selector, value string) {
	t.TB.Helper()
	t.Eval(
		fmt.Sprintf(
			`(() => { const e = document.querySelector(%q); e.value = %q; e.dispatchEvent(new Event("change", {bubbles: true})); return "" })()`, selector, value))
}

// File chooses a file in a field.
func (t *Tab) File(selector, path string) {
	t.TB.Helper()
	t.do("choose a file for "+selector, chromedp.SetUploadFiles(chromedp.CSS(selector), []string{path}))
}

// Eval evaluates an expression that is a string.
func (t *Tab) Eval(expression string) string {
	t.TB.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
	t.must("evaluate "+expression, err)
	return text
}

// Text is the text of what a selector finds.
func (t *Tab) Text(selector string) string {
	t.TB.Helper()
	return t.Eval(fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`, selector))
}

// Path is the address without its host.
func (t *Tab) Path() string {
	t.TB.Helper()
	return t.Eval(`location.pathname + location.search`)
}

// Sees waits until what a selector finds holds a text; upper and lower case
// count for the same.
func (t *Tab) Sees(selector, text string) {
	t.TB.Helper()
	t.Waits(fmt.Sprintf(`[...document.querySelectorAll(%q)].some((e) => e.innerText.toLowerCase().includes(%q))`, selector,
		strings.ToLower(text)))
}

// Waits waits until an expression is true, also while pages change.
func (t *Tab) Waits(expression string) {
	t.TB.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	t.must("wait for "+expression, poll.For(patience, func() error {
		yes, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
		if err == nil && !yes {
			err = errors.New("it is false")
		}
		return err
	}))
}

// Theme chooses what the system prefers, light or dark, and has it reduce motion.
func (t *Tab) Theme(theme string) {
	t.TB.Helper()
	t.shown("", "prefers-color-scheme", theme, "prefers-reduced-motion", "reduce")
}

// ForceColors has the system force its own colors on pages.
func (t *Tab) ForceColors() {
	t.TB.Helper()
	t.shown("", "forced-colors", "active")
}

// Print shows pages as they are printed by someone whose system prefers dark pages.
func (t *Tab) Print() {
	t.TB.Helper()
	t.shown("print", "prefers-color-scheme", "dark")
}

// shown emulates a medium, empty for a screen, with features: name, value and so on.
func (t *Tab) shown(medium string, features ...string) {
	t.TB.Helper()
	media := emulation.SetEmulatedMediaParams{Media: medium}
	for i := 0; i+1 < len(features); i += 2 {
		media.Features = append(media.Features, &emulation.MediaFeature{Name: features[i], Value: features[i+1]})
	}
	t.do("media", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media)
		return err
	}))
}

// Size sets the window's size.
func (t *Tab) Size(width, height int64) {
	t.TB.Helper()
	t.do("size", chromedp.EmulateViewport(width, height))
}

// Slow has each answer take that long; 0: as long as it takes.
func (t *Tab) Slow(latency time.Duration) {
	t.TB.Helper()
	t.do("slow network", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		conditions := network.Conditions{Latency: float64(latency.Milliseconds()), DownloadThroughput: -1, UploadThroughput: -1}
		_, err := chromedp.Call(ctx, network.EmulateNetworkConditionsByRule,
			network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: []*network.Conditions{&conditions}})
		return err
	}))
}

// Scripts turns the pages' scripts off, or on again.
func (t *Tab) Scripts(on bool) {
	t.TB.Helper()
	t.do("scripts", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
		return err
	}))
}

// Bad is what went wrong on the page: refused by its policy, thrown, not loaded.
func (t *Tab) Bad() string {
	t.TB.Helper()
	return t.Eval(`window.__bad.join("\n")`)
}

const axeRules = `runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]`

// Axe returns the accessibility violations of the page, one a line.
func (t *Tab) Axe() string {
	t.TB.Helper()
	return t.axe(axeRules)
}

// AxeLayout returns the violations of all that may differ with the window's width: of everything
// but contrast, which takes most of the time, and of what the stylesheet says.
func (t *Tab) AxeLayout() string {
	t.TB.Helper()
	return t.axe(axeRules + `, preload: false, rules: {"color-contrast": {enabled: false}}`)
}

// AxeContrast returns the violations of the contrast that text needs.
func (t *Tab) AxeContrast() string {
	t.TB.Helper()
	return t.axe(`runOnly: {type: "rule", values: ["color-contrast"]}, preload: false`)
}

func (t *Tab) axe(options string) string {
	t.TB.Helper()
	if t.Eval(`typeof axe`) == "undefined" {
		t.do("load axe", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](axe+";true"))
			return err
		}))
	}
	return t.Eval(`axe.run(document, {resultTypes: ["violations"], ` + options + `}).then((r) =>
		r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + v.help + "\n    " + n.html.slice(0, 220) + "\n    " + n.any.concat(n.all, n.none).map((c) => c.message).join("; ").slice(0, 260))).join("\n"))`)
}

// Shot is a picture of the window.
func (t *Tab) Shot() []byte {
	t.TB.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	t.must("take a picture", err)
	return picture
}

// For is the same tab, which reports its failures to another test.
func (t *Tab) For(tb testing.TB) *Tab {
	return &Tab{TB: tb, Base: t.Base, ctx: t.ctx, authenticator: t.authenticator}
}

// OpenDevice opens the page of an active device whose name holds a text.
func (t *Tab) OpenDevice(text string) {
	t.TB.Helper()
	t.Go("/devices?status=ACTIVE&sort=identification,asc&size=100&q=" + url.QueryEscape(text))
	t.Follow("tr[data-row] a[data-open]")
}

// Forget takes every cookie from the browser, as the end of a session does.
func (t *Tab) Forget() {
	t.TB.Helper()
	t.do("clear the cookies", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := chromedp.Call(ctx, network.ClearBrowserCookies, cdp.Empty{})
		return err
	}))
}

// Point moves the pointer onto what a selector finds.
func (t *Tab) Point(selector string) {
	t.TB.Helper()
	var x, y float64
	if _,
		err := fmt.Sscan(
		t.Eval(
			fmt.Sprintf(
				`(() => { const r = document.querySelector(%q).getBoundingClientRect(); return (r.left + r.width / 2) + " " + (r.top + r.height / 2) })()`, selector)), &x, &y); err != nil {
		t.TB.Fatal(err)
	}
	t.do("point at "+selector, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := chromedp.Call(ctx, input.DispatchMouseEvent,
			input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: x, Y: y})
		return err
	}))
}
