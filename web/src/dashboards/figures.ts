import { cut, h, svg } from "../dom";
import { colour } from "../graph";
import { back, fill, ink } from "./colours";
import { shown, type Field } from "./fields";
import { number, object, text, type Json } from "./json";
import { reduce, type Values } from "./reduce";

// Panels of single values: stat, gauge and bar gauge.

export interface Figure {
  field: Field;
  name: string;
  values: Values;
  label: string | undefined; // text that is shown instead of the value
}

const calculation = (options: Json): string => {
  const calcs = object(options["reduceOptions"])["calcs"];
  return Array.isArray(calcs) ? text(calcs[0], "lastNotNull") : "lastNotNull";
};

// most bounds the figures of a panel.
const most = 200;

function each(figures: Figure[], make: (f: Figure) => HTMLElement): HTMLElement[] {
  const out = figures.slice(0, most).map(make);
  if (figures.length > most) out.push(h("p", { class: "warn" }, `The first ${most} of ${figures.length} values`));
  return out;
}

// stats shows values as large numbers, with their course behind them.
export function stats(figures: Figure[], options: Json): HTMLElement {
  const mode = text(options["colorMode"], "value");
  const names = text(options["textMode"], "auto");
  const withName = names === "value_and_name" || names === "name" || (names === "auto" && figures.length > 1);
  return h(
    "div",
    { class: "stats" },
    ...each(figures, (f) => {
      const v = reduce(f.values, calculation(options));
      const s = f.label === undefined ? shown(f.field, v) : shown(f.field, f.label);
      const value = h("div", { class: "stat-value" }, ...cut(s.text));
      const spark = text(options["graphMode"], "none") === "area" && f.values.length > 1 ? sparkline(f.values, s.colour) : null;
      const dom = h("div", { class: "stat" }, spark, withName && h("div", { class: "stat-name" }, ...cut(f.name)), names !== "name" && value);
      if (mode.startsWith("background") && s.colour) {
        const behind = back(s.colour);
        if (behind) [dom.style.backgroundColor, dom.style.color] = [behind, "#fff"];
      } else if (mode === "value" && s.colour) value.style.color = ink(s.colour) ?? "";
      return dom;
    }),
  );
}

// sparkline draws the course of values, without axes.
function sparkline(values: Values, colour: string): SVGElement {
  const points = values.flatMap((v, i) => (v === null ? [] : [[(i / (values.length - 1)) * 100, v] as const]));
  const low = Math.min(...points.map(([, v]) => v));
  const high = Math.max(...points.map(([, v]) => v));
  const y = (v: number) => (high > low ? 30 - ((v - low) / (high - low)) * 26 : 20);
  const line = points.map(([x, v]) => `${x.toFixed(1)},${y(v).toFixed(1)}`);
  const stroke = fill(colour) ?? "currentColor";
  const shapes = line.length > 1 ? [svg("polygon", { points: [`${points[0]![0]},32`, ...line, `${points.at(-1)![0]},32`].join(" "), fill: stroke, opacity: 0.15 }), svg("polyline", { points: line.join(" "), fill: "none", stroke, "stroke-width": 1, opacity: 0.6, "vector-effect": "non-scaling-stroke" })] : [];
  return svg("svg", { viewBox: "0 0 100 32", preserveAspectRatio: "none", class: "spark", "aria-hidden": "true" }, ...shapes);
}

// meters shows values between the limits of their fields. Screen readers read each as a meter. make
// draws one: its text, and its colour and share between 0 and 1.
function meters(figures: Figure[], options: Json, kind: string, make: (f: Figure, text: string, colour: string | undefined, share: number) => HTMLElement): HTMLElement {
  const calc = calculation(options);
  const largest = figures.reduce((m, f) => Math.max(m, reduce(f.values, calc) ?? 0, ...f.field.steps.map((s) => (Number.isFinite(s.from) ? s.from : 0))), 0);
  return h(
    "div",
    { class: kind },
    ...each(figures, (f) => {
      const v = reduce(f.values, calc);
      const s = shown(f.field, v);
      const min = f.field.min ?? 0;
      const max = f.field.max ?? (f.field.unit === "percentunit" ? 1 : f.field.unit === "percent" ? 100 : Math.max(largest, min + 1e-9));
      const dom = make(f, s.text, fill(s.colour), v === null || Number.isNaN(v) ? 0 : Math.min(1, Math.max(0, (v - min) / (max - min))));
      for (const [key, x] of Object.entries({ role: "meter", "aria-label": f.name || "value", "aria-valuetext": s.text, "aria-valuemin": min, "aria-valuemax": max, "aria-valuenow": v ?? min })) dom.setAttribute(key, String(x));
      return dom;
    }),
  );
}

// gauges shows values as arcs.
export const gauges = (figures: Figure[], options: Json) =>
  meters(figures, options, "stats", (f, text, colour, share) => {
    const arc = (part: number) => {
      const a = Math.PI * (1 - part);
      return `M 10 50 A 40 40 0 0 1 ${(50 + 40 * Math.cos(a)).toFixed(2)} ${(50 - 40 * Math.sin(a)).toFixed(2)}`;
    };
    const front = svg("path", { d: arc(Math.max(0.001, share)), class: "arc-front" });
    front.style.stroke = colour ?? "";
    const picture = svg("svg", { viewBox: "0 0 100 56", class: "arc", "aria-hidden": "true" }, svg("path", { d: arc(1), class: "arc-back" }), front);
    return h("div", { class: "gauge" }, picture, h("div", { class: "gauge-value" }, ...cut(text)), figures.length > 1 && h("div", { class: "stat-name" }, ...cut(f.name)));
  });

// bars shows values as bars, one per line.
export const bars = (figures: Figure[], options: Json) =>
  meters(figures, options, "bars", (f, text, colour, share) => {
    const front = h("div", { class: "bar-front" });
    front.style.width = `${(share * 100).toFixed(2)}%`;
    front.style.backgroundColor = colour ?? "";
    return h("div", { class: "bar" }, h("div", { class: "stat-name" }, ...cut(f.name)), h("div", { class: "bar-back" }, front), h("div", { class: "bar-value" }, ...cut(text)));
  });

// key is a line of a legend.
export function key(name: string, tint: string, ...more: HTMLElement[]): HTMLElement {
  const swatch = h("span", { class: "swatch" });
  swatch.style.backgroundColor = tint;
  return h("li", { class: "key" }, swatch, ...cut(name), ...more);
}

// pie shows positive values as parts of a circle, with a list of what they are.
export function pie(figures: Figure[], options: Json): HTMLElement {
  const calc = calculation(options);
  const parts = figures.map((f, i) => ({ f, v: Math.max(0, reduce(f.values, calc) || 0), tint: f.field.colour ? (fill(f.field.colour) ?? colour(i)) : colour(i) })).filter(({ v }) => v > 0);
  const sign = { asc: 1, none: 0 }[text(options["sort"])] ?? -1;
  parts.sort((a, b) => sign * (a.v - b.v));
  const left = parts.splice(most).length;
  const all = parts.reduce((sum, { v }) => sum + v, 0);
  const inner = text(options["pieType"]) === "donut" ? 25 : 0;
  let from = 0;
  const shapes = parts.map(({ v, tint }) => {
    // Each part is an arc so wide that it fills the ring; its length is its share.
    const share = (v / all) * 100;
    const arc = svg("circle", { cx: 50, cy: 50, r: (45 + inner) / 2, fill: "none", stroke: tint, "stroke-width": 45 - inner, pathLength: 100, "stroke-dasharray": `${share} ${100 - share}`, "stroke-dashoffset": -from, transform: "rotate(-90 50 50)" });
    from += share;
    return arc;
  });
  const rows = parts.map(({ f, v, tint }) => key(f.name, tint, h("span", { class: "muted" }, ` ${shown(f.field, v).text} · ${((v / all) * 100).toFixed(0)} %`)));
  return h("div", { class: "pie" }, svg("svg", { viewBox: "0 0 100 100", "aria-hidden": "true" }, ...shapes), h("ul", { class: "keys" }, ...rows, left > 0 && h("li", { class: "warn" }, `${left} more are left out`)));
}

// labelFields returns the name of the label that a stat shows instead of a value, by the field that
// its options choose.
export function labelField(options: Json, labels: readonly string[]): string | undefined {
  const wanted = text(object(options["reduceOptions"])["fields"]);
  const m = /^\/(.*)\/$/.exec(wanted);
  if (!wanted) return undefined;
  try {
    const re = m ? new RegExp(m[1]!) : undefined;
    return labels.find((l) => (re ? re.test(l) : l === wanted));
  } catch {
    return undefined;
  }
}

export const allValues = (options: Json) => object(options["reduceOptions"])["values"] === true && number(object(options["reduceOptions"])["limit"]) !== 1;

// hasLegend reports whether a panel shows what its colours mean.
export const hasLegend = (options: Json) => object(options["legend"])["showLegend"] !== false && object(options["legend"])["displayMode"] !== "hidden";
