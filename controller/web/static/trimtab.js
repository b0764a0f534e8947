// What pages do beyond reading: theme, keys, local times, and what is live.  Nothing here is needed to read a page.
"use strict";

const MINUTE_MS = 60_000;
const trimtab = {
  isLocal: false,
  // A time as pages write it: 14:31, with the date where it is not today.
  clock(ms, withDate = true) {
    const two = (number) => String(number).padStart(2, "0");
    const at = new Date(ms), now = new Date(trimtab.now());
    const local = trimtab.isLocal;
    const of = (date) => local
      ? [date.getFullYear(), date.getMonth(), date.getDate(), date.getHours(), date.getMinutes()]
      : [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate(), date.getUTCHours(), date.getUTCMinutes()];
    const [year, month, day, hour, minute] = of(at), today = of(now);
    const seconds = ms % MINUTE_MS && ms % 1000 === 0 ? `:${two(at.getUTCSeconds())}` : "";
    const time = `${two(hour)}:${two(minute)}${seconds}`;
    if (!withDate || (withDate !== "always" && year === today[0] && month === today[1] && day === today[2])) return time;
    const date = `${day} ${trimtab.months[month]}${year === today[0] ? "" : ` ${year}`}`;
    return `${date} ${time}`;
  },
  // Two times: of several days each has its date.
  span(since, until) {
    const texts = [since, until].map((ms) => trimtab.clock(ms));
    const dated = texts[0].includes(" ") === texts[1].includes(" ") ? texts : [since, until].map((ms) => trimtab.clock(ms, "always"));
    return dated.join(" to ");
  },
  months: ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
  // The server's clock, so that ages are right whatever this machine's clock says.
  now() {
    return trimtab.servedAt + performance.now() - trimtab.readAt;
  },
  // What a field of the type datetime-local says, epoch ms; it is in UTC, or local like all times of the page.
  timeOf(field) {
    // Where clocks are set back an hour comes twice: until a person changes the field it says the time that was written.
    if (field.dataset.ms && field.dataset.text === field.value) return Number(field.dataset.ms);
    return Date.parse(field.dataset.isLocal ? field.value : `${field.value}Z`);
  },
  fieldText(ms, isLocal) {
    const shift = isLocal ? new Date(ms).getTimezoneOffset() * MINUTE_MS : 0;
    return new Date(ms - shift).toISOString().slice(0, 16);
  },
  post(address, body) {
    return fetch(address, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  },
  // The submit event of *form* starts a job by *send*, which returns a response; the form then shows how far the job is,
  // and opens the page of its result, with *query* in the address.
  startJobs(form, { message, send, query = () => ({}) }) {
    const text = form.querySelector("[data-progress]"), buttons = [...form.querySelectorAll("button")];
    async function answerOf(response) {
      const answer = await response.json().catch(() => ({}));
      if (!response.ok) throw new Error(answer.detail || `the server answers ${response.status}`);
      return answer;
    }
    async function follow(id) {
      for (;;) {
        const job = await answerOf(await fetch(`${form.dataset.jobs}${encodeURIComponent(id)}`));
        text.textContent = `${job.state}${job.progress ? `: ${job.progress}` : ""}`;
        if (job.state !== "waiting" && job.state !== "running") break;
        await new Promise((resolve) => setTimeout(resolve, 1000));
      }
      const url = new URL(form.dataset.here, location.href);
      for (const [key, value] of Object.entries({ ...query(), job: id })) url.searchParams.set(key, value);
      location.href = url;
    }
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      for (const button of buttons) button.disabled = true;
      text.textContent = message;
      try {
        await follow((await answerOf(await send(event))).id);
      } catch (error) {
        text.textContent = `Not done: ${error.message}`;
        for (const button of buttons) button.disabled = false;
      }
    });
    if (form.dataset.job && ["waiting", "running"].includes(form.dataset.state)) {
      follow(form.dataset.job).catch((error) => { text.textContent = `Not known: ${error.message}`; });
    }
  },
  servedAt: Date.now(),
  readAt: performance.now(),
  store: {
    get(key) { try { return localStorage.getItem(`trimtab-${key}`); } catch { return null; } },
    set(key, value) { try { localStorage.setItem(`trimtab-${key}`, value); } catch { /* private mode */ } },
  },
};

(() => {
  const find = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const root = document.documentElement;

  // ---- theme: as the system says, until a person chooses ----

  const chosen = trimtab.store.get("theme");
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  document.addEventListener("DOMContentLoaded", () => {
    for (const button of all("[data-theme-switch]")) {
      button.hidden = false;
      button.addEventListener("click", () => {
        const now = root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
        root.dataset.theme = now === "dark" ? "light" : "dark";
        trimtab.store.set("theme", root.dataset.theme);
        dispatchEvent(new Event("trimtab-redraw"));
      });
    }
    for (const [name, does] of [["local-switch", switchTimes], ["list-keys", listKeys]]) {
      for (const button of all(`[data-${name}]`)) {
        button.hidden = false;
        button.addEventListener("click", does);
      }
    }
  });

  // ---- times: UTC, or local ----

  function writeTimes(from = document) {
    for (const each of all("time[datetime], text[data-at]", from)) {
      each.dataset.utc ??= each.textContent;
      const ms = Date.parse(each.dateTime ?? each.dataset.at);
      each.textContent = trimtab.isLocal && ms ? trimtab.clock(ms) : each.dataset.utc;
      each.title = trimtab.isLocal ? `${each.dataset.utc} UTC` : "";
    }
    for (const field of all('input[type="datetime-local"]', from)) {
      const ms = trimtab.timeOf(field);
      if (trimtab.isLocal) field.dataset.isLocal = "1"; else delete field.dataset.isLocal;
      if (!Number.isNaN(ms)) {
        field.value = field.dataset.text = trimtab.fieldText(ms, trimtab.isLocal);
        field.dataset.ms = ms;
      }
    }
    for (const zone of all("[data-zone]")) zone.textContent = trimtab.isLocal ? "local" : "UTC";
    tick();
  }
  // A form sends UTC, whatever its fields show.
  document.addEventListener("formdata", (event) => {
    for (const field of all('input[type="datetime-local"]', event.target)) {
      if (field.value) event.formData.set(field.name, trimtab.fieldText(trimtab.timeOf(field), false));
    }
  });
  function tick() {
    for (const button of all("[data-local-switch]")) button.setAttribute("aria-pressed", String(trimtab.isLocal));
    const clock = find("[data-clock]");
    if (!clock) return;
    const at = new Date(trimtab.now());
    const text = trimtab.isLocal ? at.toTimeString().slice(0, 8) : at.toISOString().slice(11, 19);
    clock.textContent = `${text} ${trimtab.isLocal ? "local" : "UTC"}`;
  }
  function readClock() {
    const clock = find("[data-clock]");
    if (!clock) return;
    trimtab.servedAt = Number(clock.dataset.clock);
    trimtab.readAt = performance.now();
  }
  function beat() {
    const line = find(".beat");
    if (!line) return;
    const seconds = Number(line.dataset.seconds);
    const rect = find("rect", line);
    rect.style.animationDuration = `${seconds}s`;
    rect.style.animationDelay = `-${line.dataset.passed}s`;
    line.style.visibility = seconds ? "" : "hidden";
  }

  // ---- keys ----

  const KEYS = [
    ["g n", "Now"], ["g m", "Map"], ["g d", "Decisions"], ["g p", "Plans"], ["g c", "Controls"],
    ["/", "Find a broker, namespace or bundle"], ["j k", "Later, earlier decision"], ["t", "UTC or local time"],
    ["← → ↑ ↓", "Map: move the cursor; with Shift ten steps"], ["+ - 0", "Map: zoom in, out, everything"],
    ["b", "Map: begin and end a span"], ["Enter", "Map: details, or zoom into the span"],
    ["v", "Map: brokers or keyspace"], ["m", "Map: moves on or off"], ["Esc", "Clear, close"],
  ];
  function element(name, text = "", attributes = {}) {
    const made = document.createElement(name);
    made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }
  function listKeys() {
    let dialog = find("#keys");
    if (!dialog) {
      dialog = element("dialog", "", { id: "keys", "aria-labelledby": "keys-title" });
      const form = element("form", "", { method: "dialog" }), list = element("dl", "", { class: "pairs" });
      for (const [keys, what] of KEYS) {
        const term = element("dt");
        for (const key of keys.split(" ")) term.append(element("kbd", key), " ");
        list.append(term, element("dd", what));
      }
      const actions = element("div", "", { class: "actions" }), label = element("label", "", { class: "check" });
      const check = element("input", "", { type: "checkbox" });
      check.checked = !("noKeys" in root.dataset);
      check.addEventListener("change", () => setKeys(check.checked));
      label.append(check, "Use these keys (those of the map work in any case, where it has the focus)");
      actions.append(label, element("button", "Close", { class: "primary" }));
      form.append(element("h2", "Keys", { id: "keys-title" }), list, actions);
      dialog.append(form);
      document.body.append(dialog);
    }
    dialog.showModal();
  }
  // Who speaks to the machine presses keys without knowing it, so they can be turned off (WCAG 2.1.4).
  function setKeys(on) {
    trimtab.store.set("keys", on ? "" : "off");
    root.toggleAttribute("data-no-keys", !on);
  }
  root.toggleAttribute("data-no-keys", trimtab.store.get("keys") === "off");
  function switchTimes() {
    trimtab.isLocal = !trimtab.isLocal;
    trimtab.store.set("local", trimtab.isLocal ? "1" : "");
    writeTimes();
    dispatchEvent(new Event("trimtab-redraw"));
  }
  // Nobody has to be quick: g waits for its second key until another key or a click comes between.
  let isGoing = false;
  addEventListener("pointerdown", () => { isGoing = false; });
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || "noKeys" in root.dataset) return;
    if (event.target.closest("input, textarea, select, dialog")) return;
    const key = event.key;
    if (key === "Shift") return;
    const place = isGoing ? find(`.rail [data-keys="g ${CSS.escape(key)}"]`) : null;
    isGoing = key === "g";
    if (place) place.click();
    else if (key === "j" || key === "k") find(`[data-key="${key}"]`)?.click();
    else if (key === "?") listKeys();
    else if (key === "/") {
      event.preventDefault();
      const field = find("main input[type=search]");
      if (field) field.focus(); else find('.rail [data-keys="/"]')?.click();
    } else if (key === "t") switchTimes();
  });

  // ---- live: one message an interval; while the tab is hidden nothing is drawn ----

  const AGAIN_MS = 15_000, ANSWER_MS = 30_000;
  let version = "", waiting = false, overdue = 0, silentSince = 0;
  // No message: the controller may be dead, or the stream, which a browser need not notice.  So the page asks, again and again.
  function expect() {
    clearTimeout(overdue);
    overdue = setTimeout(refresh, 1500 * (Number(find(".beat")?.dataset.seconds) || 60));
  }
  function take(text) {
    const page = new DOMParser().parseFromString(text, "text/html");
    const bridge = find("#bridge", page);
    if (!bridge) return;
    find("#bridge").replaceWith(bridge);
    silentSince = 0;
    const plans = '.rail [data-keys="g p"]', linked = find(plans, page);
    if (linked) find(plans)?.replaceChildren(...linked.childNodes);  // how many proposals wait
    version = page.body.dataset.version ?? version;
    readClock();
    const part = find("[data-live-part]") ? "[data-live-part]" : ".page";  // a form beside it keeps what was entered
    const content = find(part, page), here = find(part);
    const focused = here.contains(document.activeElement) ? document.activeElement : null;
    if ("live" in document.body.dataset && content && !focused?.closest("form")) {
      here.replaceWith(content);
      const by = ["id", "href", "aria-label"].find((name) => focused?.hasAttribute(name));
      if (by) find(`${focused.localName}[${by}="${CSS.escape(focused.getAttribute(by))}"]`, content)?.focus({ preventScroll: true });
    }
    writeTimes();
    beat();
  }
  async function refresh() {
    expect();
    if (document.hidden) { waiting = true; return; }
    waiting = false;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, signal: AbortSignal.timeout(ANSWER_MS) });
      if (answer.redirected) loggedOut(answer.url);
      else if (answer.ok) take(await answer.text());
      else if (answer.status >= 500) notLive();
    } catch {
      setTimeout(notLive, 1000);  // a page that is being left gives up its requests, too
    }
  }
  function notLive() {
    silentSince ||= trimtab.now();
    const bridge = find("#bridge");
    bridge.classList.add("hold");
    find(".state b", bridge).textContent = "This page is not live.";
    find(".state", bridge).lastChild.textContent = ` The server does not answer since ${trimtab.clock(silentSince)}; trying again.`;
  }
  // Only the login page answers from another address.
  function loggedOut(login) {
    const bridge = find("#bridge"), line = find(".line", bridge);
    bridge.classList.add("hold");
    find(".state b", bridge).textContent = "You are logged out.";
    find(".state", bridge).lastChild.textContent = " This page is as it was before.";
    find(".button", line)?.remove();
    const link = element("a", "Log in", { class: "button", href: login });
    line.insertBefore(link, find(".clock", line));
  }
  async function findOut() {
    try {
      const answer = await fetch(location.href, { method: "HEAD", headers: { Accept: "text/html" } });
      if (answer.redirected) loggedOut(answer.url);
    } catch { /* the server is away */ }
  }
  function follow() {
    const address = document.body.dataset.events;
    version = document.body.dataset.version;
    if (!address || !("EventSource" in window)) return;
    let isBroken = false, source;
    function connect() {
      source = new EventSource(address);
      source.addEventListener("interval", hear);
      source.addEventListener("open", () => { if (isBroken) { isBroken = false; refresh(); } });
      source.addEventListener("error", lost);
    }
    function hear(event) {
      let news = {};
      try { news = JSON.parse(event.data); } catch { return; }
      if (String(news.version) === version) return;
      version = String(news.version);
      dispatchEvent(new CustomEvent("trimtab-interval", { detail: news }));
      refresh();
    }
    function lost() {
      // A browser gives up at any answer that is no stream, as a proxy's 502 while the server starts, or our own 429.
      if (source.readyState === EventSource.CLOSED) { setTimeout(connect, AGAIN_MS); findOut(); }
      if (isBroken || document.hidden) return;
      isBroken = true;
      notLive();
    }
    connect();
    expect();
    addEventListener("pagehide", () => source.close());
    addEventListener("pageshow", (event) => { if (event.persisted) connect(); });
    document.addEventListener("visibilitychange", () => { if (!document.hidden && waiting) refresh(); });
  }

  document.addEventListener("DOMContentLoaded", () => {
    trimtab.isLocal = trimtab.store.get("local") === "1";
    readClock();
    writeTimes();
    beat();
    follow();
    setInterval(tick, 1000);
    addEventListener("trimtab-times", () => writeTimes());
    for (const button of all("[data-copy-link]")) {
      button.hidden = false;
      button.addEventListener("click", async () => {
        await navigator.clipboard?.writeText(location.href);
        button.lastChild.textContent = "Copied";
      });
    }
    for (const wide of all("[data-newest]")) wide.scrollLeft = wide.scrollWidth;
  });
})();
