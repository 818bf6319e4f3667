// Package portal is where people see, decide and answer for it: the screens
// for a company's administrators (contract 1.6, 5.3 to 5.7). This package puts
// the sections together; each section is a package of its own beside frame.
//
// # Adding a screen
//
// A section is a struct with the stores that it needs and a method
// Routes() []frame.Route: its table of addresses, each with the right that it
// takes and a handler func(v *frame.Visit) error. It is listed in
// internal/service/portal.go, where its stores are wired. Paths that others
// link to are constants in frame/paths.go.
//
// A handler asks the domain and ends in one line:
//
//	return v.Show("Devices", frame.DevicesPath, list(v, …))       // a page
//	return v.Fragment(rows(v, …))                                  // v.Partial(): a part of it; see v.ShowLive
//	return v.Redirect(frame.DevicePath(id), frame.Done("Sent."))   // after a POST
//	return v.ShowStatus(422, title, active, form(v, values, err))  // frame.Fields(err) by input
//	return err                                                     // page or notice with request id
//
// Rights: Route.Needs guards an address, v.May and v.Require the rest; Route.Proof
// asks for a fresh proof of who the person is. What is
// done to devices, policies and codes goes through v.Run("lock_device", args,
// once), which is the operation of that name with the person as its caller, so
// that rights, eligibility and budget are the contract's. Lists are read with
// v.Principal.Policies as limit (asset.Filter has the field; asset.Find and
// policy.Service.List obey it): users see no devices or policies beyond it.
//
// Forms are plain POST forms, protected from other origins by web.Secure. One
// that must not act twice has a hidden frame.OnceField. A control that cannot
// be used is frame.Disabled with its reason; a part that cannot be read is
// frame.Broken, so that each tile fails alone.
//
// Tables keep their state in the address: frame.ParseList, frame.SortHead,
// frame.Chip, frame.Pager. A row is <tr data-row> with a link <a data-open>.
//
// Live: give a part an id, hx-get with its own address, hx-trigger="live",
// hx-swap="outerMorph" and data-live="asset:<id>" (or "assets", "commands",
// "proposals" …). Writers hint with db.Notify(resource.Changes, resource.Change(…)).
// A part that is answered with 403 or 404 is not fetched again; with 403 it is emptied.
//
// The page allows no inline script and no style attribute: draw with SVG
// attributes, put behavior into web/static/*.js, found by data- attributes
// (data-opens, data-close, data-copy, data-wants, data-reveal, data-submits,
// data-print; see portal.js). Icons are listed in web/icons.txt. After a change
// of classes or icons run web/build.sh; in a conflict of app.css or icons.svg
// take either and build again.
//
// A class that only Go code names is listed as @source inline in web/input.css.
// Every page has a line in test/browser/pages_test.go: axe, the
// content policy and the pictures of docs/screenshots (make screenshots).
//
// Words: verbs and counts ("Lock 3 devices"), never "Are you sure?".
package portal
