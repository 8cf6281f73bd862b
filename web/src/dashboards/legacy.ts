// Turns the panels of old Grafana versions, graph, singlestat and the old table, into today's.

import { column as titleOf } from "./reduce";
import { isObject, list, number, object, text, type Json } from "./json";

interface Modern {
  was: string;
  type: string;
  options: Json;
  defaults: Json;
  overrides: Json[];
  limits?: Limit[];
  transformations?: Json[];
}

// Limit is a threshold of a graph: a line, or the area up to another value.
export interface Limit {
  at: number;
  to?: number;
  colour: string;
}

// limits reads the thresholds of a graph.
function limits(p: Json): Limit[] {
  return list(p["thresholds"]).flatMap((t) => {
    const at = number(t["value"]);
    if (at === undefined) return [];
    const colour = (own: string) => ({ critical: "red", warning: "orange", ok: "green" })[text(t["colorMode"])] ?? text(t[own]);
    const area = text(t["op"]) === "lt" ? { at: -Infinity, to: at } : { at, to: Infinity };
    return [...(t["fill"] === true ? [{ ...area, colour: colour("fillColor") }] : []), ...(t["line"] === true ? [{ at, colour: colour("lineColor") }] : [])];
  });
}

// modern returns undefined for panels that are not old.
export function modern(p: Json): Modern | undefined {
  switch (text(p["type"])) {
    case "graph":
      return graph(p);
    case "singlestat":
      return singlestat(p);
    case "grafana-piechart-panel":
      return pie(p);
    case "table-old":
      return table(p);
    case "table":
      return Array.isArray(p["styles"]) && !isObject(p["fieldConfig"]) ? table(p) : undefined;
    default:
      return undefined;
  }
}

// drawing reads how a graph, or one of its series, is drawn. What is not set stays undefined.
function drawing(o: Json): Json {
  const { bars, points, lines } = o;
  return {
    "custom.drawStyle": bars === true ? "bars" : lines === false && points === true ? "points" : bars === false || lines === true ? "line" : undefined,
    "custom.lineWidth": bars !== true && lines === false && points !== true ? 0 : number(o["linewidth"]),
    "custom.showPoints": points === true ? "always" : points === false ? "never" : undefined,
    "custom.fillOpacity": lines === false && bars !== true ? 0 : number(o["fill"]) === undefined ? undefined : number(o["fill"])! * 10,
    "custom.lineStyle": o["dashes"] === true ? { fill: "dash" } : undefined,
    "custom.lineInterpolation": o["steppedLine"] === true ? "stepAfter" : undefined,
  };
}

const properties = (o: Json): Json[] => Object.entries(o).flatMap(([id, value]) => (value === undefined ? [] : [{ id, value }]));

// coloured are the colours that a panel gives to series.
const coloured = (p: Json): Json[] => Object.entries(object(p["aliasColors"])).map(([alias, color]) => ({ matcher: { id: "byName", options: alias }, properties: [{ id: "color", value: { mode: "fixed", fixedColor: color } }] }));

// calculation is today's name of a calculation.
const calculation = (name: string) => ({ current: "lastNotNull", avg: "mean", total: "sum", name: "lastNotNull", first: "firstNotNull" })[name] ?? name;

function pie(p: Json): Modern {
  return {
    was: "grafana-piechart-panel",
    type: "piechart",
    options: { pieType: p["pieType"], reduceOptions: { calcs: [calculation(text(p["valueName"], "current"))] } },
    defaults: { unit: text(p["format"], "short"), decimals: p["decimals"] },
    overrides: coloured(p),
  };
}

function graph(p: Json): Modern {
  const legend = object(p["legend"]);
  const stacking = { mode: p["stack"] === true ? (p["percentage"] === true ? "percent" : "normal") : "none", group: "A" };
  const calcs = Object.entries({ current: "lastNotNull", avg: "mean", min: "min", max: "max", total: "sum" }).filter(([name]) => legend[name] === true).map(([, calc]) => calc);
  const axis = (a: Json): Json => ({
    unit: text(a["format"], "short"),
    decimals: a["decimals"],
    min: a["min"],
    max: a["max"],
    "custom.axisLabel": a["label"],
    "custom.axisPlacement": a["show"] === false ? "hidden" : undefined,
    "custom.scaleDistribution": { type: (number(a["logBase"]) ?? 1) === 1 ? "linear" : "log" },
  });
  const [first = {}, second = {}] = list(p["yaxes"]);
  const custom: Json = { stacking, spanNulls: text(p["nullPointMode"]) === "connected" };
  const defaults: Json = { custom, nullValueMode: p["nullPointMode"] };
  for (const { id, value } of properties({ ...drawing({ fill: 1, linewidth: 1, points: false, ...p }), ...axis(first) }) as { id: string; value: unknown }[]) {
    if (id.startsWith("custom.")) custom[id.slice(7)] = value;
    else defaults[id] = value;
  }
  defaults["decimals"] ??= p["decimals"];
  // A point that stands alone is drawn, whatever its graph says about points.
  if (custom["showPoints"] === "never") custom["showPoints"] = "auto";
  const series = list(p["seriesOverrides"]).map((o): Json => {
    const alias = text(o["alias"]);
    return {
      matcher: { id: alias.startsWith("/") ? "byRegexp" : "byName", options: alias },
      properties: properties({
        ...(number(o["yaxis"]) === 2 ? { ...axis(second), "custom.axisPlacement": second["show"] === false ? "hidden" : "right" } : {}),
        ...drawing(o),
        "custom.stacking": o["stack"] === undefined ? undefined : o["stack"] === false ? { mode: "none" } : { mode: "normal", group: text(o["stack"], "A") },
        "custom.transform": text(o["transform"]) || undefined,
        "custom.hideFrom": o["legend"] === false ? { legend: true } : undefined,
        nullValueMode: o["nullPointMode"],
        "custom.fillBelowTo": o["fillBelowTo"],
        color: text(o["color"]) ? { mode: "fixed", fixedColor: o["color"] } : undefined,
      }),
    };
  });
  return { was: "graph", type: "timeseries", options: { legend: { showLegend: legend["show"] !== false, calcs: legend["values"] === true ? calcs : [] } }, limits: limits(p), defaults, overrides: [...coloured(p), ...series] };
}

// mappings reads the maps of values or of ranges, of which the type is in force.
function mappings(o: Json): Json[] {
  if (number(o["mappingType"]) === 2) return list(o["rangeMaps"]).map((m) => ({ type: 2, from: m["from"], to: m["to"], text: m["text"] }));
  return list(o["valueMaps"]).map((m) => (m["value"] === "null" ? { type: "special", options: { match: "null", result: { text: m["text"] } } } : { type: 1, value: m["value"], text: m["text"] }));
}

function thresholds(o: Json): Json {
  const colours = Array.isArray(o["colors"]) ? o["colors"] : [];
  const limits = (Array.isArray(o["thresholds"]) ? o["thresholds"] : text(o["thresholds"]).split(",")).map(number).filter((v) => v !== undefined);
  return { mode: "absolute", steps: [null, ...limits].map((value, i) => ({ value, color: text(colours[i], "green") })) };
}

function singlestat(p: Json): Modern {
  const valueName = text(p["valueName"], "avg");
  const gauge = object(p["gauge"]);
  const coloured = p["colorValue"] === true || p["colorBackground"] === true;
  return {
    was: "singlestat",
    type: gauge["show"] === true ? "gauge" : "stat",
    options: {
      reduceOptions: { calcs: [calculation(valueName)], fields: p["tableColumn"] },
      textMode: valueName === "name" ? "name" : "auto",
      colorMode: p["colorBackground"] === true ? "background" : "value",
      graphMode: object(p["sparkline"])["show"] === true ? "area" : "none",
    },
    defaults: {
      unit: p["format"],
      decimals: p["decimals"],
      mappings: mappings(p),
      thresholds: coloured || gauge["show"] === true ? thresholds(p) : {},
      noValue: p["nullText"] || undefined,
      nullValueMode: p["nullPointMode"],
      custom: { prefix: p["prefix"], postfix: p["postfix"] },
      ...(gauge["show"] === true ? { min: gauge["minValue"] ?? 0, max: gauge["maxValue"] ?? 100 } : {}),
    },
    overrides: [],
  };
}

// table reads the styles of columns. The first style of a column holds, and a style for all columns
// only where no other one does.
function table(p: Json): Modern {
  const overrides = list(p["styles"]).map((s): Json => {
    const pattern = text(s["pattern"]);
    const mode = text(s["colorMode"]);
    const numeric = text(s["type"]) === "number";
    return {
      matcher: { id: pattern.startsWith("/") ? "byRegexp" : "byName", options: pattern },
      properties: properties({
        "custom.hidden": text(s["type"]) === "hidden",
        displayName: text(s["alias"]) || undefined,
        unit: numeric ? text(s["unit"]) || undefined : undefined,
        decimals: numeric ? number(s["decimals"]) : undefined,
        mappings: number(s["mappingType"]) || s["valueMaps"] ? mappings(s) : undefined,
        thresholds: thresholds(s),
        "custom.displayMode": mode === "cell" ? "color-background" : mode === "value" ? "color-text" : "auto",
      }),
    };
  });
  const forAll = (o: Json) => /^\/(\^?\.[*+]\$?)?\/$/.test(text(object(o["matcher"])["options"]));
  const sort = object(p["sort"]);
  const column = number(sort["col"]);
  const options = { ...object(p["options"]), showHeader: p["showHeader"], ...(column === undefined ? {} : { sortBy: [{ column, desc: sort["desc"] }] }) };
  return { was: "table-old", type: "table", options, defaults: {}, overrides: [...overrides.filter(forAll).reverse(), ...overrides.filter((o) => !forAll(o)).reverse()], transformations: transformations(p) };
}

// transformations makes a table of series as an old table did.
function transformations(p: Json): Json[] {
  const calcs = list(p["columns"]).map((c) => ({ calc: calculation(text(c["value"])), name: text(c["text"]) }));
  switch (text(p["transform"])) {
    case "timeseries_aggregations":
      return [{ id: "reduce", options: { reducers: calcs.map((c) => c.calc) } }, { id: "organize", options: { renameByName: Object.fromEntries([["Field", "Metric"], ...calcs.map((c) => [titleOf(c.calc), c.name])]) } }];
    case "timeseries_to_rows":
      return [{ id: "seriesToRows" }];
    default:
      return list(p["transformations"]);
  }
}
