import { h } from "../dom";
import { cellsOf, heatmap, isHistogram } from "../heatmap";
import { drawn, lines, type Graph } from "../graph";
import type { Context } from "../context";
import { fill, ink } from "./colours";
import { fieldOf, shown, thresholdColour, type Field } from "./fields";
import { allValues, bars, gauges, labelField, stats, type Figure } from "./figures";
import { inText, type Scope } from "./interpolate";
import { list, number, object, text, type PanelSpec } from "./model";
import type { Data, Line } from "./query";
import { isCalculation, reduce, title } from "./reduce";
import { gridsOf, transform, type Cell } from "./transform";
import { formatter, isBinary } from "./units";

// Picture is what a panel shows. graph is there if it must be destroyed.
export interface Picture {
  dom: HTMLElement;
  graph?: Graph;
}

type Draw = (spec: PanelSpec, d: Data, ctx: Context, scope: Scope) => Picture;

const shownRows = 1_000;

const drawers: Record<string, Draw> = {
  timeseries,
  stat: (spec, d, ctx, scope) => ({ dom: stats(figures(spec, d, ctx, scope), spec.options) }),
  gauge: (spec, d, ctx, scope) => ({ dom: gauges(figures(spec, d, ctx, scope), spec.options) }),
  bargauge: (spec, d, ctx, scope) => ({ dom: bars(figures(spec, d, ctx, scope), spec.options) }),
  table,
  heatmap: heat,
};

// asks reports whether a panel of a type has queries that the page can draw.
export const asks = (type: string) => Object.hasOwn(drawers, type);

// draw shows the data of a panel.
export function draw(spec: PanelSpec, d: Data, ctx: Context, scope: Scope): Picture {
  if (!d.lines.length && !d.tables.some((t) => t.series.length)) return { dom: h("p", { class: "muted empty" }, text(spec.defaults["noValue"], "No data")) };
  return drawers[spec.type]!(spec, d, ctx, scope);
}

// words is a text panel. Its content stays text, whatever it would mean as Markdown or HTML.
export function words(spec: PanelSpec, scope: Scope): HTMLElement {
  return h("div", { class: "words" }, inText(text(spec.options["content"]), scope));
}

// transformNotes names transformations that a panel without a table leaves out.
export function transformNotes(spec: PanelSpec): string[] {
  if (spec.type === "table") return [];
  return spec.transformations.map((t) => `The transformation ${text(t["id"])} is left out.`);
}

const fieldFor = (spec: PanelSpec, l: Line, ctx: Context, scope: Scope) => fieldOf({ name: l.name, refId: l.refId, labels: l.labels }, spec.defaults, spec.overrides, ctx.zone(), scope);

function figures(spec: PanelSpec, d: Data, ctx: Context, scope: Scope): Figure[] {
  const out: Figure[] = [];
  for (const l of d.lines) {
    const field = fieldFor(spec, l, ctx, scope);
    if (field.hidden) continue;
    const label = labelField(spec.options, Object.keys(l.labels));
    out.push({ field, name: field.name, values: allValues(spec.options) ? l.values.slice(-1) : l.values, label: label === undefined ? undefined : l.labels[label] });
  }
  return out;
}

function timeseries(spec: PanelSpec, d: Data, ctx: Context, scope: Scope): Picture {
  if (d.lines.some((l) => l.series.histograms?.length)) return heat(spec, d, ctx, scope);
  const custom = object(spec.defaults["custom"]);
  const legend = object(spec.options["legend"]);
  const calcs = (Array.isArray(legend["calcs"]) ? legend["calcs"] : []).map((c) => text(c)).filter(isCalculation);
  const all = d.lines.map((l) => ({ l, f: fieldFor(spec, l, ctx, scope) })).filter(({ l, f }) => !f.hidden && l.values.length === d.times.length);
  if (!all.length) return table(spec, d, ctx, scope);
  const largest = ({ l }: (typeof all)[number]) => reduce(l.values, "lastNotNull") ?? -Infinity;
  const kept = all.length > drawn ? [...all].sort((a, b) => largest(b) - largest(a)).slice(0, drawn) : all;
  const log = text(object(custom["scaleDistribution"])["type"]) === "log";
  const mode = text(object(custom["stacking"])["mode"], "none");
  let values = kept.map(({ l, f }) => l.values.map((v) => (v === null || (log && v <= 0) ? null : f.negative ? -v : v)));
  if (mode === "percent") {
    const sums = d.times.map((_, i) => values.reduce((sum, row) => sum + Math.abs(row[i] ?? 0), 0));
    values = values.map((row) => row.map((v, i) => (v === null || !sums[i] ? null : (v / sums[i]) * 100)));
  }
  const main = kept[0]!.f;
  const percent = formatter("percent", undefined, ctx.zone());
  const style = text(object(custom["thresholdsStyle"])["mode"], "off");
  const g = lines(
    { times: d.times, values, names: kept.map(({ f }) => f.name), titles: kept.map(({ f }) => f.name), total: all.length },
    {
      format: mode === "percent" ? percent : main.format,
      binary: isBinary(main.unit),
      stacked: mode === "normal" || mode === "percent",
      log,
      zone: ctx.zone(),
      height: "fill",
      bounds: [d.start / 1000, d.end / 1000],
      zoom: (s, e) => ctx.zoom(s, e),
      style: {
        formats: kept.map(({ f }) => (mode === "percent" ? percent : f.format)),
        colours: kept.map(({ f }) => (f.colour ? fill(f.colour) : undefined)),
        notes: kept.map(({ l, f }) => calcs.map((c) => `${title(c)} ${written(f, reduce(l.values, c))}`).join(" · ")),
        draw: text(custom["drawStyle"]) === "bars" ? "bars" : text(custom["drawStyle"]) === "points" ? "points" : "line",
        opacity: Math.min(1, (number(custom["fillOpacity"]) ?? 0) / 100),
        connected: custom["spanNulls"] === true,
        min: mode === "percent" ? 0 : main.min,
        max: mode === "percent" ? 100 : main.max,
        levels: style === "off" || main.percentage ? [] : main.steps.filter((s) => Number.isFinite(s.from)).map((s) => ({ at: s.from, colour: fill(s.colour) ?? s.colour })),
        legend: legend["showLegend"] !== false && text(legend["displayMode"]) !== "hidden",
      },
    },
  );
  return { dom: g.dom, graph: g };
}

const written = (f: Field, v: number | null) => (v === null ? "–" : f.format(v));

function heat(spec: PanelSpec, d: Data, ctx: Context, scope: Scope): Picture {
  const series = d.lines.map((l) => l.series);
  const axis = object(spec.options["yAxis"]);
  const unit = text(axis["unit"]) || text(spec.defaults["unit"]);
  const bound = formatter(unit, undefined, ctx.zone());
  const count = formatter(text(object(spec.options["cellValues"])["unit"]), undefined, ctx.zone());
  const cells = isHistogram(series)
    ? cellsOf(series, d, bound)
    : { times: d.times, rows: d.lines.filter((l) => l.values.length === d.times.length).map((l) => ({ name: fieldFor(spec, l, ctx, scope).name, counts: [...l.values] })) };
  if (!cells.rows.length || !cells.times.length) return table(spec, d, ctx, scope);
  const g = heatmap(cells, { zone: ctx.zone(), height: "fill", format: count, zoom: (s, e) => ctx.zoom(s, e) });
  return { dom: g.dom, graph: g };
}

function table(spec: PanelSpec, d: Data, ctx: Context, scope: Scope): Picture {
  const grid = transform(gridsOf(d, ctx.zone()), spec.transformations);
  const fields = grid.columns.map((c) => fieldOf({ name: c.title, refId: c.refId, labels: {} }, spec.defaults, spec.overrides, ctx.zone(), scope));
  const kept = fields.flatMap((f, i) => (f.hidden ? [] : [i]));
  const wanted = list(spec.options["sortBy"])[0];
  const by = wanted ? fields.findIndex((f, i) => f.name === text(wanted["displayName"]) || grid.columns[i]!.title === text(wanted["displayName"])) : -1;
  const order = (a: Cell, b: Cell) => (typeof a === "number" && typeof b === "number" ? a - b : String(a ?? "").localeCompare(String(b ?? ""), undefined, { numeric: true }));
  const rows = by < 0 ? grid.rows : [...grid.rows].sort((a, b) => (wanted!["desc"] === true ? -1 : 1) * order(a[by]!, b[by]!));
  const cell = (v: Cell, i: number) => {
    if (typeof v !== "number") return h("td", {}, v ?? "");
    const s = shown(fields[i]!, v);
    const td = h("td", { class: "number" }, s.text);
    if (thresholdColour(fields[i]!, v) && fields[i]!.steps.length > 1) td.style.color = ink(s.colour) ?? "";
    return td;
  };
  return {
    dom: h(
      "div",
      { class: "scroll", tabIndex: 0, role: "region", "aria-label": `Table of ${spec.title || "the panel"}` },
      h(
        "table",
        {},
        rows.length > shownRows ? h("caption", {}, `The first ${shownRows} of ${rows.length} rows`) : null,
        h("thead", {}, h("tr", {}, ...kept.map((i) => h("th", { scope: "col" }, fields[i]!.name)))),
        h("tbody", {}, ...rows.slice(0, shownRows).map((r) => h("tr", {}, ...kept.map((i) => cell(r[i]!, i))))),
      ),
    ),
  };
}
