import { formatDuration, formatTime, parseDuration, parseTime, type Range, type Zone } from "./time";

// What the page shows, as the part of its address behind "#". A link reproduces the page exactly.

export const views = ["dashboards", "explore", "sql", "explain", "lake", "cardinality", "queries", "targets", "rules", "alerts", "status"] as const;
export type View = (typeof views)[number];

export interface PanelState {
  expr: string;
  tab: "graph" | "heatmap" | "table";
  stacked: boolean;
  log: boolean;
  exemplars: boolean;
  step?: number; // ms; without one the panel's width decides
}

export interface State {
  view: View;
  range: Range;
  zone: Zone;
  asOf?: number; // ms
  refresh: number; // ms; 0: never
  tenant: string;
  dash: string; // id of the dashboard; "" is the first
  vars: Record<string, string[]>; // chosen values of its variables
  panel: string; // id of the panel that an embedded page shows
  panels: PanelState[];
  sql: string; // the statement
  chart: boolean; // the result of the statement is drawn
  filter: string; // text that the listed targets, rules and alerts contain; the selector of cardinality
  only: string; // their state, "" lists all; the focus label of cardinality; the days of queries
  compare: boolean; // cardinality beside that of the range before
}

export const emptyPanel = (expr = ""): PanelState => ({ expr, tab: "graph", stacked: false, log: false, exemplars: false });

export function initial(): State {
  return { view: "dashboards", range: { length: 3_600_000 }, zone: "local", refresh: 0, tenant: "", dash: "", vars: {}, panel: "", panels: [emptyPanel()], sql: "", chart: false, filter: "", only: "", compare: false };
}

// parts are what only some views show. The address has those of its view; the page keeps the
// others.
const parts: Partial<Record<View, readonly (keyof State)[]>> = {
  dashboards: ["dash", "vars", "panel"],
  explore: ["panels"],
  explain: ["panels"],
  sql: ["sql", "chart"],
  cardinality: ["filter", "only", "compare"],
  queries: ["only"],
  targets: ["filter", "only"],
  rules: ["filter", "only"],
  alerts: ["filter", "only"],
};

// shownBy is a state with what a view shows of one state, and otherwise that of another one.
function shownBy(view: View, of: State, others: State): State {
  const hidden = Object.values(parts).flat().filter((key) => !parts[view]?.includes(key));
  return { ...of, ...Object.fromEntries(hidden.map((key) => [key, others[key]])) };
}

// The parameters that are texts of the state, and those of a panel that are "1" or not there.
const texts = [["tenant", "tenant"], ["dash", "dash"], ["panel", "panel"], ["sql", "sql"], ["filter", "filter"], ["state", "only"]] as const;
const flags = [["stacked", "stacked"], ["log", "log"], ["show_exemplars", "exemplars"]] as const;

// encode writes what the view shows, as far as it differs from a new page. Names of parameters are
// those of Prometheus' page where it has them.
export function encode(state: State): string {
  const none = initial();
  const s = shownBy(state.view, state, none);
  const p = new URLSearchParams();
  if (s.range.length !== none.range.length) p.set("range", formatDuration(s.range.length));
  if (s.range.end !== undefined) p.set("end", formatTime(s.range.end, "utc") + "Z");
  if (s.zone === "utc") p.set("tz", "utc");
  if (s.asOf !== undefined) p.set("as_of", formatTime(s.asOf, "utc") + "Z");
  if (s.refresh) p.set("refresh", formatDuration(s.refresh));
  for (const [name, key] of texts) if (s[key]) p.set(name, s[key]);
  for (const [name, values] of Object.entries(s.vars)) for (const v of values) p.append(`var-${name}`, v);
  s.panels.forEach((g, i) => {
    if (!g.expr && s.panels.length === 1) return;
    p.set(`g${i}.expr`, g.expr);
    if (g.tab !== "graph") p.set(`g${i}.tab`, g.tab);
    for (const [name, key] of flags) if (g[key]) p.set(`g${i}.${name}`, "1");
    if (g.step !== undefined) p.set(`g${i}.step_input`, formatDuration(g.step));
  });
  if (s.chart) p.set("sql.tab", "chart");
  if (s.compare) p.set("compare", "1");
  // Fragments may have these characters, and people read them.
  const text = p.toString().replace(/%(?:2[1489CF]|3[AD]|40|7E)/g, decodeURIComponent);
  return `#/${s.view}${text && `?${text}`}`;
}

// decode reads what encode wrote. What it cannot read keeps its default; what the view does not
// show is that of the state before.
export function decode(hash: string, before = initial()): State {
  const s = initial();
  const m = /^#\/([a-z]+)(?:\?(.*))?$/s.exec(hash);
  if (!m) return s;
  s.view = views.find((v) => v === m[1]) ?? s.view; // machine, in old links, is the first dashboard
  Object.assign(s, shownBy(s.view, s, before));
  const p = new URLSearchParams(m[2] ?? "");
  const range: Range = { length: parseDuration(p.get("range") ?? "") ?? s.range.length };
  const end = parseTime(p.get("end") ?? "", "utc", Date.now());
  if (end !== undefined) range.end = end;
  s.range = range;
  if (p.get("tz") === "utc") s.zone = "utc";
  const asOf = parseTime(p.get("as_of") ?? "", "utc", Date.now());
  if (asOf !== undefined) s.asOf = asOf;
  s.refresh = parseDuration(p.get("refresh") ?? "") ?? 0;
  for (const [name, key] of texts) s[key] = p.get(name) ?? s[key];
  s.vars = { ...s.vars };
  for (const key of new Set(p.keys())) if (key.startsWith("var-")) s.vars[key.slice(4)] = p.getAll(key);
  const panels: PanelState[] = [];
  for (let i = 0; p.has(`g${i}.expr`); i++) {
    const g = emptyPanel(p.get(`g${i}.expr`) ?? "");
    const tab = p.get(`g${i}.tab`);
    if (tab === "table" || tab === "heatmap") g.tab = tab;
    for (const [name, key] of flags) g[key] = p.get(`g${i}.${name}`) === "1";
    const step = parseDuration(p.get(`g${i}.step_input`) ?? "");
    if (step !== undefined) g.step = step;
    panels.push(g);
  }
  if (panels.length) s.panels = panels;
  s.chart ||= p.get("sql.tab") === "chart";
  s.compare ||= p.get("compare") === "1";
  return s;
}

// The expressions that were asked last, the newest first, kept by the browser.
const historyKey = "promlake.history";
const historyLength = 200;

export function pastExpressions(): string[] {
  try {
    const v: unknown = JSON.parse(localStorage.getItem(historyKey) ?? "[]");
    return Array.isArray(v) ? v.filter((e): e is string => typeof e === "string") : [];
  } catch {
    return [];
  }
}

export function remember(expr: string): void {
  if (!expr.trim()) return;
  try {
    localStorage.setItem(historyKey, JSON.stringify([expr, ...pastExpressions().filter((e) => e !== expr)].slice(0, historyLength)));
  } catch {
    // A browser that stores nothing has no history.
  }
}
