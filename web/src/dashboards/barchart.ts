import uPlot from "uplot";
import { h } from "../dom";
import { Frame, look } from "../frame";
import { colour, type Graph } from "../graph";
import { num, table } from "../table";
import { shortened, ticks, widthOf, write } from "../tiles";
import { translucent } from "./colours";
import { opacityOf, shown, type Field } from "./fields";
import { hasLegend, key } from "./figures";
import { number, text, type Json } from "./json";

// Bars are groups of bars: a group for each name, a bar in it for each series.
export interface Bars {
  names: readonly string[];
  series: readonly { field: Field; values: readonly (number | null)[] }[]; // a value for each name
}

interface Bar {
  group: number;
  series: number;
  from: number; // on the axis of values
  to: number;
  side: number; // where it begins on the axis of names
  width: number;
}

// place computes the bars. A group of the axis of names is as wide as 1.
export function place(b: Bars, stacking: string, groupWidth: number, barWidth: number): Bar[] {
  const stacked = stacking === "normal" || stacking === "percent";
  const room = stacked ? groupWidth : groupWidth / b.series.length;
  return b.names.flatMap((_, group) => {
    const all = b.series.reduce((sum, s) => sum + Math.abs(s.values[group] ?? 0), 0);
    let [above, below] = [0, 0];
    return b.series.flatMap(({ values }, series): Bar[] => {
      const v = values[group];
      if (v === null || v === undefined || !Number.isFinite(v)) return [];
      const size = stacking === "percent" ? (all ? (v / all) * 100 : 0) : v;
      const from = !stacked ? 0 : v < 0 ? below : above;
      if (v < 0) below = from + size;
      else above = from + size;
      return [{ group, series, from, to: from + size, side: group - groupWidth / 2 + room * ((stacked ? 0 : series) + (1 - barWidth) / 2), width: room * barWidth }];
    });
  });
}

// most bounds the groups of a chart.
const most = 300;

// barchart draws groups of bars beside each other, or stacked.
export function barchart(all: Bars, options: Json, name: string): Graph {
  const b: Bars = { names: all.names.slice(0, most), series: all.series };
  const stacking = text(options["stacking"], "none");
  const percent = stacking === "percent";
  const share = (name: string, none: number) => Math.min(1, Math.max(0, number(options[name]) ?? none));
  const drawn = place(b, stacking, share("groupWidth", 0.7), share("barWidth", 0.97));
  const ends = drawn.flatMap((d) => [d.from, d.to]);
  const first = b.series[0]!.field;
  const soft = (name: string) => b.series.flatMap(({ field }) => number(field.custom[name]) ?? []);
  const [min, max] = percent ? [undefined, 100] : [first.min, first.max];
  const low = min ?? [...ends, ...soft("axisSoftMin")].reduce((x, y) => Math.min(x, y), 0);
  const high = max ?? [...ends, ...soft("axisSoftMax")].reduce((x, y) => Math.max(x, y), 0);
  const n = b.names.length;
  const cut = number(options["xTickLabelMaxLength"]) || Infinity;
  const names = b.names.map((t) => (t.length > cut ? `${t.slice(0, cut)}...` : t));
  const tint = (series: number, v: number | null) => {
    const { field } = b.series[series]!;
    const own = !field.mode || field.mode.startsWith("palette") ? "" : shown(field, v).colour;
    return translucent(own || colour(series), opacityOf(field, 80));
  };

  const { axis, text: plain } = look();
  const keys = h("ul", { class: "keys" }, ...(hasLegend(options) ? b.series.map(({ field }, i) => key(field.name, tint(i, null).colour)) : []));
  const units = new Set(b.series.map(({ field }) => field.unit)).size;
  const frame = new Frame(`Bar chart of ${n} groups`, keys, ...(units > 1 ? [h("p", { class: "warn" }, "The values have several units, but one axis.")] : []), ...(all.names.length > most ? [h("p", { class: "warn" }, `The first ${most} of ${all.names.length} groups`)] : []));

  const wanted = text(options["orientation"], "auto");
  let plot: uPlot | undefined;
  let lying: boolean | undefined;
  // build makes the plot anew when the bars turn, since a scale of uPlot keeps its direction.
  const build = () => {
    const { clientWidth: width, clientHeight: height } = frame.plot;
    const turn = wanted === "horizontal" || (wanted !== "vertical" && width < height);
    if (lying === turn) return plot?.setSize({ width, height: Math.max(80, height) });
    lying = turn;
    plot?.destroy();
    const room = (high - low) * (turn ? 0.15 : 0.12); // for the values
    const value = (v: number) => (percent ? `${Number(v.toPrecision(4))} %` : first.format(v));
    plot = new uPlot(
      {
        width: width || 300,
        height: Math.max(80, height),
        legend: { show: false },
        cursor: { drag: { x: false, y: false }, points: { show: false } },
        scales: { x: { time: false, ori: turn ? 1 : 0, dir: turn ? -1 : 1, range: [-0.5, n - 0.5] }, y: { ori: turn ? 0 : 1, range: low < high ? [min ?? low - (low < 0 && !percent ? room : 0), max ?? high + (high > 0 ? room : 0)] : [low, low + 1] } },
        axes: [
          {
            ...axis,
            side: turn ? 3 : 2,
            grid: { show: false },
            ticks: { show: false },
            size: (u) => (turn ? Math.min(u.width * 0.35, 24 + Math.max(...names.map(widthOf))) : 28),
            splits: (u) => ticks(n, turn ? u.height / 18 : u.width / 76),
            values: (u, at) => at.map((i) => shortened(names[i] ?? "", turn ? u.width * 0.35 - 24 : Math.max((u.width - 84) / n, 66) - 4)),
          },
          { ...axis, side: turn ? 2 : 3, size: turn ? 28 : 84, space: turn ? 90 : 30, values: (_u, at) => at.map(value) },
        ],
        series: [{}, { show: true, paths: () => null, points: { show: false } }],
        hooks: { draw: [draw], setCursor: [showTip] },
      },
      [b.names.map((_, i) => i), b.names.map((_, i) => (i % 2 ? low : high))],
      frame.plot,
    );
    return undefined;
  };

  function draw(u: uPlot): void {
    const { ctx, bbox } = u;
    const texts: (() => void)[] = [];
    const line = 16 * devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const d of drawn) {
      const v = b.series[d.series]!.values[d.group]!;
      const [a, z] = [u.valToPos(d.side, "x", true), u.valToPos(d.side + d.width, "x", true)];
      const [from, to] = [u.valToPos(d.from, "y", true), u.valToPos(d.to, "y", true)];
      const box = lying ? { left: Math.min(from, to), top: Math.min(a, z), width: Math.abs(to - from), height: Math.abs(z - a) } : { left: Math.min(a, z), top: Math.min(from, to), width: Math.abs(z - a), height: Math.abs(to - from) };
      const { colour: paint, ink } = tint(d.series, v);
      ctx.fillStyle = paint;
      ctx.fillRect(box.left, box.top, box.width, box.height);
      const value = shown(b.series[d.series]!.field, v).text;
      const always = options["showValue"] === "always";
      const length = widthOf(value) * devicePixelRatio + line;
      // A value is inside of a stacked bar, and at the end of another one.
      if (stacking === "normal" || percent) texts.push(() => write(ctx, value, ink, box, "center", always));
      else if (lying) texts.push(() => write(ctx, value, plain, { ...box, left: v < 0 ? to - length : to, width: Math.min(length, v < 0 ? to - bbox.left : ctx.canvas.width - to) }, v < 0 ? "right" : "left", always));
      else texts.push(() => write(ctx, value, plain, { ...box, top: v < 0 ? to : to - line, height: line }, "center", always));
    }
    ctx.restore();
    ctx.save();
    if (options["showValue"] !== "never") for (const t of texts) t();
    ctx.restore();
  }

  function showTip(u: uPlot): void {
    const i = u.cursor.idx;
    if (!frame.pointed(u) || i === null || i === undefined) return frame.tell(u);
    frame.tell(u, h("div", { class: "muted" }, b.names[i]!), ...b.series.map(({ field, values }) => h("div", {}, h("strong", {}, shown(field, values[i] ?? null).text), ` ${field.name}`)));
  }

  const sizes = new ResizeObserver(() => frame.plot.clientWidth && build());
  sizes.observe(frame.plot);
  return {
    dom: frame.dom,
    values: {
      of: "Group",
      times: [],
      zone: "utc",
      rows: [],
      point: () => {},
      table: () => table(`Values of ${name}`, ["Group", ...b.series.map(({ field }) => field.name)], b.names.map((t, i) => [t, ...b.series.map(({ field, values }) => num(values[i] ?? NaN, shown(field, values[i] ?? null).text))])),
    },
    destroy: () => {
      sizes.disconnect();
      plot?.destroy();
    },
  };
}
