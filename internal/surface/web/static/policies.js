// The form of a policy's settings: what was changed, and what that means,
// before it is reviewed. Without this script the form works all the same.
(() => {
  "use strict";
  const keptOf = (settings) => "settings:" + document.documentElement.dataset.user + ":" + settings;
  document.addEventListener("click", (event) => {
    const discard = event.target.closest?.("[data-discards]");
    if (discard) sessionStorage.removeItem(keptOf(discard.dataset.discards));
  });
  const form = document.querySelector("form[data-settings]");
  if (!form) return;
  const tally = form.querySelector("[data-tally]");
  const button = form.querySelector("[data-review]");
  const devices = Number(form.dataset.devices);
  const plural = (n, one, many) => n === 1 ? "1 " + one : n.toLocaleString("en") + " " + many;
  const changed = (row) => [...row.querySelectorAll("input")].some((input) => input.checked !== input.defaultChecked) ||
    [...row.querySelectorAll("option")].some((option) => option.selected !== option.defaultSelected);
  // What was changed and not saved stays in this tab, for this version of the
  // policy: a session that ends, or a way back from the review, loses nothing.
  const kept = keptOf(form.dataset.kept);
  const controls = () => [...form.elements].filter((c) => c.name.startsWith("s."));
  const keep = () => {
    const changes = controls().filter((c) => (c.type !== "radio" || c.checked) && changed(c.closest("[data-setting]"))).map((c) => [c.name, c.value]);
    if (changes.length) sessionStorage.setItem(kept, JSON.stringify(changes)); else sessionStorage.removeItem(kept);
  };
  const restore = () => {
    let changes = [];
    try { changes = JSON.parse(sessionStorage.getItem(kept)) ?? []; } catch { /* what is no JSON is not ours */ }
    for (const [name, value] of changes) {
      for (const c of controls()) {
        if (c.name !== name) continue;
        if (c.type !== "radio") c.value = value;
        else if (c.value === value) c.checked = true;
      }
    }
    if (changes.length) window.portal?.say("Your unsaved changes are restored.");
  };
  const count = () => {
    let changes = 0, high = devices >= 50;
    for (const row of form.querySelectorAll("[data-setting]")) {
      const is = changed(row);
      row.toggleAttribute("data-changed", is);
      if (is) { changes++; if (row.dataset.high !== undefined) high = true; }
    }
    if (!tally) return;
    button.disabled = changes === 0;
    const impact = form.dataset.platform === undefined ? "" : devices > 0 && high ? " · high impact" : " · normal impact";
    tally.textContent = changes === 0 ? "No changes" :
      plural(changes, "change", "changes") + " · affects " + plural(devices, "device", "devices") + impact;
  };
  form.addEventListener("change", () => { keep(); count(); });
  // What is typed into the search leaves the settings whose name or text has it.
  const find = form.querySelector("[data-find]");
  find?.addEventListener("input", () => {
    const wanted = find.value.trim().toLowerCase();
    let found = 0;
    for (const row of form.querySelectorAll("[data-setting]")) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
      if (!row.hidden) found++;
    }
    for (const group of form.querySelectorAll("section")) group.hidden = !group.querySelector("[data-setting]:not([hidden])");
    form.querySelector("[data-found]").textContent = wanted === "" ? "" : found === 0 ? "No setting has “" + find.value.trim() + "”." : plural(found, "setting", "settings");
  });
  form.addEventListener("reset", () => setTimeout(() => { keep(); count(); }));
  restore();
  count();
})();
