import type { Labels, Point, Series } from "../answer";
import { order } from "../table";
import { formatTime } from "../time";
import { inText, type Scope } from "./interpolate";
import type { Data, Line } from "./query";
import { column, isCalculation, reduce } from "./reduce";
import { isObject, list, number, object, pattern, text, type Json } from "./json";

// Tables of a panel, and the transformations of Grafana that people use for them.

export type Cell = string | number | null;

export interface Column {
  name: string; // overrides match it
  title: string;
  refId: string;
  labels?: Labels; // of the one series of the column
}

export interface Grid {
  over?: boolean; // it has values over time
  columns: Column[];
  rows: Cell[][];
}

const valueName = (refId: string) => `Value #${refId}`;

// gridsOf makes a table of each query: time, labels, value. Series over time that are asked for as
// such become their last values.
export function gridsOf(d: Data): Grid[] {
  const out = d.tables.map(({ refId, series }): Grid => {
    const labels = [...new Set(series.flatMap((s) => Object.keys(s.metric)))].sort();
    const several = d.tables.length > 1;
    const value = several ? valueName(refId) : "Value";
    const row = (s: Series, p: Point | undefined): Cell[] => [p ? formatTime(p[0] * 1000, d.zone) : "", ...labels.map((l) => s.metric[l] ?? ""), p ? Number(p[1]) : null];
    return {
      over: series.some((s) => !s.value),
      columns: ["Time", ...labels, value].map((name) => ({ name, title: name, refId })),
      rows: series.flatMap((s) => (s.values ? s.values.map((p) => row(s, p)) : [row(s, s.value)])),
    };
  });
  const ranged = d.lines.filter((l) => !d.tables.some((t) => t.refId === l.refId));
  if (ranged.length) {
    out.push({
      columns: ["Series", "Value"].map((name) => ({ name, title: name, refId: ranged[0]!.refId })),
      rows: ranged.map((l) => [l.name, l.values.findLast((v) => v !== null) ?? null]),
    });
  }
  return out;
}

// seriesByTime makes one table of series: a row for each time, a column for each series.
export function seriesByTime(d: Data): Grid {
  const rows = new Map<number, Cell[]>();
  d.lines.forEach((l, k) =>
    l.values.forEach((v, i) => {
      const t = l.times[i] ?? Math.round(d.until / 1000); // instant queries have one time
      let row = rows.get(t);
      if (!row) rows.set(t, (row = [formatTime(t * 1000, d.zone), ...d.lines.map(() => null)]));
      row[k + 1] = v;
    }),
  );
  return { columns: [called("Time"), ...d.lines.map((l): Column => ({ ...called(l.name, l.refId), labels: l.labels }))], rows: [...rows].sort(([a], [b]) => a - b).map(([, r]) => r) };
}

type Step = (grids: Grid[], o: Json, d: Data, scope: Scope) => Grid[];
const each = (change: (g: Grid, o: Json, scope: Scope) => Grid): Step => (grids, o, _, scope) => grids.map((g) => change(g, o, scope));
const byField: Step = (grids, o) => [joined(grids, text(o["byField"], "Time"), o["mode"] === "inner")];

const steps: Record<string, Step> = {
  merge: (grids) => [joined(grids, undefined)],
  joinByField: byField,
  seriesToColumns: byField,
  organize: each(organized),
  renameByRegex: each((g, o) => {
    const re = pattern(text(o["regex"]), true);
    return re ? { ...g, columns: g.columns.map((c) => ({ ...c, title: c.title.replace(re, text(o["renamePattern"])) })) } : g;
  }),
  filterFieldsByName: each((g, o) => picked(g, g.columns.flatMap((c, i) => (chosen(o, c.title) ? [i] : [])))),
  sortBy: each(sortedBy),
  convertFieldType: each((g, o) => {
    const kinds = g.columns.map((c) => list(o["conversions"]).find((x) => x["targetField"] === c.title)?.["destinationType"]);
    const converted = (v: Cell, kind: unknown): Cell => (v === null ? v : kind === "string" ? String(v) : kind === "number" ? (number(v) ?? null) : v);
    return { ...g, rows: g.rows.map((r) => r.map((v, i) => converted(v, kinds[i]))) };
  }),
  limit: each((g, o) => ({ ...g, rows: g.rows.slice(0, number(o["limitField"]) ?? 10) })),
  reduce: (_, o, d) => [reduced(d, o)],
  groupBy: each((g, o) => groupedBy(g, object(o["fields"]))),
  calculateField: each(calculated),
  filterByValue: each(filtered),
  labelsToFields: (grids, _, d) => withLabels(grids, d),
  seriesToRows: (_, __, d) => [rowsOf(d)],
};

// chosen reports whether filterFieldsByName keeps a name.
function chosen(o: Json, name: string): boolean {
  const holds = (side: string, none: boolean) => {
    const { names, pattern: source } = object(o[side]);
    const re = text(source) ? pattern(text(source)) : undefined;
    return Array.isArray(names) || re ? (Array.isArray(names) && names.includes(name)) || (re?.test(name) ?? false) : none;
  };
  return holds("include", true) && !holds("exclude", false);
}

// transformLines applies to series what is supported outside of tables.
export function transformLines(lines: Line[], all: Json[]): Line[] {
  for (const t of all) {
    const o = object(t["options"]);
    const re = pattern(text(o["regex"]), true);
    if (t["id"] === "renameByRegex" && re) lines = lines.map((l) => ({ ...l, name: l.name.replace(re, text(o["renamePattern"])) }));
    if (t["id"] === "filterFieldsByName") lines = lines.filter((l) => chosen(o, l.name));
  }
  return lines;
}

// rowsOf makes a row of each value of all series, the newest first.
function rowsOf(d: Data): Grid {
  const rows = d.lines.flatMap((l) => l.values.flatMap((v, i) => (v === null ? [] : [{ t: l.times[i] ?? Math.round(d.until / 1000), cells: [l.name, v] as Cell[] }])));
  rows.sort((a, b) => b.t - a.t);
  return { columns: ["Time", "Metric", "Value"].map((name) => called(name, d.lines[0]?.refId)), rows: rows.map(({ t, cells }) => [formatTime(t * 1000, d.zone), ...cells]) };
}

// transform applies what is supported, and puts what remains below each other.
export function transform(grids: Grid[], all: Json[], d: Data, scope: Scope): Grid {
  for (const t of all) if (Object.hasOwn(steps, text(t["id"]))) grids = steps[text(t["id"])]!(grids, object(t["options"]), d, scope);
  return grids.length === 1 ? grids[0]! : joined(grids, undefined);
}

// reduced makes a row of each series, and a column of each calculation.
function reduced(d: Data, o: Json): Grid {
  const calcs = (Array.isArray(o["reducers"]) ? o["reducers"] : []).map((c) => text(c)).filter(isCalculation);
  const labels = o["labelsToFields"] === true ? labelsOf(d.lines) : [];
  const refId = d.lines[0]?.refId ?? "";
  return {
    columns: ["Field", ...labels, ...calcs.map(column)].map((name) => ({ name, title: name, refId })),
    rows: d.lines.map((l) => [l.name, ...labels.map((k) => l.labels[k] ?? ""), ...calcs.map((c) => reduce(l.values, c))]),
  };
}

const labelsOf = (lines: Line[]) => [...new Set(lines.flatMap((l) => Object.keys(l.labels)))].sort();

// withLabels replaces the names of series over time by a column for each label. Tables of instant
// queries have those already.
function withLabels(grids: Grid[], d: Data): Grid[] {
  const lines = d.lines.filter((l) => l.times.length);
  if (!lines.length) return grids;
  const labels = labelsOf(lines);
  const columns = [...labels, "Value"].map((name) => ({ name, title: name, refId: lines[0]!.refId }));
  return [...grids.filter((g) => g.columns[0]?.name !== "Series"), { columns, rows: lines.map((l) => [...labels.map((k) => l.labels[k] ?? ""), l.values.findLast((v) => v !== null) ?? null]) }];
}

const picked = (g: Grid, at: number[]): Grid => ({ ...g, columns: at.map((i) => g.columns[i]!), rows: g.rows.map((r) => at.map((i) => r[i]!)) });

// joined makes one table. Rows whose key is equal become one: the key is the given column, or all
// columns that are no values.
// With inner, all tables have the key.
function joined(grids: Grid[], by: string | undefined, inner = false): Grid {
  const isValue = (c: Column) => /^Value( #.*)?$/.test(c.name);
  const columns: Column[] = [];
  for (const g of grids) for (const c of g.columns) if (!columns.some((x) => x.name === c.name)) columns.push(c);
  columns.sort((a, b) => Number(isValue(a)) - Number(isValue(b)));
  const over = grids.some((g) => g.over);
  const rows = new Map<string, Cell[]>();
  const met = new Map<string, Set<Grid>>(); // the tables of each key
  for (const g of grids) {
    const at = g.columns.map((c) => columns.findIndex((x) => x.name === c.name));
    g.rows.forEach((r) => {
      const key = JSON.stringify(g.columns.flatMap((c, i) => ((by === undefined ? !isValue(c) && (over || c.name !== "Time") : c.name === by) ? [[c.name, r[i]]] : [])));
      let row = rows.get(key);
      if (!row) rows.set(key, (row = columns.map(() => null)));
      met.set(key, (met.get(key) ?? new Set()).add(g));
      at.forEach((to, i) => (row[to] ??= r[i]!));
    });
  }
  return { over, columns, rows: [...rows].flatMap(([key, r]) => (inner && met.get(key)!.size < grids.length ? [] : [r])) };
}

function organized(g: Grid, o: Json): Grid {
  const excluded = object(o["excludeByName"]);
  const order = object(o["indexByName"]);
  const renamed = object(o["renameByName"]);
  const kept = g.columns.map((_, i) => i).filter((i) => excluded[g.columns[i]!.name] !== true);
  kept.sort((a, b) => (number(order[g.columns[a]!.name]) ?? 1e6) - (number(order[g.columns[b]!.name]) ?? 1e6) || a - b);
  const out = picked(g, kept);
  return { ...out, columns: out.columns.map((c) => ({ ...c, title: text(renamed[c.name]) || c.title })) };
}

function sortedBy(g: Grid, o: Json): Grid {
  const first = list(o["sort"])[0] ?? {};
  const i = indexOf(g, text(first["field"]));
  if (i < 0) return g;
  const sign = first["desc"] === true ? -1 : 1;
  return { ...g, rows: [...g.rows].sort((a, b) => sign * order(a[i] ?? "", b[i] ?? "")) };
}

const indexOf = (g: Grid, name: string) => g.columns.findIndex((c) => c.title === name || c.name === name);
const called = (name: string, refId = ""): Column => ({ name, title: name, refId });
const strings = (v: unknown) => (Array.isArray(v) ? v.map((x) => text(x)) : []);

// summary is a calculation over cells. Texts have no sums.
function summary(cells: Cell[], calc: string): Cell {
  const some = cells.filter((c) => c !== null);
  if (!some.some((c) => typeof c === "string")) return reduce(cells as (number | null)[], calc);
  return { first: cells[0], firstNotNull: some[0], last: cells.at(-1), lastNotNull: some.at(-1), count: some.length, distinctCount: new Set(some).size }[calc] ?? null;
}

// groupedBy makes a row of all rows that have the same values in the columns of the groups.
function groupedBy(g: Grid, fields: Json): Grid {
  const how = g.columns.map((c) => object(fields[c.title] ?? fields[c.name]));
  const keys = how.flatMap((f, i) => (f["operation"] === "groupby" ? [i] : []));
  if (!keys.length) return g;
  const groups = new Map<string, Cell[][]>();
  for (const r of g.rows) {
    const key = JSON.stringify(keys.map((i) => r[i]));
    const rows = groups.get(key);
    if (rows) rows.push(r);
    else groups.set(key, [r]);
  }
  const wanted = how.flatMap((f, i) => (f["operation"] === "count" ? ["count"] : f["operation"] === "aggregate" ? strings(f["aggregations"]).filter(isCalculation) : []).map((calc) => ({ i, calc })));
  return {
    columns: [...keys.map((i) => g.columns[i]!), ...wanted.map(({ i, calc }) => called(`${g.columns[i]!.title} (${calc})`, g.columns[i]!.refId))],
    rows: [...groups.values()].map((rows) => [...keys.map((i) => rows[0]![i]!), ...wanted.map(({ i, calc }) => summary(rows.map((r) => r[i]!), calc))]),
  };
}

const binary: Record<string, (a: number, b: number) => number> = { "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => a / b, "%": (a, b) => a % b, "**": (a, b) => a ** b };
const unary: Record<string, (a: number) => number> = { abs: Math.abs, exp: Math.exp, ln: Math.log, floor: Math.floor, ceil: Math.ceil };

// calculated adds a column, or with replaceFields is only that column.
function calculated(g: Grid, o: Json): Grid {
  const mode = text(o["mode"], "reduceRow");
  const settings = object(o[{ reduceRow: "reduce", cumulativeFunctions: "cumulative" }[mode] ?? mode]);
  const calc = text(settings["reducer"], "sum");
  const numeric = (i: number) => g.rows.some((r) => typeof r[i] === "number");
  const value = (r: Cell[] | undefined, i: number) => (typeof r?.[i] === "number" ? (r[i] as number) : 0);
  // operand is a column by its name, or a number. Old files have it as a text.
  const operand = (v: unknown): [name: string, (r: Cell[]) => number] => {
    const name = isObject(v) ? text(object(v["matcher"])["options"], text(v["fixed"])) : text(v);
    const i = indexOf(g, name);
    return [name, (r) => (i < 0 ? Number(name) : value(r, i))];
  };
  let name = "Row";
  let cell: (r: Cell[], row: number) => Cell = (_, row) => (object(o["index"])["asPercentile"] === true ? row / g.rows.length : row);
  if (mode === "binary") {
    const [[left, a], [right, b]] = [operand(settings["left"]), operand(settings["right"])];
    if (Number.isNaN(a([]) + b([]))) return g; // without such a column
    const operator = text(settings["operator"], "+");
    name = `${left} ${operator} ${right}`;
    cell = (r) => binary[operator]?.(a(r), b(r)) ?? null;
  } else if (mode === "unary") {
    const [field, a] = operand(settings["fieldName"]);
    if (indexOf(g, field) < 0) return g;
    name = `${text(settings["operator"], "abs")}(${field})`;
    cell = (r) => unary[text(settings["operator"], "abs")]?.(a(r)) ?? null;
  } else if (mode === "cumulativeFunctions") {
    const field = text(settings["field"]);
    const i = field ? indexOf(g, field) : g.columns.findIndex((_, j) => numeric(j));
    let sum = 0;
    const sums = g.rows.map((r) => (sum += value(r, i)));
    name = `cumulative ${calc}${field && `(${field})`}`;
    cell = (_, row) => (calc === "mean" ? sums[row]! / (row + 1) : sums[row]!);
  } else if (mode === "reduceRow") {
    const included = strings(settings["include"]);
    const of = g.columns.flatMap((c, i) => ((included.length ? included.includes(c.title) || included.includes(c.name) : numeric(i)) ? [i] : []));
    name = column(calc);
    cell = (r) => summary(of.map((i) => r[i]!), calc);
  }
  const rows = g.rows.map((r, row) => [...(o["replaceFields"] === true ? [] : r), cell(r, row)]);
  return { columns: [...(o["replaceFields"] === true ? [] : g.columns), called(text(o["alias"]) || name, g.columns[0]?.refId)], rows };
}

// filtered keeps, or leaves out, the rows whose cells fulfil one or all conditions.
function filtered(g: Grid, o: Json, scope: Scope): Grid {
  const conditions = list(o["filters"]).map((f): ((r: Cell[]) => boolean) => {
    const i = indexOf(g, text(f["fieldName"]));
    const config = object(f["config"]);
    const id = text(config["id"]);
    const options = object(config["options"]);
    const wanted = id === "regex" ? text(options["value"]) : inText(text(options["value"]), scope);
    const bound = (key: string) => Number(inText(text(options[key]), scope));
    const re = id === "regex" ? pattern(wanted) : undefined;
    const fits: Record<string, (c: Cell) => boolean> = {
      greater: (c) => c !== null && Number(c) > bound("value"),
      greaterOrEqual: (c) => c !== null && Number(c) >= bound("value"),
      lower: (c) => c !== null && Number(c) < bound("value"),
      lowerOrEqual: (c) => c !== null && Number(c) <= bound("value"),
      between: (c) => c !== null && Number(c) > bound("from") && Number(c) < bound("to"),
      equal: (c) => (typeof c === "number" ? c === bound("value") : c === wanted),
      notEqual: (c) => (typeof c === "number" ? c !== bound("value") : c !== wanted),
      substring: (c) => String(c ?? "").toLowerCase().includes(wanted.toLowerCase()),
      notSubstring: (c) => !String(c ?? "").toLowerCase().includes(wanted.toLowerCase()),
      regex: (c) => re?.test(String(c ?? "")) ?? false,
      isNull: (c) => c === null,
      isNotNull: (c) => c !== null,
    };
    return (r) => i >= 0 && (fits[id]?.(r[i]!) ?? false);
  });
  if (!conditions.length) return g;
  const include = text(o["type"], "include") === "include";
  const holds = (r: Cell[]) => (text(o["match"], "any") === "all" ? conditions.every((c) => c(r)) : conditions.some((c) => c(r)));
  return { ...g, rows: g.rows.filter((r) => holds(r) === include) };
}
