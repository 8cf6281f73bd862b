import { base, kindOf, type Kind } from "./choose";

// The metrics of a tenant, and the search among them.

export interface Metric {
  name: string;
  kind: Kind;
  help: string;
  unit: string;
  series?: number;
  asked?: number; // queries that asked for it
  seen?: number; // ms; the time of the last sample
  dollars?: number; // a month
  text: string; // what the search reads
}

export type Metadata = Record<string, { type: string; help: string; unit: string }[]>;

// Usage is a record of /api/v1/status/metric_names_stats.
export interface Usage {
  metricName: string;
  series: number;
  queryRequestsCount: number;
  lastSampleTimestamp: number; // seconds
  dollarsPerMonth: number;
}

// join makes the list of metrics of their names and what is known about them.
export function join(names: readonly string[], metadata: Metadata, usage: readonly Usage[]): Metric[] {
  const used = new Map(usage.map((u) => [u.metricName, u]));
  const first = (name: string) => (Object.hasOwn(metadata, name) ? metadata[name]![0] : undefined);
  return names.map((name) => {
    const { help = "", unit = "" } = first(name) ?? first(base(name)) ?? {};
    const u = used.get(name);
    return { name, kind: kindOf(name, (n) => first(n)?.type), help, unit, text: `${name}\n${help}\n${unit}`.toLowerCase(), ...(u ? { series: u.series, asked: u.queryRequestsCount, seen: u.lastSampleTimestamp * 1000, dollars: u.dollarsPerMonth } : {}) };
  });
}

export type Order = "name" | "series" | "asked" | "seen";

// find returns the metrics whose name, help or unit has all words of a text. In the order of names,
// those whose name begins with the text come first, then those whose name has it.
export function find(all: readonly Metric[], text: string, order: Order): Metric[] {
  const wanted = text.trim().toLowerCase();
  const words = wanted.split(/\s+/).filter(Boolean);
  const found = all.filter((m) => words.every((w) => m.text.includes(w)));
  if (order === "seen") return found.sort((a, b) => (a.seen ?? Infinity) - (b.seen ?? Infinity) || 0);
  if (order !== "name") return found.sort((a, b) => (b[order] ?? -1) - (a[order] ?? -1));
  if (!wanted) return found;
  const ranks: Metric[][] = [[], [], []];
  for (const m of found) {
    const at = m.text.indexOf(wanted);
    ranks[at === 0 ? 0 : at > 0 && at < m.name.length ? 1 : 2]!.push(m);
  }
  return ranks.flat();
}
