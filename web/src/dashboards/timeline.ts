import { h } from "../dom";
import { colour, type Graph } from "../graph";
import { tiles, type Tile } from "../tiles";
import { formatTime, type Zone } from "../time";
import { translucent } from "./colours";
import { mappedText, opacityOf, shown, type Field } from "./fields";
import { hasLegend, key } from "./figures";
import { number, type Json } from "./json";
import { onTimes, type Values } from "./reduce";
import { formatter } from "./units";

// State timelines and status histories: a band for each series, whose tiles are its states.

export interface Band {
  field: Field;
  times: readonly number[]; // seconds
  values: Values;
}

export interface TimelineOptions {
  options: Json; // of the panel
  history: boolean; // a tile for each sample, not for each state
  start: number; // ms
  end: number; // ms
  step: number; // ms
  zone: Zone;
  zoom: (start: number, end: number) => void; // ms
}

interface State {
  text: string;
  colour: string;
}

interface Span {
  from: number; // seconds
  to: number;
  value: number;
}

// stateOf is what a value means: its mapping, or, if values are merged by thresholds, the bracket
// of its threshold, or the value itself. i is that of the band.
function stateOf(f: Field, v: number, brackets: boolean, i: number): State {
  const s = shown(f, v);
  const tint = s.colour || colour(i);
  if (!brackets || mappedText(f, v)) return { text: s.text, colour: tint };
  const at = f.percentage ? ((v - (f.min ?? 0)) / ((f.max ?? 100) - (f.min ?? 0))) * 100 : v;
  const step = f.steps.findLastIndex((x) => x.from <= at);
  const write = f.percentage ? formatter("percent", undefined, "utc") : f.format;
  const from = f.steps[step]?.from ?? -Infinity;
  return { text: Number.isFinite(from) ? `${write(from)}+` : `< ${write(f.steps[step + 1]!.from)}`, colour: tint };
}

// spans are the times of the values of a band. A gap ends a span, unless the field connects values
// over it. With merge, equal neighbours are one span; same decides which are.
export function spans(times: readonly number[], values: Values, end: number, o: { connected: boolean | number; merge: boolean; same: (a: number, b: number) => boolean }): Span[] {
  const out: Span[] = [];
  let last: Span | undefined; // goes on until the next value or gap
  let since: number | undefined; // the beginning of a gap
  let seen = 0; // the time of the last value
  times.forEach((t, i) => {
    const v = values[i] ?? null;
    if (v === null) {
      if (last && since === undefined) [since, last.to] = [t, t];
      return;
    }
    const passes = since === undefined || o.connected === true || (typeof o.connected === "number" && (t - seen) * 1000 < o.connected);
    if (last && passes) last.to = t;
    if (!last || !passes || !o.merge || !o.same(last.value, v)) out.push((last = { from: t, to: end, value: v }));
    [since, seen] = [undefined, t];
  });
  if (last && since === undefined) last.to = end;
  return out;
}

export function timeline(bands: readonly Band[], o: TimelineOptions): Graph {
  const { options, history } = o;
  const merge = !history && options["mergeValues"] !== false;
  const times = [...new Set(bands.flatMap((b) => b.times))].sort((a, b) => a - b);
  const end = o.end / 1000;
  const half = (o.step / 2000) * (number(options["colWidth"]) ?? 0.9);
  const legend = new Map<string, string>();
  const rows = bands.map(({ field, times, values }, i) => {
    const brackets = merge && field.mode === "thresholds" && field.steps.length > 1;
    const state = (v: number) => stateOf(field, v, brackets, i);
    const same = (a: number, b: number) => (brackets ? state(a).text === state(b).text : a === b);
    const connected = field.custom["spanNulls"] === true || (number(field.custom["spanNulls"]) ?? false);
    const all = history ? times.flatMap((t, j): Span[] => (typeof values[j] === "number" ? [{ from: t - half, to: t + half, value: values[j] }] : [])) : spans(times, values, end, { connected, merge, same });
    const opacity = opacityOf(field, 70);
    const drawn = all.map((s): Tile & { text: string } => {
      const is = state(s.value);
      if (!field.mode.startsWith("continuous-")) legend.set(is.text, is.colour);
      return { from: s.from, to: s.to, text: is.text, ...translucent(is.colour, opacity) };
    });
    return { name: field.name, tiles: drawn, state };
  });
  const keys = h("ul", { class: "keys" }, ...(hasLegend(options) ? [...legend].slice(0, mostStates).map(([name, tint]) => key(name, translucent(tint, 1).colour)) : []));
  return tiles(rows, {
    name: `${history ? "Status history" : "State timeline"} of ${bands.length} series`,
    times,
    bounds: [Math.min(o.start / 1000, ...(history ? [times[0]! - half] : [])), history ? Math.max(end, times.at(-1)! + half) : end],
    zone: o.zone,
    height: "fill",
    zoom: o.zoom,
    gap: 1 - Math.min(1, number(options["rowHeight"]) ?? 0.9),
    border: Math.max(0, ...bands.map((b) => number(b.field.custom["lineWidth"]) ?? 0)),
    texts: (["never", "always"] as const).find((t) => t === options["showValue"]) ?? "auto",
    align: (["center", "right"] as const).find((t) => t === options["alignValue"]) ?? (history ? "center" : "left"),
    tip: (row, at) => {
      const t = rows[row]!.tiles.findLast((x) => x.from <= at && at < x.to);
      const time = (s: number) => formatTime(s * 1000, o.zone);
      return [h("div", { class: "muted" }, t && !history ? `${time(t.from)} – ${time(t.to)}` : time(at)), h("div", {}, h("strong", {}, t?.text ?? "no sample"), ` ${rows[row]!.name}`)];
    },
    values: {
      of: "Series",
      rows: rows.map((r, i) => ({ name: r.name, values: onTimes(bands[i]!, times), format: (v) => r.state(v).text, shown: () => true })),
    },
    below: keys,
  });
}

// mostStates bounds the legend.
const mostStates = 40;
