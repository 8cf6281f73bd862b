import type { Answer, Labels, Series } from "../answer";
import { queryParams, spanParams, type Api, type Span } from "../api";
import { base, kindOf, type Kind } from "./choose";
import { hints, nearest, type Facts, type Hint } from "./hints";
import type { Metadata, Usage } from "./metrics";
import { edit, isLabel, select, selectors, type Selector } from "./syntax";

// What the hints need to know of the data, asked for one query at a time.

// values returns the values of a label that series have in a span. Without a selector, all series
// count.
export async function values(api: Api, of: string, span: Span, selector: string, limit?: number, signal?: AbortSignal): Promise<string[]> {
  return (await api.get<string[]>(`label/${encodeURIComponent(of)}/values`, { ...spanParams(span), "match[]": selector, limit: limit?.toString() }, signal)).data;
}

// usageOf returns the series of each metric in a span, and how many queries asked for it.
export async function usageOf(api: Api, span: Span, signal: AbortSignal): Promise<Usage[]> {
  return (await api.whole<{ records: Usage[] }>("status/metric_names_stats", { ...spanParams(span), limit: "1000000" }, signal)).records;
}

// labels returns the names of the labels that series have in a span.
export async function labels(api: Api, span: Span, selector: string, signal?: AbortSignal): Promise<string[]> {
  return (await api.get<string[]>("labels", { ...spanParams(span), "match[]": selector }, signal)).data;
}

// interval returns the usual distance of the samples of one of a selector's series in the last hour
// of a span, in ms. It is undefined if there are not two samples.
export async function interval(api: Api, selector: string, { end, asOf }: Span, signal?: AbortSignal): Promise<number | undefined> {
  const [one] = (await api.get<Labels[]>("series", { ...spanParams({ start: end - 3_600_000, end, asOf }), "match[]": selector, limit: "1" }, signal)).data;
  if (!one) return undefined;
  const { __name__: name = "", ...rest } = one;
  const exact = select(name, Object.entries(rest).map(([label, value]) => ({ label, op: "=", value })));
  const { data } = await api.get<Answer>("query", queryParams(`${exact}[1h]`, end, asOf), signal);
  const [s] = data.result as Series[];
  const times = (s?.values ?? s?.histograms ?? []).map(([t]) => t * 1000);
  const gaps = times.slice(1).map((t, i) => t - times[i]!).sort((a, b) => a - b);
  const usual = gaps[gaps.length >> 1];
  return usual && Math.max(1_000, Math.round(usual / 1_000) * 1_000);
}

// kind returns what metadata and the name of a metric tell.
async function kind(api: Api, name: string, signal: AbortSignal): Promise<Kind> {
  const both = await Promise.all([...new Set([name, base(name)])].map((metric) => api.get<Metadata>("metadata", { metric }, signal)));
  const known = Object.assign({}, ...both.map((r) => r.data)) as Metadata;
  return kindOf(name, (n) => known[n]?.[0]?.type);
}

// most is how many selectors of a query are looked at.
const most = 5;

// advise returns the hints for a query whose answer is there. With empty, the answer has no series.
export async function advise(api: Api, text: string, span: Span, step: number, empty: boolean, signal: AbortSignal): Promise<Hint[]> {
  const all = selectors(text).slice(0, most);
  const kinds = new Map<string, Kind>();
  const intervals = new Map<string, number | undefined>();
  const facts: Facts = { kind: (m) => kinds.get(m) ?? "", interval: (s) => intervals.get(s), step };
  await Promise.all(
    all.map(async (s) => {
      const of = select(s.name, s.matchers);
      const k = s.name ? await kind(api, s.name, signal) : "";
      kinds.set(s.name, k);
      if (s.node.parent?.name === "MatrixSelector" || k === "counter" || k === "bucket" || k === "histogram") intervals.set(of, await interval(api, of, span, signal));
    }),
  );
  const missing = empty ? (await Promise.all(all.map((s) => absent(api, text, s, span, signal)))).flat() : [];
  return [...missing, ...hints(text, facts)];
}

// absent names what a selector asks for and no series has, and what is most like it.
async function absent(api: Api, text: string, s: Selector, span: Span, signal: AbortSignal): Promise<Hint[]> {
  const names = s.name ? await values(api, "__name__", span, "", undefined, signal) : [];
  if (s.namePlace && !names.includes(s.name)) {
    return [{ text: `No metric has the name ${s.name} in this time range.`, mends: nearest(s.name, names).map((name) => ({ name, expr: renamed(text, s, name) })) }];
  }
  const out: Hint[] = [];
  for (const m of s.matchers) {
    if (m.op !== "=" || !m.value || !isLabel(m.label)) continue;
    const there = await values(api, m.label, span, select(s.name), 10_000, signal);
    if (there.includes(m.value)) continue;
    const near = nearest(m.value, there);
    const what = there.length ? `${m.label}=${JSON.stringify(m.value)}` : `the label ${m.label}`;
    out.push({ text: `No series${s.name && ` of ${s.name}`} has ${what} in this time range.`, mends: (near.length ? near : there.slice(0, 3)).map((v) => ({ name: `${m.label}=${JSON.stringify(v)}`, expr: edit(text, [m.place, JSON.stringify(v)]) })) });
  }
  return out;
}

// renamed is a text with another name of a metric.
function renamed(text: string, s: Selector, name: string): string {
  if (select(name) === name && s.node.firstChild?.name === "Identifier") return edit(text, [s.namePlace!, name]);
  return edit(text, [{ from: s.node.from, to: s.node.to }, select(name, s.matchers)]);
}
