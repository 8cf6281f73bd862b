import type { Named } from "../csv";
import { cut, h } from "../dom";
import { cellsOf, heatmap, isHistogram } from "../heatmap";
import { colour, drawn, lines, lineWidth, type Axis, type Graph, type LineStyle, type Mark, type Stop } from "../graph";
import type { Context } from "../context";
import { barchart } from "./barchart";
import { back, fill, ink, translucent } from "./colours";
import { colourOf, fieldOf, opacityOf, shown, type Field } from "./fields";
import { allValues, bars, gauges, hasLegend, labelField, pie, stats, type Figure } from "./figures";
import { inText, type Scope } from "./interpolate";
import { list, number, object, text, type Json } from "./json";
import type { Limit } from "./legacy";
import { order, table, type Cell as Shown } from "../table";
import type { PanelSpec } from "./model";
import type { Data, Line } from "./query";
import { isCalculation, onTimes, reduce, title, type Values } from "./reduce";
import { tables } from "./support";
import { timeline, type Band } from "./timeline";
import { gridsOf, seriesByTime, transform, transformLines, type Cell, type Grid } from "./transform";
import { formatter, isBinary } from "./units";

// Picture is what a panel shows. graph is there if it must be destroyed.
export interface Picture {
  dom: HTMLElement;
  graph?: Graph;
}

type Draw = (spec: PanelSpec, d: Data, ctx: Context, scope: Scope) => Picture;

const drawers: Record<string, Draw> = {
  timeseries,
  stat: (spec, d, ctx, scope) => ({ dom: stats(figures(spec, d, ctx, scope), spec.options) }),
  gauge: (spec, d, ctx, scope) => ({ dom: gauges(figures(spec, d, ctx, scope), spec.options) }),
  bargauge: (spec, d, ctx, scope) => ({ dom: bars(figures(spec, d, ctx, scope), spec.options) }),
  piechart: (spec, d, ctx, scope) => ({ dom: pie(figures(spec, d, ctx, scope), spec.options) }),
  table: tabular,
  heatmap: heat,
  "state-timeline": (spec, d, ctx, scope) => bands(spec, d, ctx, scope, false),
  "status-history": (spec, d, ctx, scope) => bands(spec, d, ctx, scope, true),
  barchart: barred,
};

// draw shows the data of a panel.
export function draw(spec: PanelSpec, d: Data, ctx: Context, scope: Scope): Picture {
  if (!d.lines.length && !d.tables.some((t) => t.series.length)) return { dom: h("p", { class: "muted empty" }, text(spec.defaults["noValue"], "No data")) };
  return drawers[spec.type]!(spec, tables(spec.type) ? d : { ...d, lines: transformLines(d.lines, spec.transformations) }, ctx, scope);
}

// words is a text panel. Its content stays text, whatever it would mean as Markdown or HTML.
export function words(spec: PanelSpec, scope: Scope): HTMLElement {
  return h("div", { class: "words" }, ...cut(inText(text(spec.options["content"]), scope)));
}

const fieldFor = (spec: PanelSpec, l: Line, ctx: Context, scope: Scope) => fieldOf(l, spec.defaults, spec.overrides, ctx.zone(), scope);

// valuesOf are the values of a line whose field may show null as zero.
const valuesOf = (l: Line, f: Field): Values => (f.zeros ? l.values.map((v) => v ?? 0) : l.values);

// painted gives fields that have the colours of a palette that of their place.
const painted = (fields: readonly Field[]) => fields.forEach((f, i) => f.mode.startsWith("palette") && (f.colour = colour(i)));

// seriesOf are the series that a panel shows, by their names in its legend.
export const seriesOf = (spec: PanelSpec, d: Data, ctx: Context, scope: Scope): Named[] =>
  d.lines.flatMap((l) => {
    const field = fieldFor(spec, l, ctx, scope);
    return field.hidden ? [] : [{ name: field.name, series: l.series }];
  });

// limit gives fields of continuous colours the limits of all their values, unless they have their
// own.
function limit(all: { field: Field; values: readonly (Cell | undefined)[] }[]): void {
  const numbers = all.flatMap(({ field, values }) => (field.mode.startsWith("continuous-") ? values.filter((v): v is number => typeof v === "number" && Number.isFinite(v)) : []));
  if (!numbers.length) return;
  for (const { field } of all) {
    field.min ??= numbers.reduce((a, b) => Math.min(a, b));
    field.max ??= numbers.reduce((a, b) => Math.max(a, b));
  }
}

function figures(spec: PanelSpec, d: Data, ctx: Context, scope: Scope): Figure[] {
  const out: Figure[] = [];
  // A query for a table has one column of values, over all series.
  const column = (l: Line) => l.times.length > 0 && d.tables.some((t) => t.refId === l.refId);
  const lines = d.lines.filter((l, i) => !column(l) || d.lines[i + 1]?.refId !== l.refId);
  for (const last of lines) {
    const l = column(last) ? { ...last, values: d.lines.flatMap((x) => (x.refId === last.refId ? x.values : [])) } : last;
    const field = fieldFor(spec, l, ctx, scope);
    if (field.hidden) continue;
    const label = labelField(spec.options, Object.keys(l.labels));
    const values = valuesOf(l, field);
    out.push({ field, name: field.name, values: allValues(spec.options) ? values.slice(-1) : values, label: label === undefined ? undefined : l.labels[label] });
  }
  painted(out.map((f) => f.field));
  limit(out);
  return out;
}

// bands draws the states of series over time.
function bands(spec: PanelSpec, d: Data, ctx: Context, scope: Scope, history: boolean): Picture {
  const all = d.lines.map((l): Band => ({ field: fieldFor(spec, l, ctx, scope), times: l.times, values: l.values })).filter((b) => !b.field.hidden && b.times.length > 0);
  if (!all.length) return tabular(spec, d, ctx, scope);
  const shown = all.slice(0, drawn);
  for (const { field } of shown) field.mode ||= history ? "thresholds" : "continuous-GrYlRd"; // as in Grafana
  limit(shown);
  const g = timeline(shown, { options: spec.options, history, start: d.start, end: d.until, step: d.step, zone: ctx.zone(), zoom: (s, e) => ctx.zoom(s, e) });
  if (all.length > drawn) g.dom.append(h("p", { class: "warn" }, `The first ${drawn} of ${all.length} series`));
  return { dom: g.dom, graph: g };
}

// barred draws the numbers of a table by one of its columns of texts. Queries for series have a
// group for each time.
function barred(spec: PanelSpec, d: Data, ctx: Context, scope: Scope): Picture {
  const grid = spec.transformations.length || spec.targets.some((t) => t.table) ? transform(gridsOf(d), spec.transformations, d, scope) : seriesByTime(d);
  const wanted = text(spec.options["xField"]);
  const isText = (i: number) => grid.rows.some((r) => typeof r[i] === "string") && grid.rows.every((r) => typeof r[i] !== "number");
  const named = grid.columns.findIndex((c) => wanted && (c.title === wanted || c.name === wanted));
  const texts = grid.columns.flatMap((c, i) => (isText(i) && c.name !== "Time" ? [i] : []));
  const x = named >= 0 ? named : (texts[0] ?? grid.columns.findIndex((c) => c.name === "Time"));
  const series = grid.columns.flatMap((_, i) => {
    if (i === x || !grid.rows.some((r) => typeof r[i] === "number")) return [];
    const field = columnField(spec, grid, i, ctx, scope);
    return field.hidden ? [] : [{ field, values: grid.rows.map((r) => (typeof r[i] === "number" ? r[i] : null)) }];
  });
  if (!series.length || x < 0) return tabular(spec, d, ctx, scope);
  limit(series);
  const field = columnField(spec, grid, x, ctx, scope);
  const names = grid.rows.map((r) => shown(field, r[x] ?? "").text);
  const day = grid.columns[x]!.name === "Time" ? (names[0] ?? "").slice(0, 11) : ""; // that all times share
  const g = barchart({ names: names.every((t) => t.startsWith(day)) ? names.map((t) => t.slice(day.length)) : names, series }, spec.options, spec.title || "the panel");
  return { dom: g.dom, graph: g };
}

// columnField is the field of a column of a table.
function columnField(spec: PanelSpec, g: Grid, i: number, ctx: Context, scope: Scope): Field {
  const { title, refId, labels = {} } = g.columns[i]!;
  const values = g.rows.flatMap((r) => (typeof r[i] === "string" ? [] : [r[i] ?? null]));
  return fieldOf({ name: title, refId, labels, values }, spec.defaults, spec.overrides, ctx.zone(), scope);
}

interface Kept {
  l: Line;
  f: Field;
  custom: Json;
}

function timeseries(spec: PanelSpec, d: Data, ctx: Context, scope: Scope): Picture {
  if (d.lines.some((l) => l.series.histograms?.length)) return heat(spec, d, ctx, scope);
  const legend = object(spec.options["legend"]);
  const calcs = (Array.isArray(legend["calcs"]) ? legend["calcs"] : []).map((c) => text(c)).filter(isCalculation);
  const all = d.lines.map((l): Kept => {
    const f = fieldFor(spec, l, ctx, scope);
    return { l: { ...l, values: valuesOf(l, f) }, f, custom: f.custom };
  }).filter(({ l, f }) => !f.hidden && l.times.length > 0);
  if (!all.length) return tabular(spec, d, ctx, scope);
  const largest = ({ l }: Kept) => reduce(l.values, "lastNotNull") ?? -Infinity;
  const kept = all.length > drawn ? [...all].sort((a, b) => largest(b) - largest(a)).slice(0, drawn) : all;
  limit(kept.map(({ l, f }) => ({ field: f, values: l.values })));
  // Queries may have steps of their own. At the times of others, a line has no value and passes.
  const times = [...new Set(kept.flatMap(({ l }) => l.times))].sort((a, b) => a - b);
  const isLog = ({ custom }: Kept) => text(object(custom["scaleDistribution"])["type"]) === "log";
  const negative = ({ custom }: Kept) => text(custom["transform"]) === "negative-Y";
  const values = kept.map((k) => {
    const row = onTimes(k.l, times).map((v) => (v === null || v === undefined ? v : isLog(k) && v <= 0 ? null : negative(k) ? -v : v));
    return bridged(times, row, number(k.custom["spanNulls"]) ?? 0);
  });
  const axes: Axis[] = [];
  const known = new Map<string, number>();
  const stacks = kept.map((k) => stackOf(k, negative(k)));
  const each = kept.map((k, i): LineStyle => {
    const { f, l, custom } = k;
    const percent = stacks[i]!.startsWith("percent");
    const format = percent ? formatter("percent", undefined, ctx.zone()) : f.format;
    const axis: Axis = {
      format,
      binary: !percent && isBinary(f.unit),
      log: isLog(k),
      min: percent ? 0 : f.min,
      max: percent ? 100 : f.max,
      softMin: number(custom["axisSoftMin"]),
      softMax: number(custom["axisSoftMax"]),
      label: text(custom["axisLabel"]),
      centred: custom["axisCenteredZero"] === true,
      side: "left",
    };
    const placement = text(custom["axisPlacement"], "auto");
    const key = JSON.stringify([percent ? "%" : f.unit, placement, { ...axis, format: "" }]);
    const at = known.get(key) ?? axes.length;
    if (at === axes.length) axes.push({ ...axis, side: placement === "auto" ? (at ? "right" : "left") : (placement as Axis["side"]) });
    known.set(key, at);
    const draw = text(custom["drawStyle"], "line");
    const dash = object(custom["lineStyle"]);
    const lengths = Array.isArray(dash["dash"]) ? dash["dash"].filter((n): n is number => typeof n === "number") : [];
    const own = f.colour || (f.mode && !f.mode.startsWith("palette") ? colourOf(f, reduce(l.values, "lastNotNull")) : "");
    return {
      format,
      colour: own ? fill(own) : undefined,
      figures: calcs.map((c) => reduce(l.values, c)),
      draw,
      curve: text(custom["lineInterpolation"], "linear"),
      points: text(custom["showPoints"], "auto"),
      width: number(custom["lineWidth"]) ?? lineWidth,
      dash: text(dash["fill"]) === "dash" ? (lengths.length ? lengths : [10, 10]) : text(dash["fill"]) === "dot" ? (lengths.length ? lengths : [0, 10]) : [],
      opacity: opacityOf(f, 0),
      connected: custom["spanNulls"] === true,
      stack: stacks[i]! && `${stacks[i]} ${at} ${draw}`,
      axis: at,
      listed: object(custom["hideFrom"])["legend"] !== true,
      ...(custom["gradientMode"] === "scheme" && /^(thresholds|continuous)/.test(f.mode) ? { scheme: schemeOf(f) } : {}),
      down: text(custom["fillBelowTo"]) ? kept.findIndex((x) => x.f.name === custom["fillBelowTo"]) : -1,
    };
  });
  each.forEach(({ stack }, i) => {
    if (!stack.startsWith("percent") || each.findIndex((e) => e.stack === stack) !== i) return;
    const rows = each.flatMap((e, j) => (e.stack === stack ? [j] : []));
    const sums = times.map((_, t) => rows.reduce((sum, j) => sum + Math.abs(values[j]![t] ?? 0), 0));
    for (const j of rows) values[j] = values[j]!.map((v, t) => (v === null || v === undefined ? v : sums[t] ? (v / sums[t]!) * 100 : null));
  });
  const main = kept[0]!.f;
  const style = text(object(main.custom["thresholdsStyle"])["mode"]);
  const steps = main.percentage ? [] : main.steps;
  const areas = style.endsWith("area") ? steps.map((s, i): Limit => ({ at: s.from, to: steps[i + 1]?.from ?? Infinity, colour: s.colour })) : [];
  const levels = /^(line|dashed)/.test(style) ? steps.filter((s) => Number.isFinite(s.from)).map((s): Limit => ({ at: s.from, colour: s.colour })) : [];
  const marks = [...areas, ...levels, ...spec.limits].flatMap((m): Mark[] => (fill(m.colour) ? [{ ...m, colour: m.to === undefined ? fill(m.colour)! : translucent(m.colour, 0.15).colour }] : []));
  const names = kept.map(({ f }) => f.name);
  const g = lines(
    { times, values, names, titles: names, total: all.length },
    {
      format: each[0]!.format,
      stacked: false,
      log: false,
      zone: ctx.zone(),
      height: "fill",
      bounds: [Math.min(d.start / 1000, times[0]!), d.until / 1000],
      zoom: (s, e) => ctx.zoom(s, e),
      marks: [...marks, ...d.marks],
      dots: d.dots,
      style: { each, axes, legend: hasLegend(spec.options), calcs: calcs.map(title) },
    },
  );
  return { dom: g.dom, graph: g };
}

// schemeOf is the colours of the values of a field, ascending.
function schemeOf(f: Field): Stop[] {
  const { steps, min = 0, max = 100 } = f;
  if (!f.mode.startsWith("continuous-")) return steps.flatMap((s, i) => [s.from, steps[i + 1]?.from ?? Infinity].map((at) => ({ at, colour: fill(s.colour) ?? "transparent" })));
  return Array.from({ length: 9 }, (_, i) => min + ((max - min) * i) / 8).map((at) => ({ at, colour: fill(colourOf(f, at)) ?? "transparent" }));
}

// bridged lets a line pass gaps of at most so many ms.
function bridged(times: readonly number[], row: (number | null | undefined)[], most: number): (number | null | undefined)[] {
  let last: number | undefined; // the index of the last value
  row.forEach((v, i) => {
    if (v === null || v === undefined) return;
    if (last !== undefined && (times[i]! - times[last]!) * 1000 <= most) row.fill(undefined, last + 1, i);
    last = i;
  });
  return row;
}

// stackOf names the stack of a line, "" if it stands alone. Lines below zero have their own.
function stackOf({ l, custom }: Kept, negative: boolean): string {
  const { mode, group } = object(custom["stacking"]);
  if (mode !== "normal" && mode !== "percent") return "";
  const below = negative !== (l.values.reduce<number>((sum, v) => sum + (v ?? 0), 0) < 0);
  return `${mode} ${String(group)} ${below ? "-" : "+"}`;
}

function heat(spec: PanelSpec, d: Data, ctx: Context, scope: Scope): Picture {
  const series = d.lines.map((l) => l.series);
  const axis = object(spec.options["yAxis"]);
  const unit = text(axis["unit"]) || text(spec.defaults["unit"]);
  const bound = formatter(unit, undefined, ctx.zone());
  const count = formatter(text(object(spec.options["cellValues"])["unit"]), undefined, ctx.zone());
  const cells = isHistogram(series)
    ? cellsOf(series, d, bound)
    : { times: d.lines[0]!.times, rows: d.lines.filter((l) => l.times.length === d.lines[0]!.times.length).map((l) => ({ name: fieldFor(spec, l, ctx, scope).name, counts: [...l.values] })) };
  if (!cells.rows.length || !cells.times.length) return tabular(spec, d, ctx, scope);
  const g = heatmap(cells, { zone: ctx.zone(), height: "fill", format: count, zoom: (s, e) => ctx.zoom(s, e) });
  return { dom: g.dom, graph: g };
}

function tabular(spec: PanelSpec, d: Data, ctx: Context, scope: Scope): Picture {
  const grid = transform(gridsOf(d), spec.transformations, d, scope);
  const fields = grid.columns.map((_, i) => columnField(spec, grid, i, ctx, scope));
  painted(fields);
  const kept = fields.flatMap((f, i) => (f.hidden ? [] : [i]));
  const wanted = list(spec.options["sortBy"])[0];
  const by = typeof wanted?.["column"] === "number" ? (kept[wanted["column"]] ?? -1) : wanted ? fields.findIndex((f, i) => f.name === text(wanted["displayName"]) || grid.columns[i]!.title === text(wanted["displayName"])) : -1;
  const rows = by < 0 ? grid.rows : [...grid.rows].sort((a, b) => (wanted!["desc"] === true ? -1 : 1) * order(a[by] ?? "", b[by] ?? ""));
  const numbers = grid.rows.flat().filter((v): v is number => typeof v === "number" && Number.isFinite(v)).sort((a, b) => a - b);
  fields.forEach((field, i) => limit([{ field, values: grid.rows.map((r) => r[i]) }]));
  const cell = (v: Cell, i: number): Shown => {
    const s = shown(fields[i]!, v);
    const show = v === null && !fields[i]!.mappings.length ? "" : s.text;
    const { custom } = fields[i]!;
    const mode = text(object(custom["cellOptions"])["type"]) || text(custom["displayMode"]);
    const behind = mode.startsWith("color-background") ? back(s.colour) : undefined;
    if (typeof v === "number" && /(^basic|gauge)$/.test(mode)) {
      const whole = { percent: 100, percentunit: 1 }[fields[i]!.unit];
      const { min = whole ? 0 : numbers[0]!, max = whole ?? numbers.at(-1)! } = fields[i]!;
      const share = max > min ? Math.min(100, Math.max(0, ((v - min) / (max - min)) * 100)) : 100;
      return { by: v, show, css: { backgroundImage: `linear-gradient(90deg, ${translucent(s.colour, 0.35).colour} ${share}%, transparent 0)` } };
    }
    return { by: v ?? "", show, css: behind ? { backgroundColor: behind, color: "#fff" } : mode === "color-text" ? { color: ink(s.colour) ?? "" } : {} };
  };
  const dom = table(`Table of ${spec.title || "the panel"}`, kept.map((i) => fields[i]!.name), rows.map((r) => kept.map((i) => cell(r[i]!, i))));
  if (spec.options["showHeader"] === false) dom.querySelector("thead")!.hidden = true;
  return { dom };
}
