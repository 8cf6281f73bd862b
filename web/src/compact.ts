import type { Labels, Point, Series } from "./answer";

// Compact is a series of a large answer. Its points are numbers in arrays: as the texts that the
// server sends, five million points would take half a gigabyte, and cleaning up after them would
// keep the page busy.
export class Compact implements Series {
  private constructor(
    readonly metric: Labels,
    readonly times: Float64Array, // seconds; series may share them
    readonly floats: Float64Array,
  ) {}

  // of compacts a series. It returns the series itself if it has histograms, or a value that would
  // be written otherwise than the server wrote it. before is the series before it.
  static of(s: Series, before: Series | undefined): Series {
    const points = s.values;
    if (!points || s.histograms) return s;
    const floats = new Float64Array(points.length);
    let times = before instanceof Compact && before.times.length === points.length ? before.times : undefined;
    for (let i = 0; i < points.length; i++) {
      const [t, v] = points[i]!;
      floats[i] = number(v);
      if (written(floats[i]!) !== v) return s;
      if (times?.[i] !== t) times = undefined;
    }
    return new Compact(s.metric, times ?? Float64Array.from(points, (p) => p[0]), floats);
  }

  // copied is a series that another thread has sent. A Compact arrives as an object without a
  // class.
  static copied(s: Series | Pick<Compact, "metric" | "times" | "floats">): Series {
    return "floats" in s ? new Compact(s.metric, s.times, s.floats) : s;
  }

  // joined are the points of old in [start, from) and those of fresh, in ms. It is undefined if
  // there are none.
  static joined(old: Compact, fresh: Compact | undefined, start: number, from: number): Compact | undefined {
    const at = (ms: number) => {
      const i = old.times.findIndex((t) => t * 1000 >= ms - 0.5);
      return i < 0 ? old.times.length : i;
    };
    const [low, high] = [at(start), at(from)];
    const more = fresh?.times.length ?? 0;
    if (high - low + more <= 0) return undefined;
    const join = (a: Float64Array, b: Float64Array | undefined) => {
      const out = new Float64Array(high - low + more);
      out.set(a.subarray(low, high));
      if (b) out.set(b, high - low);
      return out;
    };
    return new Compact(old.metric, join(old.times, fresh?.times), join(old.floats, fresh?.floats));
  }

  // values are the points as the server sent them, made anew each time.
  get values(): Point[] {
    return Array.from(this.floats, (v, i) => [this.times[i]!, written(v)]);
  }

  toJSON(): Series {
    return { metric: this.metric, values: this.values };
  }
}

// number reads a value of the API, and written writes it.
export const number = (v: string) => (v === "+Inf" ? Infinity : v === "-Inf" ? -Infinity : Number(v));
export const written = (v: number) => (v === Infinity ? "+Inf" : v === -Infinity ? "-Inf" : Object.is(v, -0) ? "-0" : String(v));

// eachPoint calls visit with each float of a series.
export function eachPoint(s: Series, visit: (seconds: number, v: number) => void): void {
  if (s instanceof Compact) s.floats.forEach((v, i) => visit(s.times[i]!, v));
  else for (const [t, v] of s.values ?? []) visit(t, number(v));
}

// lastOf is the last value of a series; of a histogram, its count.
export function lastOf(s: Series): number {
  if (s instanceof Compact) return s.floats.at(-1) ?? 0;
  return Number(s.values?.at(-1)?.[1] ?? s.histograms?.at(-1)?.[1].count ?? 0);
}
