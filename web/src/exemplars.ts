import type { Labels } from "./answer";
import { spanParams, type Api, type Span } from "./api";
import { h } from "./dom";
import { legend } from "./format";
import { num, table } from "./table";
import { formatTime, type Zone } from "./time";

// Exemplars: samples with the identity of a trace, drawn as dots and listed below the graph.

// Dot is an exemplar on a graph.
export interface Dot {
  at: number; // seconds
  value: number;
  labels: Labels; // such as trace_id
  series: Labels;
}

interface Answer {
  seriesLabels: Labels;
  exemplars: { labels: Labels; value: string; timestamp: number }[];
}

// most is how many exemplars a graph shows: the newest.
export const most = 1_000;

// exemplars asks for the exemplars of all selectors of an expression. total counts those that are
// left out as well.
export async function exemplars(api: Api, expr: string, span: Span, signal: AbortSignal): Promise<{ dots: Dot[]; total: number }> {
  const { data } = await api.get<Answer[]>("query_exemplars", { query: expr, ...spanParams(span) }, signal);
  const dots = data.flatMap((a) => a.exemplars.map((e): Dot => ({ at: e.timestamp, value: Number(e.value), labels: e.labels, series: a.seriesLabels }))).filter((d) => Number.isFinite(d.value));
  dots.sort((a, b) => b.at - a.at);
  return { dots: dots.slice(0, most), total: dots.length };
}

// listed is what the dots are, for those who do not see them.
export function listed(dots: Dot[], total: number, zone: Zone): HTMLElement {
  const title = total > dots.length ? `Exemplars (the newest ${dots.length} of ${total.toLocaleString("en")})` : `Exemplars (${total})`;
  const rows = dots.map((d) => [num(d.at, formatTime(d.at * 1000, zone)), legend(d.labels), legend(d.series), num(d.value, String(d.value))]);
  return h("details", { class: "exemplars" }, h("summary", {}, title), table("Exemplars", ["Time", "Labels", "Series", "Value"], rows));
}
