import { formatTime, type Zone } from "../time";
import type { Data } from "./query";
import { list, number, object, text, type Json } from "./model";

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

const applied = new Set(["merge", "organize", "joinByField", "seriesToColumns", "filterFieldsByName", "sortBy", "limit", "reduce", "labelsToFields"]);

// unsupportedTransformations names those that are left out.
export function unsupportedTransformations(all: Json[]): string[] {
  return all.map((t) => text(t["id"])).filter((id) => !applied.has(id)).map((id) => `The transformation ${id} is left out.`);
}

// transform applies what is supported, and puts what remains below each other.
export function transform(grids: Grid[], all: Json[]): Grid {
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
    }
  }
  return grids.length === 1 ? grids[0]! : joined(grids, undefined);
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
