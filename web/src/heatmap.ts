import type { Series } from "./answer";
import { h } from "./dom";
import { columns, type Graph } from "./graph";
import { tiles } from "./tiles";
import { formatTime, type Zone } from "./time";

// A histogram over time: a column per step, a row per bucket, the darker the more observations.

export interface Cells {
  times: number[]; // seconds
  rows: { name: string; counts: (number | null)[] }[]; // the lowest bucket first
}

export interface HeatmapOptions {
  zone: Zone;
  height: number | "fill";
  format: (v: number) => string; // counts
  zoom?: (start: number, end: number) => void; // ms
}

interface Grid {
  start: number; // ms
  end: number;
  step: number;
}

// isHistogram reports whether series are the buckets of classic histograms, or native histograms.
export function isHistogram(series: readonly Series[]): boolean {
  return series.length > 0 && (series.every((s) => s.metric["le"] !== undefined && !Number.isNaN(Number(s.metric["le"].replace("Inf", "Infinity")))) || series.every((s) => (s.histograms?.length ?? 0) > 0));
}

const bound = (le: string) => Number(le.replace("Inf", "Infinity"));

// cellsOf sums histograms of all series, by bucket. The counts of classic buckets are cumulative.
export function cellsOf(series: Series[], g: Grid, format: (v: number) => string): Cells {
  const { times, values } = columns(series, { ...g, log: false });
  if (series.some((s) => s.histograms?.length)) return native(series, times, (t) => Math.round((t * 1000 - g.start) / g.step), format);
  const sums = new Map<number, (number | null)[]>();
  series.forEach((s, j) => {
    const le = bound(s.metric["le"] ?? "Inf");
    const below = sums.get(le);
    sums.set(le, values[j]!.map((v, i) => (v === null ? (below?.[i] ?? null) : (below?.[i] ?? 0) + v)));
  });
  const bounds = [...sums.keys()].sort((a, b) => a - b);
  const rows = bounds.map((le, j) => {
    const below = j ? sums.get(bounds[j - 1]!)! : undefined;
    return { name: le === Infinity ? "+Inf" : format(le), counts: sums.get(le)!.map((v, i) => (v === null ? null : Math.max(0, v - (below?.[i] ?? 0)))) };
  });
  return { times, rows };
}

// mostRows bounds the rows of native histograms: neighbours are joined beyond it.
const mostRows = 60;

function native(series: readonly Series[], times: number[], index: (t: number) => number, format: (v: number) => string): Cells {
  const sums = new Map<number, Map<number, number>>(); // by upper bound, then step
  for (const s of series) {
    for (const [t, x] of s.histograms ?? []) {
      for (const [, , upper, count] of x.buckets ?? []) {
        const u = bound(upper);
        let row = sums.get(u);
        if (!row) sums.set(u, (row = new Map()));
        row.set(index(t), (row.get(index(t)) ?? 0) + Number(count));
      }
    }
  }
  const bounds = [...sums.keys()].sort((a, b) => a - b);
  const together = Math.max(1, Math.ceil(bounds.length / mostRows));
  const rows: Cells["rows"] = [];
  for (let j = 0; j < bounds.length; j += together) {
    const group = bounds.slice(j, j + together);
    const counts = times.map((_, i): number | null => group.reduce<number | null>((sum, u) => (sums.get(u)!.has(i) ? (sum ?? 0) + sums.get(u)!.get(i)! : sum), null));
    rows.push({ name: format(group.at(-1)!), counts });
  }
  return { times, rows };
}

export function heatmap(c: Cells, o: HeatmapOptions): Graph {
  const dark = document.documentElement.dataset["theme"] === "dark";
  const most = c.rows.reduce((m, r) => r.counts.reduce<number>((a, v) => Math.max(a, v ?? 0), m), 0);
  const half = c.times.length > 1 ? (c.times[1]! - c.times[0]!) / 2 : 30;
  const colour = (v: number) => `hsl(${dark ? 205 : 215} 80% ${dark ? 18 + 57 * Math.sqrt(v / most) : 90 - 62 * Math.sqrt(v / most)}%)`;
  const bucket = (row: number) => (row ? `(${c.rows[row - 1]!.name}, ${c.rows[row]!.name}]` : `up to ${c.rows[row]!.name}`);
  return tiles(
    c.rows.map((r) => ({ name: r.name, tiles: r.counts.flatMap((v, i) => (v ? [{ from: c.times[i]! - half, to: c.times[i]! + half, colour: colour(v) }] : [])) })),
    {
      name: `Heatmap of ${c.rows.length} buckets`,
      times: c.times,
      bounds: [c.times[0]! - half, c.times.at(-1)! + half],
      zone: o.zone,
      height: o.height,
      ...(o.zoom ? { zoom: o.zoom } : {}),
      boundaries: true,
      tip: (row, _at, i) => {
        const v = c.rows[row]!.counts[i];
        return [h("div", { class: "muted" }, formatTime(c.times[i]! * 1000, o.zone)), h("div", {}, h("strong", {}, v === null || v === undefined ? "no sample" : o.format(v)), ` in ${bucket(row)}`)];
      },
      values: { of: "Bucket", rows: c.rows.map((r, j) => ({ name: bucket(j), values: r.counts, format: o.format, shown: () => true })) },
    },
  );
}
