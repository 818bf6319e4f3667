// The time slider of a device's trail: it moves the mark along the places that
// the table lists. Without this script the table's links do the same.
(() => {
  "use strict";
  const $ = (selector) => document.querySelector(selector);
  const $$ = (selector) => [...document.querySelectorAll(selector)];
  let chosen = ""; // the time of the place that a person chose; empty: none
  const show = (at) => {
    const plot = $("[data-plot]"), slider = $("[data-trail]"), rows = $$("tr[data-place]").reverse();
    if (!plot || !slider || !rows[at]) return;
    const spots = [...plot.querySelectorAll("[data-spot]")], spot = spots[at];
    for (const mark of plot.querySelectorAll("[data-here], [data-accuracy]")) {
      for (const name of ["cx", "cy"]) mark.setAttribute(name, spot.getAttribute(name));
    }
    plot.querySelector("[data-accuracy]").setAttribute("r", spot.dataset.radius);
    plot.querySelector("[data-walked]").setAttribute("points", spots.slice(0, at + 1).map((s) => s.getAttribute("cx") + "," + s.getAttribute("cy")).join(" "));
    rows.forEach((row, i) => { if (i === at) row.setAttribute("aria-current", "true"); else row.removeAttribute("aria-current"); });
    slider.value = String(at);
    slider.setAttribute("aria-valuetext", rows[at].dataset.text);
    $("[data-spot-says]").textContent = rows[at].dataset.text;
    for (const step of $$("[data-step]")) {
      const to = at + Math.sign(Number(step.dataset.step));
      if (rows[to]) step.removeAttribute("aria-disabled"); else step.setAttribute("aria-disabled", "true");
    }
  };
  const choose = (at) => {
    const rows = $$("tr[data-place]").reverse();
    if (!rows[at]) return;
    chosen = rows[at].dataset.place;
    show(at);
    const address = new URL(location.href);
    address.searchParams.set("at", chosen);
    history.replaceState(history.state, "", address);
  };
  document.addEventListener("input", (event) => {
    if (event.target.matches?.("[data-trail]")) choose(Number(event.target.value));
  });
  document.addEventListener("click", (event) => {
    const step = event.target.closest?.("[data-step]");
    if (!step) return;
    event.preventDefault();
    choose(Number($("[data-trail]").value) + Math.sign(Number(step.dataset.step)));
    window.portal?.say($("[data-spot-says]").textContent);
  });
  const dress = () => {
    const slider = $("[data-trail]");
    if (!slider) return;
    slider.hidden = false;
    if (!chosen) return;
    const at = $$("tr[data-place]").reverse().findIndex((row) => row.dataset.place === chosen);
    if (at >= 0) show(at); // the live part was replaced
  };
  document.addEventListener("htmx:after:swap", dress);
  dress();
})();
