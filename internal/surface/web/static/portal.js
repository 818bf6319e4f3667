// The portal's behavior: live updates, command palette, keyboard, copying,
// dialogs, times that go on. Every page reads without it.
(() => {
  "use strict";
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const live = document.createElement("div");
  live.className = "sr-only";
  live.setAttribute("aria-live", "polite");
  document.body.append(live);
  const say = (text) => { live.textContent = text; };

  // ── Times ──────────────────────────────────────────────────────────────
  const span = (ms) => {
    const s = Math.floor(ms / 1000);
    if (s < 60) return `${s} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min`;
    if (s < 172800) return `${Math.floor(s / 3600)} h`;
    return `${Math.floor(s / 86400)} days`;
  };
  const since = (at) => {
    const ms = Date.now() - at;
    if (ms < 0) return `in ${span(ms > -60_000 ? -ms : -ms + 59_000)}`;
    return ms < 5000 ? "just now" : `${span(ms)} ago`;
  };
  const until = (at, over) => {
    const s = Math.floor((at - Date.now()) / 1000);
    if (s <= 0) return over;
    if (s >= 3600) return `${Math.floor(s / 3600)} h ${String(Math.floor(s / 60) % 60).padStart(2, "0")} min`;
    return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`;
  };
  const set = (element, text) => { if (element.textContent !== text) element.textContent = text; };
  const over = new Set(); // instants that have passed: what ends then is looked at again, once
  const clock = (at) => {
    const day = (ms) => new Date(ms).setHours(0, 0, 0, 0), days = Math.round((day(at) - day(Date.now())) / 86_400_000);
    const word = { 0: "today", 1: "tomorrow", "-1": "yesterday" }[days];
    return (word ?? new Date(at).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" })) + " " +
      new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  };
  const clocks = () => { for (const t of $$("time[data-at]")) set(t, clock(Date.parse(t.dateTime))); };
  clocks();
  const tick = () => {
    if (document.hidden) return;
    clocks();
    for (const t of $$("time[data-since]")) set(t, since(Date.parse(t.dateTime)));
    for (const t of $$("time[data-until]")) {
      const at = Date.parse(t.dateTime);
      set(t, until(at, t.dataset.over));
      if (at <= Date.now() && !over.has(t.dateTime)) { over.add(t.dateTime); refresh(null); }
      const ring = t.closest("[data-ring]")?.querySelector("circle[data-left]");
      if (ring) ring.setAttribute("stroke-dashoffset", String(100 * (1 - Math.max(0, Math.min(1, (at - Date.now()) / (Number(ring.dataset.left) * 1000))))));
    }
  };
  setInterval(tick, 1000);

  // ── A session that has ended ───────────────────────────────────────────
  // The page stays as it is, with what was typed, while the person signs in in another
  // window. Where another person did, the page is loaded again as theirs.
  const user = document.documentElement.dataset.user, idle = "/search?q="; // idle: an address that finds nothing
  const isOver = (answer) => {
    if (answer.status === 401 && !answer.headers.get("Muster-Proof")) {
      if (!$("#signed-out").open) $("#signed-out").showModal();
      return true;
    }
    if ((answer.headers.get("Muster-User") ?? user) === user) return false;
    location.replace(location.pathname + location.search); // a reload could send a form again
    return true;
  };
  // ask fetches for this page; null: the session has ended, or is another person's.
  const ask = async (address, options = {}) => {
    const answer = await fetch(address, { ...options, headers: { "HX-Request": "true", ...options.headers } });
    return isOver(answer) ? null : answer;
  };
  document.addEventListener("htmx:before:response", (event) => {
    if (isOver(event.detail.ctx.response)) event.preventDefault();
  });

  // ── Before a form is sent ──────────────────────────────────────────────
  // A form asks first whether the session goes on. One with data-proof asks, with all that
  // it would send, whether it takes a fresh proof of identity, too. The proof is given in
  // the form's own dialog, or in one for it, or with company sign-in in another window.
  // What was typed stays here, and is sent after that, once.
  const proofs = new BroadcastChannel("muster-proved");
  let waiting = null; // the form that waits for the proof or the sign-in, and its button
  let passes = null; // the form that is sent now, as it asked
  const provePath = "/account/prove", partial = { "HX-Request": "true", "HX-Request-Type": "partial" };
  const proofOf = (form) => $("[data-prove]", form.closest("dialog") ?? $("#prove")) ?? $("#prove [data-prove]");
  const parsed = async (answer) => new DOMParser().parseFromString(await answer.text(), "text/html").body;
  const signinScript = () => new Promise((done) => {
    if ($("script[src$='/signin.js']")) { done(); return; }
    const script = document.createElement("script");
    script.src = $("script[src$='/portal.js']").src.replace("portal.js", "signin.js");
    script.onload = script.onerror = done;
    document.head.append(script);
  });
  const letGo = (form, button) => {
    passes = form;
    form.requestSubmit(button);
    passes = null;
  };
  const goOn = () => {
    if (!waiting) return;
    const { form, button } = waiting, body = proofOf(form);
    waiting = null;
    body.replaceChildren();
    body.hidden = true;
    $("#prove").close();
    checkFirst(form, button);
  };
  const checkFirst = async (form, button) => {
    if (form.ariaBusy) return;
    for (const part of [form, button]) if (part) part.ariaBusy = "true";
    try {
      if (await hasToWait(form, button)) return;
    } catch { /* the browser shows what is wrong when it sends the form */ }
    finally { for (const part of [form, button]) if (part) part.ariaBusy = null; }
    letGo(form, button);
  };
  // hasToWait asks for what is missing, and reports whether the form has to wait.
  const hasToWait = async (form, button) => {
    const body = new URLSearchParams(new FormData(form, button)), asked = { method: "POST", body, headers: { "Muster-Proof": "asked" } };
    const answer = await (form.dataset.proof === undefined ? ask(idle) : ask(form.getAttribute("action"), asked));
    const missing = answer?.status === 403 && answer.headers.get("Muster-Proof");
    if (answer && !missing) return false;
    if (missing && $("[data-prove-here]", form)) return !await provePassword(form);
    waiting = { form, button };
    const how = missing && await ask(provePath, { headers: partial });
    if (how) await showProof(how, true);
    return true;
  };
  // showProof shows how to prove it; a passkey is asked for at once.
  const showProof = async (answer, first) => {
    if (answer.status === 204) { goOn(); return; }
    if (!waiting) return; // it was canceled
    const body = proofOf(waiting.form), box = body.closest("dialog");
    body.replaceChildren(...(await parsed(answer)).childNodes);
    body.hidden = false;
    if (!box.open) box.showModal();
    await signinScript();
    $("input:not([type=hidden]), button", body)?.focus();
    if (first) $("form[data-passkey]", body)?.requestSubmit();
  };
  // A dialog whose form takes a proof by password asks for it among its own fields.
  const askPassword = async (form) => {
    if ($("[data-prove-here]", form)) return;
    const answer = await ask(provePath, { headers: partial });
    if (!answer || answer.status === 204) return;
    const input = $("input[name=password]", await parsed(answer)), row = form.lastElementChild;
    if (!input || $("[data-prove-here]", form) || !form.closest("dialog").open) return;
    const field = input.parentElement;
    field.dataset.proveHere = "";
    field.append(Object.assign(document.createElement("p"), { className: "text-sm text-destructive", role: "alert" }));
    input.removeAttribute("name"); // it is never sent with the form
    input.id = $("label", field).htmlFor = form.closest("dialog").id + "-password";
    row.before(field);
  };
  const provePassword = async (form) => {
    const field = $("[data-prove-here]", form), input = $("input", field);
    const answer = await ask(provePath, { method: "POST", body: new URLSearchParams({ password: input.value }), headers: partial });
    if (answer === null) return false;
    if (answer.status === 204) { field.remove(); return true; }
    $("[role=alert]", field).textContent = $(".note", await parsed(answer))?.textContent.trim() ?? "That did not prove it. Try again.";
    input.select();
    input.focus();
    return false;
  };
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form === passes || form.method !== "post" || form.target || form.closest("[data-prove], [action='/signout']")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (form.dataset.sent === undefined) checkFirst(form, event.submitter);
  }, true); // before htmx
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.closest("[data-prove]") || form.target || form.dataset.passkey && !form.elements.answer.value) return;
    event.preventDefault();
    const body = new URLSearchParams(new FormData(form));
    try {
      const answer = await ask(form.getAttribute("action"), { method: "POST", body, headers: partial });
      if (answer) await showProof(answer, false);
    } catch { say("The service cannot be reached. Try again."); }
  });
  document.addEventListener("close", (event) => {
    if (event.target.id === "signed-out") waiting = null;
    const body = $("[data-prove]", event.target);
    if (!body) return;
    if (waiting && proofOf(waiting.form) === body) waiting = null;
    body.replaceChildren();
    body.hidden = true;
  }, true);
  proofs.onmessage = () => {
    const ended = $("#signed-out").open;
    $("#signed-out").close();
    goOn();
    if (!ended) return;
    connect();
    ask(idle).catch(() => {}); // who is signed in now
  };
  if ($("[data-proved]")) proofs.postMessage("");

  // ── Forms on their way ─────────────────────────────────────────────────
  // What is sent looks busy and is sent once. Until it is answered, nothing replaces it: a
  // form that were fresh again could send the same twice.
  const busyFor = 30_000; // ms; a page that was not left can be used again
  const atRest = (form) => {
    delete form.dataset.sent;
    for (const button of $$("button[aria-busy]", form)) button.ariaBusy = null;
  };
  addEventListener("submit", (event) => {
    const form = event.target;
    if (event.submitter && form.matches("[hx-post]")) event.submitter.ariaBusy = "true";
    if (event.defaultPrevented || form.method !== "post" || form.target) return;
    if (event.submitter) event.submitter.ariaBusy = "true";
    form.dataset.sent = "";
    setTimeout(atRest, busyFor, form);
  });
  const onItsWay = "form[data-sent], form[aria-busy=true]";
  document.addEventListener("htmx:before:swap", (event) => {
    if ($(onItsWay, event.target)) event.preventDefault();
  });
  document.addEventListener("htmx:finally:request", (event) => {
    if (event.target.matches?.("form[hx-post]")) atRest(event.target);
  });
  // A file that is too large is not sent at all.
  document.addEventListener("change", ({ target }) => {
    if (!target.dataset?.largest) return;
    target.setCustomValidity(target.files[0]?.size > target.dataset.largest ? "The file is too large: split it." : "");
    target.reportValidity();
  });
  addEventListener("pageshow", () => { for (const form of $$("form[method=post]")) atRest(form); });

  // ── Live: a part with data-live="asset:ID …" is fetched again on a hint ──
  let stream = null, listening = "", broken = 0;
  // A stream that was refused is opened again after a pause, as the browser does not.
  let again = 0, refusals = 0, lost = false; // lost: changes were missed since the stream was open
  // data-every="3" lets a part be fetched every three seconds at most; one with
  // boxes ticked waits until they are not.
  const last = new Map();
  // A part whose refresh was answered 403 or 404 has data-gone: it is not fetched again.
  const liveParts = () => $$("[data-live]:not(html, [data-gone])");
  const timers = new Map();
  const fetchLater = (id, ms) => {
    if (!timers.has(id)) timers.set(id, setTimeout(() => { timers.delete(id); fetchAnew(id); }, ms));
  };
  const fetchAnew = (id) => {
    const part = document.getElementById(id);
    if (!part || part.dataset.gone !== undefined) return;
    if (part.querySelector("input[type=checkbox]:checked:not([data-all], [name=all]), " + onItsWay)) { fetchLater(id, 1000); return; }
    clearTimeout(timers.get(id));
    timers.delete(id);
    last.set(id, Date.now());
    const used = part.matches(":hover") || part.contains(document.activeElement);
    if (part.dataset.calm !== undefined && used) updateRows(part);
    else htmx.trigger(part, "live");
  };
  // A list with data-calm does not move under the pointer or the focus: the rows
  // that are there get their new cells, and a button offers the new order.
  const updateRows = async (part) => {
    const answer = await ask(part.getAttribute("hx-get"), { headers: { "HX-Request-Type": "partial" } });
    if (answer && isGone(answer)) {
      retire(part, answer.status);
      const notice = $(".note", await parsed(answer));
      if (notice && !isShown(notice)) $("#notices").append(notice);
    }
    if (!answer?.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const rows = $$("tr[data-row]", part), next = $$("tr[data-row]", fresh);
    for (const row of rows) {
      const now = fresh.getElementById(row.id);
      if (!now || row.contains(document.activeElement)) continue;
      [...now.cells].forEach((cell, i) => {
        const shown = row.cells[i];
        if (shown && shown.innerHTML !== cell.innerHTML && !cell.querySelector("input, button")) shown.replaceChildren(...cell.childNodes);
      });
    }
    tick();
    const moved = next.filter((row, i) => rows[i]?.id !== row.id).length + Math.max(0, rows.length - next.length);
    const note = $("[data-moved]", part);
    note.hidden = moved === 0;
    $("[data-moved-says]", note).textContent = `${moved} ${moved === 1 ? "row has" : "rows have"} moved`;
  };
  document.addEventListener("click", (event) => {
    const part = event.target.closest?.("[data-moved-show]")?.closest("[data-live]");
    if (part) htmx.trigger(part, "live");
  });
  // Only an answer of the service counts, which names #notices. One of a proxy says
  // nothing about the part.
  const ofService = (answer) => answer.headers.get("HX-Retarget") !== null;
  const isGone = (answer) => (answer.status === 403 || answer.status === 404) && ofService(answer);
  const retire = (part, status) => {
    part.dataset.gone = "";
    if (status === 403) part.replaceChildren(); // the person may not see it any more
    listen();
  };
  document.addEventListener("htmx:before:request", (event) => {
    if (event.detail.ctx.sourceElement.dataset?.gone !== undefined) event.preventDefault();
  });
  document.addEventListener("htmx:before:response", (event) => {
    const { sourceElement: part, response } = event.detail.ctx;
    if (!part.matches?.("[data-live]")) return;
    if (isGone(response)) retire(part, response.status);
    else if (response.status >= 400 && !ofService(response)) event.preventDefault(); // the part stays as it is
  });
  // A notice that is shown already is not added again. Its request id does not count.
  const wordsOf = (notice) => {
    const copy = notice.cloneNode(true);
    for (const id of $$(".mono", copy)) id.remove();
    return copy.textContent.replace(/\s+/g, " ").trim();
  };
  const isShown = (notice) => $$("#notices > .note").some((shown) => wordsOf(shown) === wordsOf(notice));
  document.addEventListener("htmx:before:swap", (event) => {
    const { hx, text } = event.detail.ctx;
    if (hx?.retarget !== "#notices") return;
    const notice = $(".note", new DOMParser().parseFromString(text, "text/html"));
    if (notice && isShown(notice)) event.preventDefault();
  });
  const refresh = (topics) => {
    for (const part of liveParts()) {
      if (topics && !part.dataset.live.split(" ").some((t) => topics.includes(t))) continue;
      const due = (last.get(part.id) ?? 0) + Number(part.dataset.every ?? 0) * 1000 - Date.now();
      if (due <= 0) fetchAnew(part.id); else fetchLater(part.id, due);
    }
  };
  const listen = () => {
    const topics = [...new Set(liveParts().flatMap((e) => e.dataset.live.split(" ")))].sort().slice(0, 64);
    const wanted = document.hidden ? "" : topics.map((t) => "on=" + encodeURIComponent(t)).join("&");
    if (wanted === listening) return;
    const late = listening === "" && wanted !== "" && document.documentElement.dataset.heard === "yes";
    listening = wanted;
    if (late) refresh(null); // the page was hidden: anything may have changed
    connect();
  };
  // connect opens a stream of what is listened to, instead of the one before.
  const connect = () => {
    clearTimeout(again);
    stream?.close();
    stream = null;
    if (!listening) return;
    document.documentElement.dataset.heard = "yes";
    // The first stream hears what has changed since the page was made.
    const mine = new EventSource("/live?" + listening + "&since=" + encodeURIComponent(document.documentElement.dataset.mark ?? ""));
    stream = mine;
    mine.onopen = () => {
      document.documentElement.dataset.live = "on";
      clearTimeout(broken);
      broken = refusals = 0;
      $("#interrupted").hidden = true;
      if (lost) refresh(null);
      lost = false;
    };
    mine.onmessage = (event) => refresh(event.data.split(" "));
    mine.onerror = () => {
      document.documentElement.dataset.live = "off";
      lost = true;
      if (mine.readyState === EventSource.CLOSED) refused(mine);
      const since = new Date().toISOString();
      broken ||= setTimeout(() => { // a short break is no news
        const note = $("#interrupted"), at = $("time", note);
        at.dateTime = since;
        at.title = since.replace("T", " ").slice(0, 19) + " UTC";
        note.hidden = false;
        tick();
      }, 5000);
    };
  };
  // refused opens a stream again after 5 seconds, and later after up to 30, unless the
  // session has ended. Pages do not all come back at the same instant.
  const refused = async (mine) => {
    const pause = Math.min(24_000, 5000 * 2 ** refusals++) * (1 + Math.random() / 4);
    try {
      if (await ask(idle) === null) return;
    } catch { /* the service cannot be reached */ }
    if (stream === mine) again = setTimeout(connect, pause);
  };
  document.addEventListener("visibilitychange", () => { listen(); tick(); });
  document.addEventListener("htmx:after:swap", () => { listen(); tick(); dressTheme(); });
  addEventListener("pagehide", () => { listening = ""; connect(); });
  addEventListener("pageshow", listen);

  // ── Dialogs, menus, copying, notices ───────────────────────────────────
  const open = (id) => {
    const dialog = document.getElementById(id);
    if (!dialog || dialog.open) return dialog;
    for (const popup of $$("details[data-popup][open]")) popup.open = false;
    dialog.showModal();
    $("input:not([type=hidden]):not([disabled]), textarea, select", dialog)?.focus();
    for (const form of $$("form[data-proof]", dialog)) askPassword(form).catch(() => {}); // it is asked for when the form is sent
    return dialog;
  };
  // A button that a live part got after the page was made may have no dialog on it: the page is loaded again, and opens it.
  // The person may come to another device's page first, over a page without this script: a dialog opens at its own address alone.
  const toOpen = "to-open";
  const here = () => location.pathname + location.search;
  const openOrReload = (id) => {
    if (open(id)) return;
    sessionStorage.setItem(toOpen, here() + "#" + id);
    location.replace(here()); // a reload could send a form again
  };
  const openAfterReload = () => {
    const wanted = sessionStorage.getItem(toOpen);
    sessionStorage.removeItem(toOpen);
    const [address, id] = wanted?.split("#") ?? [];
    if (address === here()) open(id);
  };
  const copy = async (button) => {
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
    } catch {
      const area = document.createElement("textarea");
      area.value = button.dataset.copy;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    button.dataset.copied = "yes";
    say("Copied");
    setTimeout(() => { delete button.dataset.copied; }, 1500);
  };
  document.addEventListener("click", (event) => {
    const at = (selector) => event.target.closest?.(selector);
    let hit;
    if ((hit = at("[data-copy]"))) { event.preventDefault(); copy(hit); }
    else if ((hit = at("[data-opens]"))) { event.preventDefault(); openOrReload(hit.dataset.opens); }
    else if ((hit = at("[data-close]"))) hit.closest("dialog")?.close();
    else if ((hit = at("[data-dismiss]"))) hit.closest(".note")?.remove();
    else if (at("[data-palette]")) palette.show();
    else if (at("[data-help]")) open("help");
    else if ((hit = at("[data-choose]"))) chooseTheme(hit.dataset.choose);
    else if ((hit = at("[data-print]"))) print();
    else if ((hit = at("[data-reveal]"))) reveal(hit);
    else if ((hit = at("[data-fullscreen]"))) document.getElementById(hit.dataset.fullscreen)?.requestFullscreen?.();
    else if ((hit = at("tr[data-row]")) && !at("a, button, input, label, select, summary, details > *") && !String(getSelection())) $("a[data-open]", hit)?.click();
    else if ((hit = at("[data-toggles]"))) {
      const shown = document.getElementById(hit.dataset.toggles).toggleAttribute("data-open");
      hit.setAttribute("aria-expanded", String(shown));
    }
    if (event.target.tagName === "DIALOG") {
      const box = event.target.getBoundingClientRect();
      const inside = event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
      if (!inside && event.target.dataset.stay === undefined) event.target.close();
    }
    for (const popup of $$("details[data-popup][open]")) if (!popup.contains(event.target)) popup.open = false;
  });
  const reveal = (button) => {
    const input = document.getElementById(button.dataset.reveal);
    const hidden = input.type === "password";
    input.type = hidden ? "text" : "password";
    button.setAttribute("aria-pressed", String(hidden));
  };
  // A button with data-wants="<id of an input>" wakes when the input's text is
  // the button's data-text; case, outer spaces and composition aside, as the server compares.
  document.addEventListener("input", (event) => {
    for (const button of $$("button[data-wants]")) {
      if (button.dataset.wants !== event.target.id) continue;
      const same = (text) => text.trim().normalize("NFC").toUpperCase().toLowerCase().normalize("NFC");
      button.disabled = same(event.target.value) !== same(button.dataset.text);
    }
  });
  const dress = () => {
    for (const button of $$("button[data-wants]")) {
      const input = document.getElementById(button.dataset.wants);
      if (input) input.dispatchEvent(new Event("input", { bubbles: true }));
    }
  };
  // A form with data-guard asks before it is left with changes, unless it is
  // what is sent.
  let sent = false;
  const changed = (field) => field.type === "checkbox" || field.type === "radio" ? field.checked !== field.defaultChecked :
    field.options ? [...field.options].some((o) => o.selected !== o.defaultSelected) : field.defaultValue !== undefined && field.value !== field.defaultValue;
  document.addEventListener("submit", (event) => { sent = event.target.matches("form[data-guard]"); });
  addEventListener("pageshow", () => { sent = false; });
  addEventListener("beforeunload", (event) => {
    if (!sent && $$("form[data-guard]").some((form) => [...form.elements].some(changed))) event.preventDefault();
  });
  // A box with data-implies="A B" ticks the boxes of its form with these values,
  // and unticking one of them unticks it.
  document.addEventListener("change", (event) => {
    const box = event.target;
    if (!box.form || box.type !== "checkbox") return;
    const named = (value) => $$("input[type=checkbox]", box.form).find((other) => other.name === box.name && other.value === value);
    if (box.checked) for (const value of (box.dataset.implies ?? "").split(" ")) { const other = named(value); if (other) other.checked = true; }
    else for (const other of $$("input[data-implies]", box.form)) if (other.dataset.implies.split(" ").includes(box.value)) other.checked = false;
  });
  // A link with data-chooses="A B" ticks these boxes of its form and no others, and
  // leaves what was typed.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("[data-chooses]");
    if (!link) return;
    event.preventDefault();
    const wanted = link.dataset.chooses.split(" ");
    for (const box of $$("input[name=permission]", link.closest("form"))) box.checked = !box.disabled && wanted.includes(box.value);
  });
  // A change within data-ticks="name" ticks the box of that name, and unticking that box takes back the changes.
  document.addEventListener("change", (event) => {
    const box = event.target, name = box.closest?.("[data-ticks]")?.dataset.ticks;
    if (name) box.form.elements.namedItem(name).checked = true;
    else if (box.form && box.type === "checkbox" && !box.checked) {
      for (const part of $$("[data-ticks]", box.form).filter((part) => part.dataset.ticks === box.name)) {
        for (const one of $$("input[type=checkbox]", part)) one.checked = one.defaultChecked;
      }
    }
  });
  // A control with data-submits sends its form when it changes.
  document.addEventListener("change", (event) => {
    if (event.target.matches?.("[data-submits]")) event.target.form?.requestSubmit();
  });

  // ── Theme ──────────────────────────────────────────────────────────────
  const dressTheme = () => {
    const choice = localStorage.getItem("theme") ?? "system";
    for (const b of $$("[data-choose]")) b.setAttribute("aria-pressed", String(b.dataset.choose === choice));
  };
  const chooseTheme = (choice) => {
    if (choice === "system") localStorage.removeItem("theme"); else localStorage.setItem("theme", choice);
    dispatchEvent(new StorageEvent("storage"));
    dressTheme();
    document.dispatchEvent(new CustomEvent("theme"));
  };

  // ── Command palette ────────────────────────────────────────────────────
  const palette = {
    dialog: $("#palette"), input: $("#palette-input"), list: $("#palette-list"),
    current: 0, asked: 0, timer: 0,
    pending: false, eager: false, // a search is under way; Enter was pressed during it
    show() {
      if (!this.dialog || this.dialog.open) return;
      this.dialog.showModal();
      this.input.value = "";
      this.filter();
      this.input.focus();
    },
    items() { return $$("[role=option]:not([hidden])", this.list); },
    mark(n) {
      const items = this.items();
      this.current = items.length ? (n + items.length) % items.length : 0;
      items.forEach((item, i) => item.setAttribute("aria-selected", String(i === this.current)));
      items[this.current]?.scrollIntoView({ block: "nearest" });
      this.input.setAttribute("aria-activedescendant", items[this.current]?.id ?? "");
    },
    filter() {
      const text = this.input.value.trim().toLowerCase();
      for (const item of $$("[data-found]", this.list)) item.remove();
      for (const item of $$("[role=option]", this.list)) item.hidden = !item.textContent.toLowerCase().includes(text);
      clearTimeout(this.timer);
      this.asked++;
      this.eager = false;
      this.pending = text.length >= 2;
      if (this.pending) this.timer = setTimeout(() => this.search(text), 150);
      this.settle();
    },
    settle() {
      this.mark(0);
      $("#palette-nothing").hidden = this.pending || this.items().length > 0;
      if (!this.pending && this.eager) this.enter();
    },
    // Enter before the answer is meant for its first result.
    enter() {
      const item = this.items()[this.current];
      if (item) this.go(item); else this.eager = this.pending;
    },
    async search(text) {
      const mine = ++this.asked;
      const answer = await ask(this.list.dataset.search + "?q=" + encodeURIComponent(text), { headers: { "HX-Request-Type": "partial" } });
      const found = answer?.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
      if (mine !== this.asked) return;
      this.pending = false;
      for (const item of $$("[data-found]", this.list)) item.remove();
      if (found) this.list.append(...$$("li", found.body));
      this.settle();
    },
    go(item) { if (item?.dataset.href) location.assign(item.dataset.href); },
  };
  palette.input?.addEventListener("input", () => palette.filter());
  palette.input?.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") palette.mark(palette.current + 1);
    else if (event.key === "ArrowUp") palette.mark(palette.current - 1);
    else if (event.key === "Enter") palette.enter();
    else return;
    event.preventDefault();
  });
  palette.list?.addEventListener("click", (event) => palette.go(event.target.closest("[role=option]")));

  // ── Keys ───────────────────────────────────────────────────────────────
  let going = 0;
  const rows = () => $$("tr[data-row]");
  const moveRow = (by) => {
    const all = rows();
    const at = all.findIndex((r) => r.contains(document.activeElement));
    const next = all[Math.max(0, Math.min(all.length - 1, at + by))];
    ($("a[data-open]", next) ?? $("a", next))?.focus();
  };
  document.addEventListener("keydown", (event) => {
    if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") { event.preventDefault(); palette.show(); return; }
    if (event.metaKey || event.ctrlKey || event.altKey) return;
    if (event.key === "Escape" && !$("dialog[open]")) {
      for (const popup of $$("details[data-popup][open]")) {
        popup.open = false;
        if (popup.contains(document.activeElement)) $("summary", popup).focus();
      }
      const menu = $("#menu[data-open]");
      if (menu) $("[data-toggles=menu]").click();
      if (!event.target.closest?.("input[type=search]")) for (const box of $$("tr[data-row] input[name=id]:checked")) box.click();
    }
    if (event.target.closest?.("input:not([type=checkbox]):not([type=radio]), textarea, select, dialog[open]")) return;
    if (going && Date.now() - going < 1500) {
      going = 0;
      const link = $(`[data-go="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); }
      return;
    }
    const row = document.activeElement?.closest?.("tr[data-row]");
    switch (event.key) {
      case "g": going = Date.now(); return;
      case "/": { const field = $("[data-find]"); if (field) { event.preventDefault(); field.focus(); field.select(); } return; }
      case "j": moveRow(1); return;
      case "k": moveRow(-1); return;
      case "x": $("input[type=checkbox]", row ?? document.createElement("i"))?.click(); return;
      case "?": open("help"); return;
    }
  });

    // ── The list that a device was opened from ─────────────────────────────
  // Its address and how far it was scrolled, kept for the way back.
  const listKept = "devices:list";
  const keepList = () => {
    const box = $("#list-box");
    if (box) sessionStorage.setItem(listKept, JSON.stringify({ url: location.pathname + location.search, top: box.scrollTop, page: scrollY }));
  };
  const restoreList = () => {
    let kept = null;
    try { kept = JSON.parse(sessionStorage.getItem(listKept)); } catch { /* what is no JSON is not ours */ }
    if (!kept) return;
    const back = $("a[data-back-to-list]");
    if (back) back.href = kept.url;
    const box = $("#list-box"), came = performance.getEntriesByType("navigation")[0]?.type;
    if (box && kept.url === location.pathname + location.search && (came === "back_forward" || sessionStorage.getItem(listKept + ":back"))) {
      box.scrollTop = kept.top;
      scrollTo(0, kept.page);
    }
    sessionStorage.removeItem(listKept + ":back");
  };
  document.addEventListener("click", (event) => {
    if (event.target.closest?.("a[data-back-to-list]")) sessionStorage.setItem(listKept + ":back", "yes");
  });
  addEventListener("pagehide", keepList);

  window.portal = { say, open, refresh, ask };
  // The current tab is in sight, also where the tabs are wider than the screen.
  const showTabs = () => {
    for (const tab of $$("[data-tabs] > [aria-current]")) {
      const row = tab.parentElement, over = tab.getBoundingClientRect().right - row.getBoundingClientRect().right;
      if (over > 0) row.scrollLeft += over;
    }
  };
  // A dialog whose form was posted and refused is shown again. The address is that of the page, so that it can be loaded again.
  const showAgain = () => {
    for (const form of $$("dialog [data-shown]")) {
      if (form.dataset.shown) history.replaceState(history.state, "", form.dataset.shown);
      open(form.closest("dialog").id);
    }
  };
  const begin = () => { dressTheme(); tick(); dress(); restoreList(); showTabs(); listen(); showAgain(); openAfterReload(); };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin); else begin();
})();

// Lists: selection, and plans for several devices.
(() => {
  "use strict";
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const count = () => {
    const n = $$("input[name=id]:checked").length;
    for (const e of $$("[data-selected]")) e.textContent = `${n} selected`;
  };
  document.addEventListener("change", (event) => {
    if (event.target.matches?.("[data-all]")) {
      for (const box of $$("input[name=id]", event.target.form)) box.checked = event.target.checked;
    }
    if (event.target.matches?.("[data-all], input[name=id]")) count();
  });
  document.addEventListener("click", (event) => {
    const titled = event.target.closest?.("[data-titles]");
    if (titled) {
      document.getElementById(titled.dataset.titles).textContent = titled.dataset.title;
      document.getElementById("drawer-body").textContent = "Loading …";
    }
    if (event.target.closest?.("[data-opens=save-view]")) {
      for (const e of $$("[data-query]")) e.value = location.search.slice(1);
    }
  });

  // A start in the time of this computer.
  document.addEventListener("change", (event) => {
    const field = event.target.closest?.("[data-utc]");
    if (field) document.getElementById(field.dataset.utc).value = field.value ? new Date(field.value).toISOString() : "";
  });
})();

// Enrollment: spaces at the ends of a network's name, which are part of it.
(() => {
  "use strict";
  document.addEventListener("input", (event) => {
    const at = event.target.dataset?.spaces;
    if (!at) return;
    const text = event.target.value, shown = document.getElementById(at);
    shown.hidden = text === text.trim();
    shown.textContent = "The name is “" + text.replace(/^ +| +$/g, (s) => "␣".repeat(s.length)) + "”";
  });
})();
