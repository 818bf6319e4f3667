// The histogram of the activity log as a brush: dragging over it narrows the
// time to what was dragged over. Each bar is a link, which does the same for
// one bar without a script.
(() => {
  "use strict";
  const plot = document.querySelector("[data-brush]");
  if (!plot) return;
  const mark = plot.querySelector("[data-brushed]"), says = document.querySelector("[data-brush-says]");
  const from = Number(plot.dataset.from), to = Number(plot.dataset.to), least = 4; // pixels that are a drag
  let begin = null, dragged = false;
  const part = (event) => {
    const box = plot.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
  };
  const time = (share) => Math.round((from + share * (to - from)) / 1000) * 1000;
  const text = (ms) => new Date(ms).toISOString().slice(0, 16).replace("T", " ");
  const range = (event) => [Math.min(begin.share, part(event)), Math.max(begin.share, part(event))];
  const hint = "Drag to narrow the time";
  const end = () => { begin = null; mark.setAttribute("width", "0"); says.textContent = hint; };
  plot.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    begin = { share: part(event), x: event.clientX };
    dragged = false;
  });
  plot.addEventListener("dragstart", (event) => event.preventDefault()); // of a bar's link
  addEventListener("pointermove", (event) => {
    if (!begin || Math.abs(event.clientX - begin.x) < least) return;
    dragged = true;
    const [a, b] = range(event);
    mark.setAttribute("x", String(a * 600));
    mark.setAttribute("width", String((b - a) * 600));
    says.textContent = text(time(a)) + " – " + text(time(b)) + " UTC";
  });
  addEventListener("pointerup", (event) => {
    if (!begin || !dragged) { begin = null; return; }
    const [a, b] = range(event);
    end();
    const address = new URL(location.href);
    for (const name of ["range", "after"]) address.searchParams.delete(name);
    address.searchParams.set("from", String(time(a)));
    address.searchParams.set("to", String(Math.max(time(b), time(a) + 1000)));
    location.assign(address);
  });
  addEventListener("pointercancel", end);
  addEventListener("keydown", (event) => { if (event.key === "Escape") end(); });
  end();
  plot.addEventListener("click", (event) => { if (dragged) event.preventDefault(); }, true); // the end of a drag opens no bar
})();
