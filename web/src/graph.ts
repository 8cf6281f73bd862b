import uPlot from "uplot";
import type { Series } from "./answer";
import { eachPoint, lastOf } from "./compact";
import { cut, h, replace } from "./dom";
import { reduce } from "./dashboards/reduce";
import type { Dot } from "./exemplars";
import { formatValue, legend, shared, type Unit } from "./format";
import { Frame, look, timed } from "./frame";
import { gradual } from "./gradual";
import { num, table } from "./table";
import { formatTime, type Zone } from "./time";
import { legendChanged, type Values } from "./values";

export interface GraphOptions {
  unit: Unit;
  stacked: boolean;
  log: boolean;
  zone: Zone;
  start: number; // ms
  end: number; // ms
  step: number; // ms
  height: number; // pixels
  zoom: (start: number, end: number) => void;
  dots?: Dot[];
  marks?: readonly Mark[];
}

// Mark is a dashed line through a graph: across it at a value, or upright at a time in seconds; or
// the area between two of them.
export interface Mark {
  at: number;
  to?: number;
  colour: string;
  upright?: boolean;
  text?: string; // under the pointer, if it is upright
}

// Lines is what a graph draws: a row of values per line, over the times of all. null is a gap;
// undefined is no value, and the line passes it.
export interface Lines {
  times: number[]; // seconds
  values: (number | null | undefined)[][];
  names: string[]; // in the legend
  titles: string[]; // at the crosshair
  total: number; // of lines, with those that are not drawn
}

export type LineOptions = Pick<GraphOptions, "stacked" | "log" | "zone"> & {
  format: (v: number) => string;
  binary?: boolean; // the axis has powers of two
  height: number | "fill"; // pixels, or those of the plot's box
  bounds?: [start: number, end: number]; // seconds; without them the times decide
  zoom?: (start: number, end: number) => void; // without it, a drag zooms the graph alone
  style?: Style;
  dots?: Dot[]; // exemplars
  marks?: readonly Mark[]; // without a style, the axis reaches the first mark across
};

// Style is what dashboards choose beyond a graph's defaults.
export interface Style {
  each: LineStyle[]; // per line
  axes: Axis[]; // the first has the grid and the marks
  legend: boolean;
  calcs: string[]; // columns of the legend
}

export interface LineStyle {
  format: (v: number) => string;
  colour: string | undefined; // undefined: the graph's own
  figures: (number | null)[]; // in the columns of the legend
  draw: string; // "line", "bars" or "points"
  curve: string; // "linear", "smooth", "stepBefore" or "stepAfter"
  points: string; // "always", "never", or else where no line shows a value
  width: number;
  dash: number[]; // lengths of a line's parts and gaps; none for a solid line
  opacity: number; // of the area below a line, 0 to 1
  connected: boolean; // it passes gaps
  stack: string; // lines with the same stack stand on each other; "" stands alone
  axis: number; // of Style.axes
  listed: boolean; // in the legend
  scheme?: readonly Stop[]; // the colours of its values, instead of one
  down: number; // the line down to which the area is filled; -1: the axis
}

// Stop is a colour from a value on, or mixed with that of the next one.
export interface Stop {
  at: number;
  colour: string;
}

export interface Axis {
  format: (v: number) => string;
  binary: boolean;
  log: boolean;
  min: number | undefined;
  max: number | undefined;
  softMin: number | undefined; // limits that values may exceed
  softMax: number | undefined;
  label: string;
  side: "left" | "right" | "hidden";
  centred?: boolean; // zero is in the middle
}

export interface Graph {
  readonly dom: HTMLElement;
  readonly values: Values; // for the table behind the graph
  destroy(): void;
}

// powers are the distances of ticks of an axis in bytes.
const powers = Array.from({ length: 80 }, (_, i) => 2 ** (i - 10));
// drawn is the number of series that a graph draws: those with the largest last values.
export const drawn = 500;
// manyLines is from how many lines on they, and then the legend, are drawn in steps.
const manyLines = 60;
export const lineWidth = 1.5;
// All graphs of the page share the crosshair.
const crosshair = uPlot.sync("page");

const hues = [210, 28, 140, 350, 265, 175, 55, 310, 95, 235, 10, 195];

export function colour(i: number): string {
  const dark = document.documentElement.dataset["theme"] === "dark";
  const round = Math.floor(i / hues.length) % 3;
  return `hsl(${hues[i % hues.length]} ${70 - round * 15}% ${(dark ? 62 : 42) + (dark ? -1 : 1) * round * 9}%)`;
}

// columns puts series on one grid of times. A step without a sample, and one with NaN, is a gap.
export function columns(series: Series[], o: Pick<GraphOptions, "start" | "end" | "step" | "log">): { times: number[]; values: (number | null)[][] } {
  const n = Math.floor((o.end - o.start) / o.step) + 1;
  const times = Array.from({ length: n }, (_, i) => (o.start + i * o.step) / 1000);
  const values = series.map((s) => {
    const row = new Array<number | null>(n).fill(null);
    const put = (t: number, v: number) => {
      const i = Math.round((t * 1000 - o.start) / o.step);
      if (i >= 0 && i < n && Number.isFinite(v) && (!o.log || v > 0)) row[i] = v;
    };
    eachPoint(s, put);
    for (const [t, x] of s.histograms ?? []) put(t, Number(x.count)); // a native histogram is drawn by its count
    return row;
  });
  return { times, values };
}

// stack puts each line on the one below it in its stack. bands are the pairs of them.
function stack(values: Lines["values"], stacks: string[]): { shown: Lines["values"]; bands: uPlot.Band[] } {
  const sums = new Map<string, { sum: number[]; top: number }>();
  const bands: uPlot.Band[] = [];
  const shown = values.map((row, i) => {
    const name = stacks[i]!;
    if (!name) return row;
    const below = sums.get(name) ?? { sum: new Array<number>(row.length).fill(0), top: 0 };
    if (below.top) bands.push({ series: [i + 1, below.top] });
    sums.set(name, { sum: below.sum, top: i + 1 });
    return row.map((v, t) => (v === null || v === undefined ? v : (below.sum[t] = below.sum[t]! + v)));
  });
  return { shown, bands };
}

// linesOf are the lines that a graph of series draws.
export function linesOf(all: Series[], o: GraphOptions): Lines {
  const series = all.length > drawn ? largest(all) : all;
  const { times, values } = columns(series, o);
  const hidden = shared(series);
  return { times, values, names: series.map((s) => legend(s.metric, hidden)), titles: series.map((s) => legend(s.metric)), total: all.length };
}

// graph draws the lines of series.
export function graph(of: Lines, o: GraphOptions): Graph {
  return lines(of, { ...o, format: (v) => formatValue(v, o.unit), binary: o.unit.startsWith("bytes"), bounds: [o.start / 1000, o.end / 1000] });
}

// largest are the series that a graph of many draws.
function largest(all: Series[]): Series[] {
  const rank = all.map((s, i) => [lastOf(s), i] as const);
  return rank.sort(([a, i], [b, j]) => b - a || i - j).slice(0, drawn).map(([, i]) => all[i]!);
}

export function lines({ times, values, names, titles, total }: Lines, o: LineOptions): Graph {
  const { style } = o;
  const plain: LineStyle = { format: o.format, colour: undefined, figures: [], draw: "line", curve: "linear", points: "auto", width: lineWidth, dash: [], opacity: o.stacked ? 0.35 : 0, connected: false, stack: o.stacked ? "all" : "", axis: 0, listed: true, down: -1 };
  const how = (i: number) => style?.each[i] ?? plain;
  const { shown, bands } = stack(values, names.map((_, i) => how(i).stack));
  const colourOf = (i: number) => how(i).colour ?? colour(i);
  const written = (i: number, v: number) => how(i).format(v);
  const bound = o.marks?.find((m) => !m.upright)?.at;
  const axes = style?.axes ?? [{ format: o.format, binary: o.binary ?? false, log: o.log, min: undefined, max: undefined, softMin: bound, softMax: bound, label: "", side: "left" as const }];
  names.forEach((_, i) => how(i).down >= 0 && bands.push({ series: [i + 1, how(i).down + 1] }));
  const scale = (i: number) => (i ? `y${i}` : "y");

  const keys = h("div", { class: "keys" });
  const frame = new Frame(`Graph of ${names.length} series`, keys);
  const { axis, text } = look();
  const { select, ...parts } = timed(o.zone, o.zoom);
  let nearest = -1;
  // Plain lines of a graph with many are drawn in steps; uPlot then draws the rest of it.
  const simple = (l: LineStyle) => l.draw === "line" && l.curve === "linear" && l.points === "auto" && l.width === how(0).width && !l.dash.length && !l.opacity && !l.connected && !l.stack && !l.axis && !l.scheme;
  const many = names.length > manyLines && names.every((_, i) => simple(how(i)));
  const steps = many ? gradual(colourOf, how(0).width, (yes) => frame.dom.setAttribute("aria-busy", String(yes))) : undefined;

  const u = new uPlot(
    {
      width: 300,
      height: o.height === "fill" ? 120 : o.height,
      ...parts,
      cursor: { sync: { key: crosshair.key }, drag: { x: true, y: false, setScale: !o.zoom }, focus: { prox: 24 }, points: { size: 6, one: names.length > manyLines } },
      focus: { alpha: names.length > 60 ? 1 : 0.35 },
      scales: { x: { time: true, ...(o.bounds ? { range: o.bounds } : {}) }, ...Object.fromEntries(axes.map((a, i): [string, uPlot.Scale] => [scale(i), a.log ? { distr: 3 } : { range: (u, min, max) => limited(yRange(u, min, max), a) }])) },
      axes: [
        { ...axis, space: 80, values: (_u, ticks, _axis, _space, distance) => timeLabels(ticks, distance, o.zone) },
        ...axes.map((a, i): uPlot.Axis => ({
          ...axis,
          scale: scale(i),
          side: a.side === "right" ? 1 : 3,
          show: a.side !== "hidden",
          size: 84,
          grid: { ...axis.grid, show: i === 0 },
          ...(a.label ? { label: a.label, labelSize: 20 } : {}),
          ...(a.binary ? { incrs: powers } : {}),
          values: (_u, ticks) => ticks.map((v) => (v === null ? "" : a.format(v))),
        })),
      ],
      series: [
        {},
        ...names.map((_, i): uPlot.Series => {
          const c = colourOf(i);
          const l = how(i);
          const points = l.draw === "points" || l.points === "always" || (l.points !== "never" && lone(values[i]!));
          return {
            label: names[i]!,
            scale: scale(l.axis),
            stroke: l.scheme?.length ? (p) => mixed(p, scale(l.axis), l.scheme!) : c,
            width: l.draw === "points" ? 0 : l.width,
            dash: l.dash,
            spanGaps: l.connected,
            points: { show: points && l.draw !== "bars", size: 4, fill: c },
            ...pathsOf(steps ? "steps" : l.draw === "bars" ? "bars" : l.curve),
            ...(l.opacity && l.draw !== "points" ? { fill: c.replace(")", ` / ${l.opacity})`) } : {}),
          };
        }),
      ],
      bands,
      hooks: {
        setSelect: [select],
        setSeries: [(_p, i) => void (nearest = i === null ? -1 : i - 1)],
        setCursor: [(p) => showTip(p)],
        draw: [(p) => steps?.draw(p), (p) => drawMarks(p, o.marks ?? []), (p) => drawDots(p, o.dots ?? [], text)],
      },
    },
    [times, ...shown] as uPlot.AlignedData,
    frame.plot,
  );

  function showTip(p: uPlot): void {
    const i = p.cursor.idx;
    if (!frame.pointed(p) || i === null || i === undefined) return frame.tell(p);
    const dot = dotAt(p, o.dots ?? []);
    if (dot) {
      frame.tell(p, h("div", { class: "muted" }, `Exemplar, ${formatTime(dot.at * 1000, o.zone)}`), h("div", {}, h("strong", {}, o.format(dot.value)), " ", h("code", {}, legend(dot.labels))), h("code", {}, legend(dot.series)));
      return;
    }
    const at = names.length === 1 ? 0 : nearest;
    const v = at >= 0 ? values[at]?.[i] : undefined;
    frame.tell(p, h("div", { class: "muted" }, formatTime(times[i]! * 1000, o.zone)), at >= 0 && h("div", {}, h("strong", {}, v === null || v === undefined ? "no sample" : written(at, v)), " ", h("code", {}, titles[at]!)), ...marksAt(p, o.marks ?? []).map((m) => h("div", {}, ...cut(m.text!))));
  }

  let ended = false;
  if (style?.legend ?? true) {
    const calcs = style?.calcs ?? (!names.length || names.length > manyLines ? [] : ["last", "min", "max", "mean"]);
    const figures = (i: number) => style?.each[i]!.figures ?? calcs.map((c) => reduce(values[i]!.map((v) => v ?? null), c.replace("last", "lastNotNull")));
    const cells = (i: number) => figures(i).map((v) => num(v ?? NaN, v === null ? "–" : written(i, v)));
    const listed = (i: number) => how(i).listed;
    const list = () => ended || legendKeys(keys, names, listed, total, u, colourOf, calcs.length ? (all) => table(`Legend of ${titles[0]}`, ["Series", ...calcs], all.flatMap((show, i) => (listed(i) ? [[{ by: names[i]!, show: [show] }, ...cells(i)]] : []))) : undefined);
    // The browser may react to input between the lines and a long legend.
    if (names.length > manyLines) setTimeout(list);
    else list();
  }
  frame.fit(u, o.height);
  return {
    dom: frame.dom,
    values: {
      of: "Series",
      times,
      zone: o.zone,
      rows: titles.map((name, i) => ({ name, values: values[i]!, format: (v) => written(i, v), shown: () => u.series[i + 1]!.show ?? true })),
      point: (i) => u.setCursor({ left: u.valToPos(times[i]!, "x"), top: u.over.clientHeight / 2 }),
    },
    destroy: () => {
      ended = true;
      steps?.stop();
      frame.destroy();
      u.destroy();
    },
  };
}

// timeLabels writes the ticks of the time axis: the time of day, and the date where a day begins
// and at the first tick. distance is that of the ticks, in seconds.
export function timeLabels(ticks: number[], distance: number, zone: Zone): string[] {
  return ticks.map((t, i) => {
    const [date, time] = formatTime(t * 1000, zone).split(" ") as [string, string];
    if (distance >= 86_400) return date;
    const clock = distance < 60 ? time : time.slice(0, 5);
    return i === 0 || time === "00:00:00" ? `${clock}\n${date}` : clock;
  });
}

// yRange leaves space above and below, and keeps a flat line off the edge.
function yRange(_u: uPlot, min: number | null, max: number | null): uPlot.Range.MinMax {
  if (min === null || max === null) return [0, 1];
  if (min === max) return min === 0 ? [-1, 1] : [min - Math.abs(min) / 2, max + Math.abs(max) / 2];
  const low = min > 0 && min < (max - min) / 2 ? 0 : min - (max - min) * 0.05;
  return [min >= 0 ? Math.max(0, low) : low, max + (max - min) * 0.05];
}

// limited applies the limits that a dashboard sets.
function limited([low, high]: uPlot.Range.MinMax, a: Axis): uPlot.Range.MinMax {
  const min = a.min ?? Math.min(low!, a.softMin ?? low!);
  const max = a.max ?? Math.max(a.min === undefined ? high! : high! + (high! - min) * 0.05, a.softMax ?? high!);
  if (a.centred) {
    const far = Math.max(Math.abs(min), Math.abs(max));
    return [-far, far];
  }
  return min < max ? [min, max] : [low, high];
}

// pathsOf is how uPlot draws a line; "steps" leaves it to gradual.
function pathsOf(curve: string): Pick<uPlot.Series, "paths"> {
  switch (curve) {
    case "steps":
      return { paths: () => null };
    case "bars":
      return { paths: uPlot.paths.bars!({ size: [0.8, 40] }) };
    case "smooth":
      return { paths: uPlot.paths.spline!() };
    case "stepBefore":
    case "stepAfter":
      return { paths: uPlot.paths.stepped!({ align: curve === "stepAfter" ? 1 : -1 }) };
    default:
      return {};
  }
}

// mixed is a gradient upwards of the colours of a scale's values.
function mixed(u: uPlot, scale: string, stops: readonly Stop[]): CanvasGradient {
  const { min, max } = u.scales[scale]! as { min: number; max: number };
  const y = (v: number) => u.valToPos(Math.min(max, Math.max(min, v)), scale, true);
  const out = u.ctx.createLinearGradient(0, y(min), 0, y(max));
  for (const s of stops) out.addColorStop((y(s.at) - y(min)) / (y(max) - y(min)), s.colour);
  return out;
}

function drawMarks(u: uPlot, marks: readonly Mark[]): void {
  const { left, top, width, height } = u.bbox;
  for (const m of marks) {
    const axis = m.upright ? "x" : "y";
    if (m.to !== undefined) {
      const { min, max } = u.scales[axis]!;
      const [a, z] = [m.at, m.to].map((v) => u.valToPos(Math.min(max!, Math.max(min!, v)), axis, true)) as [number, number];
      u.ctx.fillStyle = m.colour;
      if (m.upright) u.ctx.fillRect(a, top, z - a, height);
      else u.ctx.fillRect(left, z, width, a - z);
      continue;
    }
    const at = Math.round(u.valToPos(m.at, axis, true)) + 0.5; // sharp
    const [low, length] = m.upright ? [left, width] : [top, height];
    if (!(at >= low && at <= low + length)) continue;
    u.ctx.save();
    u.ctx.strokeStyle = m.colour;
    u.ctx.setLineDash([6, 4]);
    u.ctx.beginPath();
    u.ctx.moveTo(m.upright ? at : left, m.upright ? top : at);
    u.ctx.lineTo(m.upright ? at : left + width, m.upright ? top + height : at);
    u.ctx.stroke();
    u.ctx.restore();
  }
}

// marksAt are the marks with a text under the cursor, which may be some pixels beside them.
function marksAt(u: uPlot, marks: readonly Mark[]): Mark[] {
  const x = (at: number) => u.valToPos(at, "x") - u.cursor.left!;
  return marks.filter((m) => m.text && x(m.at) <= 4 && x(m.to ?? m.at) >= -4);
}

// positionOf is where a dot is, in the pixels that the canvas or the cursor has. A value beyond the
// axis is at its edge.
function positionOf(u: uPlot, d: Dot, canvas: boolean): { x: number; y: number } {
  const y = u.valToPos(Math.min(u.scales["y"]!.max!, Math.max(u.scales["y"]!.min!, d.value)), "y", canvas);
  return { x: u.valToPos(d.at, "x", canvas), y };
}

function drawDots(u: uPlot, dots: readonly Dot[], colour: string): void {
  const size = 4 * devicePixelRatio;
  u.ctx.save();
  u.ctx.fillStyle = colour;
  for (const d of dots) {
    const { x, y } = positionOf(u, d, true);
    if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
    u.ctx.beginPath();
    u.ctx.moveTo(x, y - size);
    u.ctx.lineTo(x + size, y);
    u.ctx.lineTo(x, y + size);
    u.ctx.lineTo(x - size, y);
    u.ctx.fill();
  }
  u.ctx.restore();
}

// dotAt is the dot under the cursor.
function dotAt(u: uPlot, dots: readonly Dot[]): Dot | undefined {
  const { left = -1, top = -1 } = u.cursor;
  return dots.find((d) => {
    const { x, y } = positionOf(u, d, false);
    return Math.abs(x - left) <= 6 && Math.abs(y - top) <= 6;
  });
}

// lone reports whether some sample has no neighbour, so that a line alone would not show it. A line
// passes the times at which it has no value.
function lone(all: (number | null | undefined)[]): boolean {
  const row = all.filter((v) => v !== undefined);
  return row.some((v, i) => v !== null && (row[i - 1] ?? null) === null && (row[i + 1] ?? null) === null);
}

// legendKeys lists the series, in a table if tabular makes one of their buttons. A click shows one
// alone, a click with Ctrl hides or shows it.
function legendKeys(keys: HTMLElement, names: string[], listed: (i: number) => boolean, total: number, u: uPlot, colourOf: (i: number) => string, tabular?: (buttons: HTMLElement[]) => HTMLElement): void {
  const on = names.map(() => true);
  const buttons: HTMLButtonElement[] = [];
  const show = () => {
    u.batch(() =>
      on.forEach((v, i) => {
        if (u.series[i + 1]!.show !== v) u.setSeries(i + 1, { show: v });
        buttons[i]!.setAttribute("aria-pressed", String(v));
      }),
    );
    keys.dispatchEvent(new Event(legendChanged, { bubbles: true }));
  };
  const toggle = (i: number, one: boolean) => {
    if (one) on[i] = !on[i];
    else {
      const alone = on[i] && on.filter(Boolean).length === 1;
      on.forEach((_, j) => (on[j] = alone || j === i));
    }
    show();
  };
  names.forEach((name, i) => {
    const swatch = h("span", { class: "swatch" });
    swatch.style.backgroundColor = colourOf(i);
    buttons.push(
      h(
        "button",
        {
          type: "button",
          class: "key",
          "aria-label": name,
          title: "Click: show this series alone. Ctrl+click: hide or show it.",
          "aria-pressed": "true",
          onclick: (e: MouseEvent) => toggle(i, e.ctrlKey || e.metaKey),
          onmouseenter: () => u.setSeries(i + 1, { focus: true }),
          onmouseleave: () => u.setSeries(null, { focus: true }),
        },
        swatch,
        ...cut(name),
      ),
    );
  });
  const search = h("input", {
    type: "search",
    placeholder: "Filter series",
    "aria-label": "Filter series of the legend",
    oninput: () => {
      const text = search.value.toLowerCase();
      names.forEach((n, i) => (buttons[i]!.hidden = !n.toLowerCase().includes(text)));
    },
  });
  replace(keys, names.length > 8 && search, total > names.length && h("span", { class: "muted" }, `The ${names.length} largest of ${total} series`), ...(tabular ? [tabular(buttons)] : buttons.filter((_, i) => listed(i))));
}
