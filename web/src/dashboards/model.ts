// Reads a dashboard as Grafana exports it (https://grafana.com/docs/grafana/latest/, "JSON model").
// Everything in a file may be missing or of another type; what is missing has Grafana's default.

export type Json = Record<string, unknown>;

export interface Target {
  refId: string;
  expr: string;
  legend: string; // legendFormat
  instant: boolean;
  table: boolean; // the format is a table
  interval: string; // least step; "" means that of the panel
}

export interface Place {
  x: number; // of 24 columns
  y: number;
  w: number;
  h: number;
}

export interface PanelSpec {
  type: string;
  title: string;
  description: string;
  place: Place;
  targets: Target[];
  options: Json;
  defaults: Json; // fieldConfig.defaults
  overrides: Json[];
  transformations: Json[];
  interval: string; // least step
  timeFrom: string; // length of the panel's own time range; "" means that of the page
  repeat: string; // name of a variable
  repeatVertical: boolean;
  maxPerRow: number;
  notes: string[]; // what is not supported, found while reading
}

// Section is a row with its panels.
export interface Section {
  title: string; // "" for panels above the first row
  collapsed: boolean;
  repeat: string;
  panels: PanelSpec[];
}

export interface VariableSpec {
  name: string;
  label: string;
  type: string;
  query: string;
  regex: string;
  sort: number;
  multi: boolean;
  includeAll: boolean;
  allValue: string;
  hidden: boolean;
  current: string[];
}

export interface Dashboard {
  title: string;
  description: string;
  sections: Section[];
  variables: VariableSpec[];
  notes: string[];
}

export const isObject = (v: unknown): v is Json => typeof v === "object" && v !== null && !Array.isArray(v);
export const object = (v: unknown): Json => (isObject(v) ? v : {});
export const list = (v: unknown): Json[] => (Array.isArray(v) ? v.filter(isObject) : []);
export const text = (v: unknown, none = ""): string => (typeof v === "string" ? v : typeof v === "number" ? String(v) : none);
export const number = (v: unknown): number | undefined => {
  const n = typeof v === "string" && v.trim() ? Number(v) : v;
  return typeof n === "number" && Number.isFinite(n) ? n : undefined;
};

// mostPanels bounds what a file can make the browser draw.
const mostPanels = 500;

// readText reads a file. It throws an Error that says what is wrong with it.
export function readText(content: string): Dashboard {
  let parsed: unknown;
  try {
    parsed = JSON.parse(content);
  } catch (e) {
    throw new Error(`The file is not JSON: ${e instanceof Error ? e.message : String(e)}.`);
  }
  return read(parsed);
}

// read is readText of parsed JSON.
export function read(parsed: unknown): Dashboard {
  const outer = object(parsed);
  if (isObject(outer["spec"]) || isObject(outer["elements"])) throw new Error("The file has Grafana's dashboard schema v2. Export it as a classic dashboard (JSON model V1).");
  const d = isObject(outer["dashboard"]) ? outer["dashboard"] : outer;
  if (!Array.isArray(d["panels"]) && !Array.isArray(d["rows"])) throw new Error('The file is no Grafana dashboard: it has neither "panels" nor "rows".');
  const foreign = foreignSources(d);
  const notes: string[] = [];
  const annotations = list(object(d["annotations"])["list"]).filter((a) => !a["builtIn"] && a["enable"] !== false).map((a) => text(a["name"], "?"));
  if (annotations.length) notes.push(`Annotations are not drawn: ${annotations.join(", ")}.`);
  const found = Array.isArray(d["panels"]) ? sections(list(d["panels"]), foreign) : legacyRows(list(d["rows"]), foreign);
  const count = found.reduce((sum, s) => sum + s.panels.length, 0);
  if (count > mostPanels) throw new Error(`The dashboard has ${count} panels; the page shows at most ${mostPanels}. Divide the dashboard.`);
  return { title: text(d["title"], "Dashboard"), description: text(d["description"]), sections: found, variables: list(object(d["templating"])["list"]).map(variable), notes };
}

// foreignSources maps the names of data sources that are not Prometheus to their types: inputs of
// an exported file, and variables.
function foreignSources(d: Json): Map<string, string> {
  const out = new Map<string, string>();
  for (const i of list(d["__inputs"])) {
    if (text(i["type"]) === "datasource" && text(i["pluginId"], "prometheus") !== "prometheus") out.set(text(i["name"]), text(i["pluginId"]));
  }
  for (const v of list(object(d["templating"])["list"])) {
    if (text(v["type"]) === "datasource" && text(v["query"], "prometheus") !== "prometheus") out.set(text(v["name"]), text(v["query"]));
  }
  return out;
}

// foreignType returns the type of a data source that is not Prometheus, or undefined.
function foreignType(source: unknown, foreign: Map<string, string>): string | undefined {
  const kind = isObject(source) ? text(source["type"]) : "";
  if (kind && kind !== "prometheus" && kind !== "datasource") return kind;
  const name = (isObject(source) ? text(source["uid"]) : text(source)).replace(/^\$\{?(\w+)\}?$/, "$1");
  if (name.startsWith("-- ") && name !== "-- Mixed --") return name;
  return foreign.get(name);
}

function sections(panels: Json[], foreign: Map<string, string>): Section[] {
  const out: Section[] = [{ title: "", collapsed: false, repeat: "", panels: [] }];
  const place = (p: Json) => object(p["gridPos"]);
  const sorted = [...panels].sort((a, b) => (number(place(a)["y"]) ?? 0) - (number(place(b)["y"]) ?? 0) || (number(place(a)["x"]) ?? 0) - (number(place(b)["x"]) ?? 0));
  for (const p of sorted) {
    if (text(p["type"]) !== "row") {
      out.at(-1)!.panels.push(panel(p, foreign));
      continue;
    }
    out.push({ title: text(p["title"], "Row"), collapsed: p["collapsed"] === true, repeat: text(p["repeat"]), panels: list(p["panels"]).map((q) => panel(q, foreign)) });
  }
  return out.filter((s) => s.title || s.panels.length);
}

// legacyRows reads the rows of files that are older than gridPos: panels have a span of 12 columns.
function legacyRows(rows: Json[], foreign: Map<string, string>): Section[] {
  return rows.map((r) => {
    const height = Math.max(2, Math.round((number(text(r["height"]).replace("px", "")) ?? 250) / 38));
    let x = 0;
    let y = 0;
    const panels = list(r["panels"]).map((p) => {
      const w = Math.min(24, (number(p["span"]) ?? 12) * 2);
      if (x + w > 24) [x, y] = [0, y + height];
      const spec = panel({ ...p, gridPos: { x, y, w, h: height } }, foreign);
      x += w;
      return spec;
    });
    return { title: r["showTitle"] === false ? "" : text(r["title"]), collapsed: r["collapse"] === true, repeat: text(r["repeat"]), panels };
  });
}

function panel(p: Json, foreign: Map<string, string>): PanelSpec {
  const config = object(p["fieldConfig"]);
  const at = object(p["gridPos"]);
  const notes: string[] = [];
  const own = foreignType(p["datasource"], foreign);
  const targets: Target[] = [];
  list(p["targets"]).forEach((t, i) => {
    const refId = text(t["refId"], String.fromCharCode(65 + (i % 26)));
    const other = t["datasource"] === undefined || t["datasource"] === null ? own : foreignType(t["datasource"], foreign);
    if (t["hide"] === true) return;
    if (other) notes.push(`Query ${refId} is left out: its data source is ${other}, not Prometheus.`);
    else if (text(t["expr"])) {
      const instant = t["instant"] === true && t["range"] !== true;
      targets.push({ refId, expr: text(t["expr"]), legend: text(t["legendFormat"]), instant, table: text(t["format"]) === "table", interval: text(t["interval"]) });
    } else notes.push(`Query ${refId} is left out: it has no PromQL expression.`);
  });
  if (text(p["timeShift"])) notes.push(`The time shift ${text(p["timeShift"])} is left out.`);
  if (isObject(p["libraryPanel"]) && !p["targets"]) notes.push("It is a library panel, whose content is not in the file.");
  const whole = (v: unknown, none: number, least: number, most: number) => Math.min(most, Math.max(least, Math.round(number(v) ?? none)));
  const x = whole(at["x"], 0, 0, 23);
  const { type, options, defaults } = modern(p, object(p["options"]), object(config["defaults"]));
  return {
    type,
    title: text(p["title"]),
    description: text(p["description"]),
    place: { x, y: whole(at["y"], 0, 0, 100_000), w: Math.min(24 - x, whole(at["w"], 12, 1, 24)), h: whole(at["h"], 8, 1, 100) },
    targets,
    options,
    defaults,
    overrides: [...list(config["overrides"]), ...list(p["seriesOverrides"]).map(legacyOverride)],
    transformations: list(p["transformations"]).filter((t) => t["disabled"] !== true),
    interval: text(p["interval"]),
    timeFrom: text(p["timeFrom"]).replace(/^now-/, ""),
    repeat: text(p["repeat"]),
    repeatVertical: text(p["repeatDirection"]) === "v",
    maxPerRow: whole(p["maxPerRow"], 4, 1, 24),
    notes,
  };
}

// modern turns the panels of old Grafana versions, graph and singlestat, into today's.
function modern(p: Json, options: Json, defaults: Json): { type: string; options: Json; defaults: Json } {
  const type = text(p["type"], "unknown");
  if (type === "graph") {
    const axis = object(list(p["yaxes"])[0]);
    const legend = object(p["legend"]);
    const stacking = p["stack"] === true ? (p["percentage"] === true ? "percent" : "normal") : "none";
    const calcs = Object.entries({ current: "lastNotNull", avg: "mean", min: "min", max: "max", total: "sum" }).filter(([name]) => legend[name] === true).map(([, calc]) => calc);
    return {
      type: "timeseries",
      options: { legend: { showLegend: legend["show"] !== false, calcs: legend["values"] === true ? calcs : [] } },
      defaults: {
        unit: axis["format"],
        decimals: p["decimals"],
        min: axis["min"],
        max: axis["max"],
        custom: {
          drawStyle: p["bars"] === true ? "bars" : p["lines"] === false && p["points"] === true ? "points" : "line",
          fillOpacity: (number(p["fill"]) ?? 1) * 10,
          stacking: { mode: stacking },
          spanNulls: text(p["nullPointMode"]) === "connected",
          scaleDistribution: { type: number(axis["logBase"]) === 1 || axis["logBase"] === undefined ? "linear" : "log" },
        },
      },
    };
  }
  if (type === "singlestat") {
    const names: Json = { current: "lastNotNull", avg: "mean", total: "sum", name: "lastNotNull" };
    const colours = Array.isArray(p["colors"]) ? p["colors"] : [];
    const limits = text(p["thresholds"]).split(",").map(number).filter((v) => v !== undefined);
    const steps = [null, ...limits].map((value, i) => ({ value, color: text(colours[i], "green") }));
    return {
      type: "stat",
      options: { reduceOptions: { calcs: [names[text(p["valueName"], "avg")] ?? text(p["valueName"], "mean")] }, colorMode: p["colorBackground"] === true ? "background" : "value", graphMode: object(p["sparkline"])["show"] === true ? "area" : "none" },
      defaults: { unit: p["format"], decimals: p["decimals"], thresholds: { mode: "absolute", steps: p["colorValue"] === true || p["colorBackground"] === true ? steps : [] }, noValue: p["nullText"] },
    };
  }
  return { type: type === "table-old" ? "table" : type, options, defaults };
}

function legacyOverride(o: Json): Json {
  const alias = text(o["alias"]);
  const properties: Json[] = [];
  if (text(o["transform"]) === "negative-Y") properties.push({ id: "custom.transform", value: "negative-Y" });
  if (text(o["color"])) properties.push({ id: "color", value: { mode: "fixed", fixedColor: o["color"] } });
  return { matcher: { id: alias.startsWith("/") ? "byRegexp" : "byName", options: alias }, properties };
}

function variable(v: Json): VariableSpec {
  const query = isObject(v["query"]) ? text(v["query"]["query"], text(v["query"]["expr"])) : text(v["query"]);
  const current = object(v["current"])["value"];
  return {
    name: text(v["name"]),
    label: text(v["label"]) || text(v["name"]),
    type: text(v["type"], "query"),
    query: query || text(v["definition"]),
    regex: text(v["regex"]),
    sort: number(v["sort"]) ?? 0,
    multi: v["multi"] === true,
    includeAll: v["includeAll"] === true,
    allValue: text(v["allValue"]),
    hidden: number(v["hide"]) === 2,
    current: (Array.isArray(current) ? current : [current]).map((c) => text(c)).filter((c) => c !== ""),
  };
}
