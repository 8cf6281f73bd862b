import { formatDuration } from "../time";
import { label, select } from "./syntax";

// What a metric is, and the graph that shows it best.

// Kind is the type of a metric's samples: those of a counter, the buckets of a classic histogram
// (bucket), native histograms (histogram, gaugehistogram), and the quantiles of a summary.
export type Kind = "counter" | "gauge" | "bucket" | "histogram" | "gaugehistogram" | "summary" | "";

// base is the name that metadata may have for a metric: that of its family.
export const base = (name: string) => name.replace(/_(bucket|count|sum|total)$/, "");

// kindOf tells the kind of a metric by the types of the metadata, and by its name if there is none.
export function kindOf(name: string, type: (name: string) => string | undefined): Kind {
  const own = type(name);
  if (own === "counter" || own === "gauge" || own === "histogram" || own === "gaugehistogram" || own === "summary") return own;
  const family = name === base(name) ? undefined : type(base(name));
  if (family === "gaugehistogram") return name.endsWith("_bucket") ? "" : "gauge";
  if (name.endsWith("_bucket")) return "bucket";
  if (name.endsWith("_total") || family === "histogram" || family === "summary") return "counter";
  return "";
}

// few is how many series a graph shows one by one.
const few = 20;

// rangeFor is a range for rate: four scrapes, and no less than the step of the graph, so that no
// sample is left out. interval is the distance of samples in ms, if it is known.
export function rangeFor(interval: number | undefined, step: number): string {
  const wanted = Math.max(interval === undefined ? 300_000 : interval * 4, step);
  const round = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440].map((m) => m * 60_000);
  return formatDuration(round.find((r) => r >= wanted) ?? wanted);
}

// needs reports whether the graph of a metric needs the name of a label that divides its series.
export const needs = (kind: Kind, series: number) => (kind === "gauge" || kind === "") && series > few;

// divider chooses the label that divides many series into a few groups.
export function divider(values: readonly { name: string; value: number }[]): string | undefined {
  const fit = values.filter((v) => v.name !== "__name__" && v.value > 1 && v.value <= few);
  return fit.sort((a, b) => b.value - a.value || a.name.localeCompare(b.name))[0]?.name;
}

// graphOf is the query whose graph shows a metric.
export function graphOf(name: string, kind: Kind, series: number, range: string, by?: string): string {
  const of = select(name);
  switch (kind) {
    case "counter":
      return `sum(rate(${of}[${range}]))`;
    case "bucket":
      return `histogram_quantile(0.95, sum by (le) (rate(${of}[${range}])))`;
    case "histogram":
      return `histogram_quantile(0.95, sum(rate(${of}[${range}])))`;
    case "gaugehistogram":
      return `histogram_quantile(0.95, sum(${of}))`;
    case "summary":
      return `max by (quantile) (${of})`;
    default:
      return !needs(kind, series) ? of : by ? `avg by (${label(by)}) (${of})` : `avg(${of})`;
  }
}
