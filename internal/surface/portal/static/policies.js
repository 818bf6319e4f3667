// The form of a policy's settings: what was changed, and what that means,
// before it is reviewed. Without this script the form works all the same.
(() => {
  "use strict";
  const form = document.querySelector("form[data-settings]");
  for (const shown of document.querySelectorAll("dialog [data-shown]")) shown.closest("dialog").showModal();
  if (!form) return;
  const tally = form.querySelector("[data-tally]");
  const button = form.querySelector("[data-review]");
  const devices = Number(form.dataset.devices);
  const plural = (n, one, many) => n === 1 ? "1 " + one : n.toLocaleString("en") + " " + many;
  const changed = (row) => [...row.querySelectorAll("input")].some((input) => input.checked !== input.defaultChecked);
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
    tally.textContent = changes === 0 ? "No change yet" :
      plural(changes, "change", "changes") + " · affects " + plural(devices, "device", "devices") + impact;
  };
  form.addEventListener("change", count);
  form.addEventListener("reset", () => setTimeout(count));
  count();
})();
