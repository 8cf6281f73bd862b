import { ApiError, type Api } from "./api";
import { h } from "./dom";
import { formatValue } from "./format";
import { written, type Cost, type Selector } from "./explain";

// Asks before a heavy query runs: the server estimates a query (docs/querying.md, "Explain") before
// Explore sends it.

// Estimate is what a query would read.
export interface Estimate {
  series: number;
  samples: number;
  bytes: number;
  dollars: number;
}

// A query that reads more than one of these is heavy.
const light: Omit<Estimate, "series"> = { samples: 50_000_000, bytes: 2 ** 30, dollars: 0.01 };

export const heavy = (e: Estimate) => e.samples > light.samples || e.bytes > light.bytes || e.dollars > light.dollars;

// estimate returns what a query would read. It is undefined if the server has no estimate: then the
// query itself reports why.
export async function estimate(api: Api, params: Record<string, string | undefined>, signal: AbortSignal): Promise<Estimate | undefined> {
  try {
    const { data } = await api.get<{ selectors?: Selector[]; cost: Cost }>("explain", { ...params, statements: "false" }, signal);
    const sum = (of: (s: Selector) => number) => (data.selectors ?? []).reduce((n, s) => n + of(s), 0);
    return { series: sum((s) => s.series), samples: sum((s) => s.samples), bytes: data.cost.bytes, dollars: data.cost.dollars };
  } catch (e) {
    if (signal.aborted || (e instanceof ApiError && (e.status === 0 || e.status === 401))) throw e;
    return undefined;
  }
}

// question shows an estimate and the choice.
export function question(e: Estimate, run: () => void, explain: () => void): HTMLElement {
  const n = (x: number) => x.toLocaleString("en");
  return h(
    "div",
    { class: "question", role: "group", "aria-label": "Estimate of a heavy query" },
    h("p", { class: "warn" }, `This query is heavy: it reads about ${n(e.samples)} samples of ${n(e.series)} series, ${formatValue(e.bytes, "bytes")} (${written(e.dollars)}).`),
    h("div", { class: "row" }, h("button", { type: "button", class: "primary", onclick: run }, "Run anyway"), h("button", { type: "button", onclick: explain }, "Explain it")),
  );
}
