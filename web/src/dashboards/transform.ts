import { formatTime, type Zone } from "../time";
import type { Data, Line } from "./query";
import { column, isCalculation, reduce } from "./reduce";
import { list, number, object, pattern, text, type Json } from "./json";

// Tables of a panel, and the transformations of Grafana that people use for them.

export type Cell = string | number | null;

export interface Column {
  name: string; // overrides match it
  title: string;
  refId: string;
}

export interface Grid {
  columns: Column[];
  rows: Cell[][];
}

const valueName = (refId: string) => `Value #${refId}`;

// gridsOf makes a table of each query: time, labels, value. Series over time become their last
// values.
export function gridsOf(d: Data, zone: Zone): Grid[] {
  const out = d.tables.map(({ refId, series }): Grid => {
    const labels = [...new Set(series.flatMap((s) => Object.keys(s.metric)))].sort();
    const several = d.tables.length > 1;
    const value = several ? valueName(refId) : "Value";
    return {
      columns: ["Time", ...labels, value].map((name) => ({ name, title: name, refId })),
      rows: series.map((s) => [s.value ? formatTime(s.value[0] * 1000, zone) : "", ...labels.map((l) => s.metric[l] ?? ""), s.value ? Number(s.value[1]) : null]),
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

// transform applies what is supported, and puts what remains below each other.
export function transform(grids: Grid[], all: Json[], d: Data): Grid {
  for (const t of all) {
    const o = object(t["options"]);
    switch (text(t["id"])) {
      case "merge":
        grids = [joined(grids, undefined)];
        break;
      case "joinByField":
      case "seriesToColumns":
        grids = [joined(grids, text(o["byField"], "Time"))];
        break;
      case "organize":
        grids = grids.map((g) => organized(g, o));
        break;
      case "renameByRegex": {
        const re = pattern(text(o["regex"]), true);
        if (re) grids = grids.map((g) => ({ ...g, columns: g.columns.map((c) => ({ ...c, title: c.title.replace(re, text(o["renamePattern"])) })) }));
        break;
      }
      case "filterFieldsByName": {
        const names = object(o["include"])["names"];
        if (Array.isArray(names)) grids = grids.map((g) => picked(g, g.columns.flatMap((c, i) => (names.includes(c.title) ? [i] : []))));
        break;
      }
      case "sortBy":
        grids = grids.map((g) => sortedBy(g, o));
        break;
      case "limit":
        grids = grids.map((g) => ({ ...g, rows: g.rows.slice(0, number(o["limitField"]) ?? 10) }));
        break;
      case "reduce":
        grids = [reduced(d, o)];
        break;
      case "labelsToFields":
        grids = withLabels(grids, d);
        break;
    }
  }
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

const picked = (g: Grid, at: number[]): Grid => ({ columns: at.map((i) => g.columns[i]!), rows: g.rows.map((r) => at.map((i) => r[i]!)) });

// joined makes one table. Rows whose key is equal become one: the key is the given column, or all
// columns that are no values.
function joined(grids: Grid[], by: string | undefined): Grid {
  const isValue = (c: Column) => /^Value( #.*)?$/.test(c.name);
  const columns: Column[] = [];
  for (const g of grids) for (const c of g.columns) if (!columns.some((x) => x.name === c.name)) columns.push(c);
  columns.sort((a, b) => Number(isValue(a)) - Number(isValue(b)));
  const rows = new Map<string, Cell[]>();
  for (const g of grids) {
    const at = g.columns.map((c) => columns.findIndex((x) => x.name === c.name));
    g.rows.forEach((r) => {
      const key = JSON.stringify(g.columns.flatMap((c, i) => ((by === undefined ? !isValue(c) && c.name !== "Time" : c.name === by) ? [[c.name, r[i]]] : [])));
      let row = rows.get(key);
      if (!row) rows.set(key, (row = columns.map(() => null)));
      at.forEach((to, i) => (row[to] ??= r[i]!));
    });
  }
  return { columns, rows: [...rows.values()] };
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
  const i = g.columns.findIndex((c) => c.title === text(first["field"]) || c.name === text(first["field"]));
  if (i < 0) return g;
  const sign = first["desc"] === true ? -1 : 1;
  const compare = (a: Cell, b: Cell) => (typeof a === "number" && typeof b === "number" ? a - b : String(a ?? "").localeCompare(String(b ?? ""), undefined, { numeric: true }));
  return { ...g, rows: [...g.rows].sort((a, b) => sign * compare(a[i]!, b[i]!)) };
}
