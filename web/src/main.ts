import "uplot/dist/uPlot.min.css";
import "./page.css";
import { Api } from "./api";
import { CardinalityView } from "./cardinality";
import { idOf, type Saved } from "./dashboards/sources";
import { DashboardsView } from "./dashboards/view";
import { choice, h, focusIn, popup, replace } from "./dom";
import { editor } from "./editor";
import { explanation } from "./explain";
import { arrival } from "./explore/arrival";
import { ExploreView } from "./explore/view";
import { LakeView } from "./lake";
import { StatusView } from "./lists";
import { Listing } from "./monitoring/listing";
import { alerts, monitored, rules } from "./monitoring/rules";
import { targets } from "./monitoring/targets";
import type { Context } from "./context";
import { QueriesView } from "./queries";
import { SqlView } from "./sql/view";
import { table } from "./table";
import { decode, emptyPanel, encode, type PanelState, type State, type View } from "./state";
import { bounds, formatDuration, formatTime, parseDuration, parseTime, stepFor } from "./time";

const titles: readonly (readonly [View, string])[] = [
  ["dashboards", "Dashboards"],
  ["explore", "Explore"],
  ["sql", "SQL"],
  ["explain", "Explain"],
  ["lake", "Lake"],
  ["cardinality", "Cardinality"],
  ["queries", "Queries"],
  ["targets", "Targets"],
  ["rules", "Rules"],
  ["alerts", "Alerts"],
  ["status", "Status"],
];
const ranges = ["5m", "15m", "1h", "6h", "1d", "2d", "7d", "30d", "90d", "365d"] as const;

// An embedded page shows one panel, and nothing that changes it.
const embedded = new URLSearchParams(location.search).has("embed");
const api = new Api(new URL(".", location.href));
let state: State = decode(location.hash);
let saved: Saved | undefined; // the dashboard that Explore's panels came from or went to
let shown: { dom: HTMLElement; refresh(automatic?: boolean): void; focus?(): void; setEmpty?(empty: boolean): void; destroy(): void } = { dom: h("div"), refresh() {}, destroy() {} };
// Views that not every server has. A link opens them in any case.
const absent = new Set<View>(["sql", "queries", "targets", "rules", "alerts"]);
let timer: ReturnType<typeof setInterval> | undefined;

const main = h("main", { id: "view", tabIndex: -1 });
const nav = h("nav", { "aria-label": "Views" });
const controls = h("div", { class: "controls" });
const menu = popup("Menu: as of, time zone, tenant, token, theme, keyboard", "");
const past = h("div", { class: "past", role: "status" }); // the data is that of an earlier time
const nothing = h("div", { class: "warn", role: "status" }); // the tenant has no data
let none: boolean | undefined; // the tenant has no data; undefined until the server answers
const watch = arrival(api, (empty) => {
  const changed = none !== empty;
  none = empty;
  shown.setEmpty?.(empty);
  if (changed) links();
});
const sign = h("dialog", { class: "sign", "aria-label": "Token" });

const context: Context = {
  api,
  range: () => state.range,
  zone: () => state.zone,
  asOf: () => state.asOf,
  zoom: (start, end) => {
    if (!embedded) update({ range: { length: Math.max(1_000, Math.round(end - start)), end: Math.round(end) } });
  },
  setLength: (length) => update({ range: { ...state.range, length: Math.round(length) } }),
};

// save writes the state into the address. A change that the user may want to undo is an entry of
// the browser's history.
function save(): void {
  const hash = encode(state);
  if (hash !== location.hash) history.pushState(null, "", hash);
  links();
}

// note writes the state into the address, without an entry of the browser's history.
function note(change: Partial<State>): void {
  state = { ...state, ...change };
  history.replaceState(null, "", encode(state));
  links();
}

function update(change: Partial<State>): void {
  const view = state.view;
  state = { ...state, ...change };
  save();
  header();
  if (state.view === view) shown.refresh();
  else open();
}

// opening opens a view with an expression.
const opening = (view: View) => (expr: string) => {
  const change = { view, panels: [emptyPanel(expr), ...state.panels.filter((p) => p.expr && p.expr !== expr)] };
  if (embedded) window.open(new URL(encode({ ...state, ...change }), new URL(".", location.href)), "_blank", "noopener");
  else update(change);
};
const explore = opening("explore");
const explain = opening("explain");

const edit = (panels: PanelState[], s: Saved) => {
  saved = s;
  update({ view: "explore", panels });
};

const dashboards = () => new DashboardsView(context, () => state, update, explore, explain, edit, embedded);

// view makes the view that the state names.
function view(): typeof shown {
  if (embedded) return dashboards();
  switch (state.view) {
    case "dashboards":
      return dashboards();
    case "explore":
      return new ExploreView(context, () => state, save, explain, (sql) => update({ view: "sql", sql, chart: true }), () => saved, (s) => {
        saved = s;
        update({ view: "dashboards", dash: idOf(s.name), vars: {} });
      });
    case "sql":
      return new SqlView(context, () => state, (change) => {
        state = { ...state, ...change };
        save();
      });
    case "explain":
      return openExplain();
    case "lake":
      return new LakeView(context, switchTo);
    case "cardinality":
      return new CardinalityView(context, () => state, update, explore);
    case "queries":
      return new QueriesView(context, () => state, update);
    case "status":
      return new StatusView(api);
    default:
      return new Listing(context, { targets: targets(context, explain), rules: rules(explore), alerts: alerts(context, explore, explain) }[state.view], () => state, note);
  }
}

function open(): void {
  shown.destroy();
  document.title = `${titles.find(([v]) => v === state.view)![1]} · Promlake`;
  shown = view();
  replace(main, shown.dom);
  if (none !== undefined) shown.setEmpty?.(none);
  if (state.view === "explore" ? !state.panels[0]?.expr : state.view === "sql" && !state.sql) shown.focus?.();
  shown.refresh();
}

function openExplain(): typeof shown {
  const out = h("div", { class: "plan" });
  const ask = (analyze: boolean) => {
    const expr = input.text();
    state.panels[0] = { ...(state.panels[0] ?? emptyPanel()), expr };
    save();
    if (!expr.trim()) return replace(out);
    const b = bounds(state.range, Date.now());
    void explanation(api, out, expr, b.start, b.end, state.panels[0].step ?? stepFor(state.range.length, main.clientWidth), state.asOf, analyze);
  };
  const input = editor(api, state.panels[0]?.expr ?? "", () => ask(false));
  const dom = h("section", { class: "panel", "aria-label": "Explain" }, h("div", { class: "row" }, input.dom, h("button", { type: "button", class: "primary", onclick: () => ask(false) }, "Estimate"), h("button", { type: "button", onclick: () => ask(true) }, "Run and measure")), out);
  return { dom, refresh: () => ask(false), destroy: () => input.destroy() };
}

const visible = (view: View) => !absent.has(view) || view === state.view;

// links keeps the links to the views, so that the keyboard's focus stays on them.
const anchors = new Map(titles.map(([view, title]) => [view, h("a", {}, title)] as const));
nav.append(...anchors.values());

function links(): void {
  for (const [view, a] of anchors) {
    a.href = encode(switched(view));
    a.hidden = !visible(view);
    if (view === state.view) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  if (!none || state.view === "explore") replace(nothing);
  else replace(nothing, state.tenant ? `No data for tenant ${state.tenant}. ` : "No data yet. ", h("a", { href: encode(switched("explore")) }, "How to send some"));
  nav.scrollLeft = anchors.get(state.view)!.offsetLeft - 60; // where the links have no room for all
}

// switched is the state with another view. Filters are of one view.
function switched(view: View): State {
  return view === state.view ? state : { ...state, view, filter: "", only: "", compare: false };
}

// detect finds out which views the server has for the tenant and the token.
async function detect(): Promise<void> {
  const has = async (views: View[], answer: Promise<boolean>) => {
    const yes = await answer;
    for (const v of views) absent[yes ? "delete" : "add"](v);
    links();
  };
  // A server that does not answer, or wants a token first, may have SQL.
  const sql = api.quiet<{ api?: Record<string, boolean> }>("features").then((f) => f?.api?.["sql"] ?? true);
  watch();
  const queries = api.quiet("status/active_queries").then((q) => q !== undefined);
  await Promise.all([has(["sql"], sql), has(["queries"], queries), has(["targets", "rules", "alerts"], monitored(api))]);
}

function header(): void {
  links();
  const length = formatDuration(state.range.length);
  const options = ranges.map((r) => [r, `Last ${r}`] as const);
  const known = ranges.some((r) => r === length);
  const range = choice("Length of the time range", known ? options : [[length, length], ...options], length, (v) => update({ range: { ...state.range, length: parseDuration(v)! } }));
  const setAsOf = (asOf: number | undefined) => {
    const { asOf: _, ...rest } = state;
    state = asOf === undefined ? rest : { ...rest, asOf };
    update({});
  };
  const named = (name: string, field: HTMLElement) => h("label", {}, h("span", {}, name), field);
  // A change draws the controls anew. The keyboard stays where it was.
  const refocus = focusIn(bar);
  replace(
    controls,
    range,
    moment("End", "now", state.range.end, (end) => update({ range: end === undefined ? { length: state.range.length } : { length: state.range.length, end } })),
    choice("Refresh", [["0", "No refresh"], ["5s", "Every 5s"], ["15s", "Every 15s"], ["1m", "Every 1m"], ["5m", "Every 5m"]], state.refresh ? formatDuration(state.refresh) : "0", (v) => update({ refresh: parseDuration(v) ?? 0 })),
    menu,
  );
  replace(menu.querySelector("summary")!, `☰ ${state.tenant}`.trim());
  replace(
    menu.querySelector(".several-list")!,
    named("As of", moment("As of", "latest data", state.asOf, setAsOf)),
    named("Time zone", choice("Time zone", [["local", "Local time"], ["utc", "UTC"]], state.zone, (v) => update({ zone: v === "utc" ? "utc" : "local" }))),
    named("Tenant", tenant()),
    h("button", { type: "button", onclick: () => askToken(""), title: "Set the bearer token" }, "Token"),
    h("button", { type: "button", onclick: toggleTheme, title: "Switch between dark and light" }, "Theme"),
    h("button", { type: "button", onclick: () => help.showModal() }, "Keyboard shortcuts"),
  );
  replace(past, ...(state.asOf === undefined ? [] : [`As of ${formatTime(state.asOf, state.zone)} `, h("button", { type: "button", onclick: () => setAsOf(undefined) }, "Latest data")]));
  refocus();
  clearInterval(timer);
  timer = state.refresh ? setInterval(() => !document.hidden && shown.refresh(true), state.refresh) : undefined;
}

// moment is a field for a time; an empty field means none.
function moment(label: string, none: string, at: number | undefined, set: (at: number | undefined) => void): HTMLElement {
  const f = h("input", { class: "moment", placeholder: `${label}: ${none}`, "aria-label": `${label}: a time such as 2026-01-31 14:03 or now-1h; empty means ${none}`, value: at === undefined ? "" : formatTime(at, state.zone) });
  f.addEventListener("change", () => {
    const t = f.value.trim();
    const v = t ? parseTime(t, state.zone, Date.now()) : undefined;
    f.setCustomValidity(t && v === undefined ? "Write a time such as 2026-01-31 14:03, or now-1h." : "");
    if (!f.reportValidity()) return;
    set(v);
  });
  return f;
}

function tenant(): HTMLElement {
  api.tenant = state.tenant;
  const f = h("input", { class: "short", placeholder: "tenant", "aria-label": "Tenant (X-Scope-OrgID); empty means the default", value: state.tenant });
  f.addEventListener("change", () => switchTo(f.value.trim()));
  return f;
}

// switchTo shows the data of another tenant.
function switchTo(tenant: string): void {
  api.tenant = tenant;
  none = undefined;
  update({ tenant });
  void detect();
}

function askToken(why: string): void {
  if (sign.open) return;
  const token = h("input", { type: "password", autocomplete: "off", "aria-label": "Bearer token" });
  const keep = h("input", { type: "checkbox", id: "keep" });
  replace(
    sign,
    h(
      "form",
      {
        method: "dialog",
        onsubmit: () => {
          api.setToken(token.value.trim(), keep.checked);
          shown.refresh();
          void detect();
        },
      },
      h("h2", {}, "Token"),
      why ? h("p", { class: "bad" }, why) : null,
      h("p", {}, "The page keeps the token in memory only, unless you tick the box."),
      token,
      h("p", {}, keep, h("label", { for: "keep" }, " Keep it for this browser tab")),
      h("div", { class: "row" }, h("button", { class: "primary" }, "Use"), h("button", { type: "button", onclick: () => sign.close() }, "Cancel")),
    ),
  );
  sign.showModal();
}
api.onUnauthorized = () => askToken("The server refused the request: it needs a valid token.");

const themeKey = "promlake.theme";

function setTheme(theme: string): void {
  document.documentElement.dataset["theme"] = theme;
}

function toggleTheme(): void {
  const theme = document.documentElement.dataset["theme"] === "dark" ? "light" : "dark";
  setTheme(theme);
  localStorage.setItem(themeKey, theme);
  shown.refresh();
}

function keys(e: KeyboardEvent): void {
  const target = e.composedPath()[0];
  const typing = target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName));
  if (typing || e.ctrlKey || e.metaKey || e.altKey) return;
  const view = titles["1234567890-".indexOf(e.key)];
  if (view) {
    e.preventDefault(); // the view may have an editor, which must not get the key
    if (visible(view[0])) update(switched(view[0]));
  } else if (e.key === "r") shown.refresh();
  else if (e.key === "/") {
    e.preventDefault();
    if (shown.focus) return shown.focus();
    if (state.view !== "explore") update({ view: "explore" });
    main.querySelector<HTMLElement>(".editor")?.focus();
  } else if (e.key === "?") help.showModal();
}

const help = h(
  "dialog",
  { "aria-label": "Keyboard" },
  h("h2", {}, "Keyboard"),
  table("Keys", ["Key", "What it does"], [["1 … 9, 0, -", "open a view"], ["/", "go to the first query, the statement or the filter"], ["Enter, Shift+Enter", "run the query, start a new line"], ["Ctrl+Enter", "run the SQL statement"], ["Arrows, Page Up, Page Down, Ctrl+Home, Ctrl+End", "move in the rows of a statement"], ["Ctrl+Space", "complete; in an empty editor, list earlier queries"], ["r", "refresh"], ["?", "this list"]]),
  h("form", { method: "dialog" }, h("button", { class: "primary" }, "Close")),
);

setTheme(localStorage.getItem(themeKey) ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
const bar = h("header", {}, h("div", { class: "brand" }, "Promlake"), nav, controls, past, nothing);
if (embedded) document.body.append(main, sign);
else document.body.append(h("a", { class: "skip", href: "#view", onclick: (e: Event) => (e.preventDefault(), main.focus()) }, "Skip to the content"), bar, main, sign, help);
document.body.classList.toggle("embedded", embedded);
const follow = () => {
  state = decode(location.hash, state);
  if (!location.hash) {
    // Somebody's first look: the last minutes, live.
    state.refresh = 5_000;
    state.range = { length: 300_000 };
  }
  header();
  open();
};
addEventListener("hashchange", follow); // pushState causes none; back, forward and links do
if (!embedded) addEventListener("keydown", keys);
follow();
if (!embedded) void detect();
