// Reads a dashboard as Grafana exports it (https://grafana.com/docs/grafana/latest/, "JSON model").
// Everything in a file may be missing or of another type; what is missing has Grafana's default.

import { comparisons } from "./fields";
import { isObject, list, number, object, text, type Json } from "./json";
import { modern, type Limit } from "./legacy";
import { flags } from "./reduce";
import { calculations, left, leftOfTransformation, overTime } from "./support";
import { known } from "./units";

export interface Target {
  refId: string;
  expr: string;
  legend: string; // legendFormat
  instant: boolean;
  table: boolean; // the format is a table
  interval: string; // least step; "" means that of the panel
  factor: number; // of the step
  exemplars: boolean;
}

export interface Place {
  x: number; // of 24 columns
  y: number;
  w: number;
  h: number;
}

// Link leads to another server.
export interface Link {
  title: string;
  url: string;
}

export interface PanelSpec {
  id: string; // in the dashboard
  type: string;
  title: string;
  description: string;
  links: Link[];
  place: Place;
  targets: Target[];
  options: Json;
  defaults: Json; // fieldConfig.defaults
  overrides: Json[];
  transformations: Json[];
  limits: Limit[];
  interval: string; // least step
  points: number | undefined; // that a line has at most
  timeFrom: string; // length of the panel's own time range; "" means that of the page
  timeShift: string; // how far it lies in the past
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
  auto: { count: number; least: string } | undefined; // of an interval
}

export interface Dashboard {
  uid: string; // Grafana's; "" if the file has none
  title: string;
  description: string;
  links: Link[];
  sections: Section[];
  variables: VariableSpec[];
  annotations: Json[]; // their queries have expressions
  notes: string[];
}

// exprOf is the query of an annotation.
export const exprOf = (a: Json) => text(object(a["target"])["expr"]) || text(a["expr"]);

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
  // Kubernetes and the API wrap a dashboard.
  const d = [outer["spec"], outer["dashboard"]].find(isObject) ?? outer;
  if (isObject(d["elements"])) throw new Error("The file has Grafana's dashboard schema v2. Export it as a classic dashboard (JSON model V1).");
  if (!Array.isArray(d["panels"]) && !Array.isArray(d["rows"])) throw new Error('The file is no Grafana dashboard: it has neither "panels" nor "rows".');
  const foreign = foreignSources(d);
  const notes: string[] = [];
  const marked = list(object(d["annotations"])["list"]).filter((a) => !a["builtIn"] && a["enable"] !== false);
  const annotations = marked.filter((a) => exprOf(a) && !foreignType(a["datasource"], foreign));
  const absent = marked.filter((a) => !annotations.includes(a)).map((a) => text(a["name"], "?"));
  if (absent.length) notes.push(`Annotations are not drawn: ${absent.join(", ")}.`);
  const variables = list(object(d["templating"])["list"]);
  const others = [...left("dashboard", "", d), ...annotations.flatMap((a) => left("annotation", "", a).map((n) => `annotation ${text(a["name"])}: ${n}`)), ...variables.flatMap((v) => left("variable", "", v).filter((n) => !n.startsWith("type ")).map((n) => `variable ${text(v["name"])}: ${n}`))];
  if (others.length) notes.push(named(others));
  for (const v of variables) {
    const type = text(v["type"], "query");
    const other = type === "query" ? foreignType(v["datasource"], foreign) : undefined;
    if (other) notes.push(`The variable ${text(v["name"])} is left out: its data source is ${other}, not Prometheus.`);
    else if (!["query", "custom", "interval", "constant", "textbox", "datasource"].includes(type)) notes.push(`The variable ${text(v["name"])} is left out: its type is ${type}.`);
  }
  const asked = variables.filter((v) => !notes.some((n) => n.startsWith(`The variable ${text(v["name"])} is left out`)));
  const found = Array.isArray(d["panels"]) ? sections(list(d["panels"]), foreign) : legacyRows(list(d["rows"]), foreign);
  found.flatMap((s) => s.panels).forEach((p, i) => (p.id ||= `n${i + 1}`));
  const count = found.reduce((sum, s) => sum + s.panels.length, 0);
  if (count > mostPanels) throw new Error(`The dashboard has ${count} panels; the page shows at most ${mostPanels}. Divide the dashboard.`);
  return { uid: text(d["uid"]), title: text(d["title"], "Dashboard"), description: text(d["description"]), links: outward(d["links"]), sections: found, variables: asked.map(variable), annotations, notes };
}

// foreignSources maps the names of data sources that are not Prometheus to their types: inputs of
// an exported file, and variables.
function foreignSources(d: Json): Map<string, string> {
  const out = new Map<string, string>();
  for (const i of list(d["__inputs"])) {
    if (text(i["type"]) === "datasource" && !promql.test(text(i["pluginId"], "prometheus"))) out.set(text(i["name"]), text(i["pluginId"]));
  }
  for (const v of list(object(d["templating"])["list"])) {
    if (text(v["type"]) === "datasource" && !promql.test(text(v["query"], "prometheus"))) out.set(text(v["name"]), text(v["query"]));
  }
  return out;
}

// promql are the types of data sources that answer PromQL.
const promql = /^(prometheus|grafana-amazonprometheus-datasource|grafana-azureprometheus-datasource|victoriametrics-metrics-datasource)$/;

// foreignType returns the type of a data source that is not Prometheus, or undefined.
function foreignType(source: unknown, foreign: Map<string, string>): string | undefined {
  const kind = isObject(source) ? text(source["type"]) : "";
  if (kind && !promql.test(kind) && kind !== "datasource") return kind;
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

// drawnTypes are the panels that ask queries and draw their answers.
const drawnTypes = new Set(["timeseries", "stat", "gauge", "bargauge", "piechart", "table", "heatmap", "state-timeline", "status-history", "barchart", "alertlist"]);
export const asks = (type: string) => drawnTypes.has(type);

// outward are the links that lead to other servers. Others lead to dashboards of the Grafana that a
// file comes from.
const outward = (links: unknown) => list(links).map((l): Link => ({ title: text(l["title"]) || text(l["url"]), url: text(l["url"]) })).filter(({ url }) => /^https?:\/\//i.test(url));

const length = (v: unknown) => text(v).replace(/^now-/, "");

const named = (keys: string[]) => `Not drawn as in Grafana: ${keys.join(", ")}.`;

// ofEmpty are the keys of a query that asks nothing.
const ofEmpty = new Set("refId datasource expr format hide legendFormat instant range interval intervalFactor step queryType editorMode exemplar key textEditor useBackend disableTextWrap fullMetaSearch includeNullMetadata requestId".split(" "));

// matchers choose the fields of an override.
const matchers = new Set(["byName", "byNames", "byRegexp", "byFrameRefID", "byType", "byValue"]);

function leftOfOverride(type: string, o: Json): string[] {
  const id = text(object(o["matcher"])["id"]);
  const { reducer, op } = object(object(o["matcher"])["options"]);
  const compares = flags.includes(text(reducer)) || (calculations.includes(text(reducer)) && Object.hasOwn(comparisons, text(op)));
  if (!matchers.has(id) || (id === "byValue" && !compares)) return [`overrides ${id}`];
  return list(o["properties"]).filter((p) => p["id"] !== "links" || outward(p["value"]).length).flatMap((p) => left("field", type, { [text(p["id"])]: p["value"] })).map((n) => `override ${n}`);
}

function panel(p: Json, foreign: Map<string, string>): PanelSpec {
  const config = object(p["fieldConfig"]);
  const at = object(p["gridPos"]);
  const notes: string[] = [];
  const own = foreignType(p["datasource"], foreign);
  const old = modern(p);
  const type = old?.type ?? text(p["type"], "unknown");
  const targets: Target[] = [];
  let last = false; // a table of a query over time, which has only the last values here
  list(p["targets"]).forEach((t, i) => {
    const refId = text(t["refId"], String.fromCharCode(65 + (i % 26)));
    const other = t["datasource"] === undefined || t["datasource"] === null ? own : foreignType(t["datasource"], foreign);
    if (t["hide"] === true || type === "text") return;
    if (other) notes.push(`Query ${refId} is left out: its data source is ${other}, not Prometheus.`);
    else if (text(t["expr"])) {
      const instant = t["instant"] === true && t["range"] !== true;
      const table = text(t["format"]) === "table";
      if (table && !instant && !overTime(type)) last = true;
      targets.push({ refId, expr: text(t["expr"]), legend: text(t["legendFormat"]), instant, table, interval: text(t["interval"]), factor: Math.max(1, number(t["intervalFactor"]) ?? 1), exemplars: t["exemplar"] === true });
    } else if (Object.keys(t).some((k) => !ofEmpty.has(k))) notes.push(`Query ${refId} is left out: it has no PromQL expression.`);
  });
  if (isObject(p["libraryPanel"]) && !p["targets"]) notes.push("It is a library panel, whose content is not in the file.");
  const whole = (v: unknown, none: number, least: number, most: number) => Math.min(most, Math.max(least, Math.round(number(v) ?? none)));
  const x = whole(at["x"], 0, 0, 23);
  const axis = type === "heatmap" && isObject(p["yAxis"]) ? { yAxis: { unit: p["yAxis"]["format"] } } : {};
  const options = old?.options ?? { ...axis, ...(type === "text" ? { content: p["content"] } : {}), ...object(p["options"]) };
  const defaults = old?.defaults ?? object(config["defaults"]);
  const transformations = old?.transformations ?? list(p["transformations"]).filter((t) => t["disabled"] !== true);
  if (asks(type)) {
    if (last || ((type === "table" || (type === "barchart" && transformations.length > 0)) && targets.some((t) => !t.instant && !t.table) && !["reduce", "seriesToRows"].includes(text(transformations[0]?.["id"])))) notes.push("Of values over time, the last ones are shown.");
    const all = [
      ...left("panel", old?.was ?? type, p).filter((n) => !n.startsWith("styles[].link") || list(p["styles"]).some((s) => outward([{ url: s["linkUrl"] }]).length)),
      ...["timeFrom", "timeShift"].filter((k) => !/^(\d+(ms|[smhdwy])|.*\$.*|)$/.test(length(p[k]))).map((k) => `${k} ${JSON.stringify(p[k])}`),
      ...list(p["targets"]).filter((t) => t["hide"] !== true && text(t["expr"])).flatMap((t) => left("query", type, t)),
      ...(old ? [] : [...left("options", type, options), ...left("field", type, defaults)]).filter((n) => n !== "links" || outward(defaults["links"]).length),
      ...transformations.flatMap((t) => leftOfTransformation(type, text(t["id"]), object(t["options"]))),
      ...list(config["overrides"]).flatMap((o) => leftOfOverride(type, o)),
    ].filter((n) => n !== "reduceOptions.values" || targets.some((t) => !t.instant));
    const unit = text(defaults["unit"]);
    if (!known(unit)) notes.push(`The unit ${unit} is written behind the values.`);
    if (all.length) notes.push(named([...new Set(all)]));
  }
  return {
    id: text(p["id"]),
    type,
    title: text(p["title"]),
    description: text(p["description"]),
    links: outward(p["links"]),
    place: { x, y: whole(at["y"], 0, 0, 100_000), w: Math.min(24 - x, whole(at["w"], 12, 1, 24)), h: whole(at["h"], 8, 1, 100) },
    targets,
    options,
    defaults,
    overrides: old?.overrides ?? list(config["overrides"]),
    transformations,
    limits: old?.limits ?? [],
    interval: text(p["interval"]),
    points: number(p["maxDataPoints"]),
    timeFrom: length(p["timeFrom"]),
    timeShift: length(p["timeShift"]),
    repeat: text(p["repeat"]),
    repeatVertical: text(p["repeatDirection"]) === "v",
    maxPerRow: whole(p["maxPerRow"], 4, 1, 24),
    notes,
  };
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
    auto: v["auto"] === true ? { count: Math.max(1, number(v["auto_count"]) ?? 30), least: text(v["auto_min"]) } : undefined,
    current: (Array.isArray(current) ? current : [current]).map((c) => text(c)).filter((c) => c !== ""),
  };
}
