import uPlot from "uplot";
import type { Series } from "./answer";
import { h } from "./dom";
import { Frame } from "./frame";
import { formatTime, type Zone } from "./time";
import { timeLabels, type Graph } from "./graph";

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

const gridTimes = (g: Grid) => Array.from({ length: Math.floor((g.end - g.start) / g.step) + 1 }, (_, i) => (g.start + i * g.step) / 1000);

// isHistogram reports whether series are the buckets of classic histograms, or native histograms.
export function isHistogram(series: readonly Series[]): boolean {
  return series.length > 0 && (series.every((s) => s.metric["le"] !== undefined && !Number.isNaN(Number(s.metric["le"].replace("Inf", "Infinity")))) || series.every((s) => (s.histograms?.length ?? 0) > 0));
}

const bound = (le: string) => Number(le.replace("Inf", "Infinity"));

// cellsOf sums histograms of all series, by bucket. The counts of classic buckets are cumulative.
export function cellsOf(series: readonly Series[], g: Grid, format: (v: number) => string): Cells {
  const times = gridTimes(g);
  const index = (t: number) => Math.round((t * 1000 - g.start) / g.step);
  if (series.some((s) => s.histograms?.length)) return native(series, times, index, format);
  const sums = new Map<number, (number | null)[]>();
  for (const s of series) {
    const le = bound(s.metric["le"] ?? "Inf");
    let row = sums.get(le);
    if (!row) sums.set(le, (row = new Array<number | null>(times.length).fill(null)));
    for (const [t, v] of s.values ?? []) {
      const i = index(t);
      const n = Number(v);
      if (i >= 0 && i < times.length && Number.isFinite(n)) row[i] = (row[i] ?? 0) + n;
    }
  }
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
  const frame = new Frame(`Heatmap of ${c.rows.length} buckets`);
  const css = getComputedStyle(document.documentElement);
  const axis = { stroke: css.getPropertyValue("--muted"), grid: { show: false }, ticks: { stroke: css.getPropertyValue("--grid"), width: 1 } };
  const dark = document.documentElement.dataset["theme"] === "dark";
  const n = c.rows.length;
  const most = c.rows.reduce((m, r) => r.counts.reduce<number>((a, v) => Math.max(a, v ?? 0), m), 0);
  const half = c.times.length > 1 ? (c.times[1]! - c.times[0]!) / 2 : 30;
  const u = new uPlot(
    {
      width: 300,
      height: o.height === "fill" ? 120 : o.height,
      tzDate: (ts) => (o.zone === "utc" ? uPlot.tzDate(new Date(ts * 1000), "Etc/UTC") : new Date(ts * 1000)),
      legend: { show: false },
      cursor: { sync: { key: "page" }, drag: { x: true, y: false, setScale: !o.zoom } },
      scales: { x: { time: true, range: [c.times[0]! - half, c.times.at(-1)! + half] }, y: { range: [0, Math.max(1, n)] } },
      axes: [
        { ...axis, space: 80, values: (_u, at, _axis, _space, distance) => timeLabels(at, distance, o.zone) },
        { ...axis, size: 84, splits: () => ticks(n), values: (_u, at) => at.map((v) => (v > 0 ? (c.rows[Math.round(v) - 1]?.name ?? "") : "")) },
      ],
      series: [{}, { show: true, paths: () => null, points: { show: false } }],
      hooks: {
        draw: [draw],
        setCursor: [showTip],
        setSelect: [(p) => p.select.width >= 6 && o.zoom?.(p.posToVal(p.select.left, "x") * 1000, p.posToVal(p.select.left + p.select.width, "x") * 1000)],
      },
    },
    [c.times, c.times.map(() => 0)],
    frame.plot,
  );

  function draw(p: uPlot): void {
    const { ctx } = p;
    ctx.save();
    c.rows.forEach((row, j) => {
      const top = p.valToPos(j + 1, "y", true);
      const height = p.valToPos(j, "y", true) - top;
      row.counts.forEach((v, i) => {
        if (!v) return;
        const left = Math.max(p.bbox.left, p.valToPos(c.times[i]! - half, "x", true));
        const right = Math.min(p.bbox.left + p.bbox.width, p.valToPos(c.times[i]! + half, "x", true));
        const strength = Math.sqrt(v / most);
        ctx.fillStyle = `hsl(${dark ? 205 : 215} 80% ${dark ? 18 + 57 * strength : 90 - 62 * strength}%)`;
        ctx.fillRect(left, top, Math.max(1, right - left - 0.5), Math.max(1, height - 0.5));
      });
    });
    ctx.restore();
  }

  function showTip(p: uPlot): void {
    const i = p.cursor.idx;
    const row = Math.floor(p.posToVal(p.cursor.top ?? -1, "y"));
    const r = c.rows[row];
    if (!frame.pointed(p) || i === null || i === undefined || !r) return frame.tell(p);
    const v = r.counts[i];
    frame.tell(p, h("div", { class: "muted" }, formatTime(c.times[i]! * 1000, o.zone)), h("div", {}, h("strong", {}, v === null || v === undefined ? "no sample" : o.format(v)), ` in ${bucket(row)}`));
  }

  const bucket = (row: number) => (row ? `(${c.rows[row - 1]!.name}, ${c.rows[row]!.name}]` : `up to ${c.rows[row]!.name}`);
  frame.fit(u, o.height);
  return {
    dom: frame.dom,
    values: {
      of: "Bucket",
      times: c.times,
      zone: o.zone,
      rows: c.rows.map((r, j) => ({ name: bucket(j), values: r.counts, format: o.format, shown: () => true })),
      point: (i) => u.setCursor({ left: u.valToPos(c.times[i]!, "x"), top: u.over.clientHeight / 2 }),
    },
    canvas: () => u.ctx.canvas,
    destroy: () => {
      frame.destroy();
      u.destroy();
    },
  };
}

// ticks are at most about eight boundaries of n rows.
function ticks(n: number): number[] {
  const distance = Math.max(1, Math.ceil(n / 8));
  return Array.from({ length: Math.floor(n / distance) + 1 }, (_, i) => i * distance);
}
