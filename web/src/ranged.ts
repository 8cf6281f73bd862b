import type { Answer, Reply, Series } from "./answer";
import { rangeParams } from "./api";
import { Compact } from "./compact";
import type { Context } from "./context";
import { bounds, type Range } from "./time";

// renew is how far back an automatic refresh asks again, in ms: samples may arrive so late.
const renew = 120_000;

interface Shown {
  expr: string;
  start: number;
  end: number;
  step: number;
  asOf: number | undefined;
  series: Series[];
}

// Matrix is the answer of a range query, with the range that was asked for in ms.
export interface Matrix {
  series: Series[];
  start: number;
  end: number;
  step: number;
  reply: Reply<Answer>; // of the last request
}

// Ranged asks one range query again and again.
export class Ranged {
  private shown: Shown | undefined;

  constructor(private readonly ctx: Context) {}

  // ask runs the query. With refresh, only the end of a range that moved on is asked again.
  async ask(expr: string, range: Range, step: number, refresh: boolean, signal: AbortSignal): Promise<Matrix> {
    const b = bounds(range, Date.now());
    // Steps are multiples of the step since the epoch, so that a refresh meets the same points.
    const start = Math.floor(b.start / step) * step;
    const end = Math.floor(b.end / step) * step;
    const asOf = this.ctx.asOf();
    const old = this.shown;
    const again = refresh && old && old.expr === expr && old.step === step && old.asOf === asOf && old.start <= start && old.end >= start && old.end <= end;
    const from = again ? Math.max(start, Math.floor((old.end - renew) / step) * step) : start;
    const reply = await this.ctx.api.matrix("query_range", { ...rangeParams(expr, from, end, step, asOf), stats: "all" }, signal);
    const fresh = reply.data.result as Series[];
    const series = again ? merge(old.series, fresh, start, from) : fresh;
    this.shown = { expr, start, end, step, asOf, series };
    return { series, start, end, step, reply };
  }

  // forget makes the next refresh ask for the whole range.
  forget(): void {
    this.shown = undefined;
  }
}

// merge keeps the old points in [start, from) and takes the fresh ones from there on.
export function merge(old: Series[], fresh: Series[], start: number, from: number): Series[] {
  const id = (s: Series) => JSON.stringify(Object.entries(s.metric).sort());
  const out = new Map<string, Series>();
  const kept = <T>(points: [number, T][] | undefined) => (points ?? []).filter(([t]) => t * 1000 >= start - 0.5 && t * 1000 < from - 0.5);
  for (const s of old) {
    if (s instanceof Compact) {
      out.set(id(s), s);
      continue;
    }
    const values = kept(s.values);
    const histograms = kept(s.histograms);
    if (values.length || histograms.length) out.set(id(s), { metric: s.metric, ...(values.length ? { values } : {}), ...(histograms.length ? { histograms } : {}) });
  }
  const ended = new Set([...out].flatMap(([key, s]) => (s instanceof Compact ? [key] : []))); // as far as fresh does not have them
  for (const s of fresh) {
    const key = id(s);
    const o = out.get(key);
    ended.delete(key);
    if (o instanceof Compact && s instanceof Compact) {
      out.set(key, Compact.joined(o, s, start, from) ?? s);
      continue;
    }
    const values = [...kept(o?.values), ...(s.values ?? [])];
    const histograms = [...(o?.histograms ?? []), ...(s.histograms ?? [])];
    out.set(key, { metric: s.metric, ...(values.length ? { values } : {}), ...(histograms.length ? { histograms } : {}) });
  }
  for (const key of ended) {
    const rest = Compact.joined(out.get(key) as Compact, undefined, start, from);
    if (rest) out.set(key, rest);
    else out.delete(key);
  }
  return [...out.values()];
}
