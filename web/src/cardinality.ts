import { ApiError, spanParams, type Params } from "./api";
import { alarm, cut, h, replace } from "./dom";
import { count, dollars, formatValue } from "./format";
import type { Context } from "./context";
import { Latest } from "./latest";
import type { State } from "./state";
import { num, table, type Cell } from "./table";
import { bounds, formatDuration, formatTime } from "./time";

// Which metrics and labels make most series in the time range, and what they cost: the extended
// answer of /api/v1/status/tsdb (docs/cardinality.md).

interface Row {
  name: string;
  value: number;
  samples?: number;
  bytes?: number;
  dollarsPerMonth?: number;
}

interface Explored {
  totalSeries: number;
  totalLabelValuePairs: number;
  seriesCountByMetricName?: Row[];
  seriesCountByLabelName?: Row[];
  seriesCountByFocusLabelValue?: Row[];
  seriesCountByLabelValuePair?: Row[];
  labelValueCountByLabelName?: Row[];
}

// Unasked are the metrics of /api/v1/status/metric_names_stats?le=0.
interface Unasked {
  statsCollectedSince: number; // seconds
  records: { metricName: string; series: number; samples: number; bytes: number; dollarsPerMonth: number }[];
}

type Change = Partial<Pick<State, "filter" | "only" | "compare">>;

const isName = (s: string) => /^[a-zA-Z_:][\w:]*$/.test(s);
// topN is the length of the lists.
const topN = "50";

// CardinalityView keeps the selector in the state's filter, and the focus label in its only.
export class CardinalityView {
  readonly dom: HTMLElement;
  private readonly selector: HTMLInputElement;
  private readonly label: HTMLInputElement;
  private readonly status = h("div", { class: "status", role: "status" });
  private readonly body = h("div", { class: "lists" });
  private readonly latest = new Latest(this.body);

  constructor(
    private readonly ctx: Context,
    private readonly state: () => State,
    private readonly change: (c: Change) => void,
    private readonly explore: (expr: string) => void,
  ) {
    this.selector = h("input", { type: "search", class: "filter", placeholder: 'Selector, such as {job="api"}', "aria-label": "Selector of the series that count; empty means all" });
    this.label = h("input", { class: "moment", placeholder: "Focus label", "aria-label": "Focus label: lists the series of each of its values" });
    this.selector.addEventListener("change", () => this.change({ filter: this.selector.value.trim() }));
    this.label.addEventListener("change", () => this.change({ only: this.label.value.trim() }));
    const compare = h("input", { type: "checkbox", checked: state().compare, onchange: () => this.change({ compare: compare.checked }) });
    this.dom = h("div", {}, h("div", { class: "row tools" }, this.selector, this.label, h("label", { class: "toggle" }, compare, " Compare with the range before")), this.status, this.body);
  }

  focus(): void {
    this.selector.focus();
  }

  destroy(): void {
    this.latest.end();
  }

  refresh(automatic = false): void {
    if (automatic && this.latest.busy) return;
    this.selector.value = this.state().filter;
    this.label.value = this.state().only;
    void this.latest.do((signal) => this.show(signal), (e) => replace(this.status, alarm(e)));
  }

  private async show(signal: AbortSignal): Promise<void> {
    const { start, end } = bounds(this.ctx.range(), Date.now());
    const length = end - start;
    const [now, before, unasked] = await Promise.all([this.ask(start, end, signal), this.state().compare ? this.ask(start - length, start, signal) : undefined, this.unasked(start, end, signal)]);
    const { filter, only } = this.state();
    const change = before ? `, ${signed(now.totalSeries - before.totalSeries)} since the ${formatDuration(length)} before` : "";
    replace(this.status, h("p", {}, `${count(now.totalSeries)} series${change}, ${count(now.totalLabelValuePairs)} label pairs`));
    const narrow = (matcher: string) => this.change({ filter: narrowed(filter, matcher) });
    const matcher = (name: string, value: string) => `${isName(name) ? name : JSON.stringify(name)}=${JSON.stringify(value)}`;
    const pair = (text: string) => [text.slice(0, text.indexOf("=")), text.slice(text.indexOf("=") + 1)] as const;
    replace(
      this.body,
      list("Series by metric", "Metric", "Series", now.seriesCountByMetricName, before?.seriesCountByMetricName, (n) => narrow(matcher("__name__", n)), (n) => this.explore(isName(n) ? `count(${n})` : `count({${JSON.stringify(n)}})`)),
      only ? list(`Series by ${only}`, only, "Series", now.seriesCountByFocusLabelValue ?? [], before?.seriesCountByFocusLabelValue, (v) => narrow(matcher(only, v))) : null,
      list("Series by label", "Label", "Series", now.seriesCountByLabelName, before?.seriesCountByLabelName, (n) => this.change({ only: n })),
      list("Series by label pair", "Label pair", "Series", now.seriesCountByLabelValuePair, before?.seriesCountByLabelValuePair, (text) => narrow(matcher(...pair(text)))),
      list("Values by label", "Label", "Values", now.labelValueCountByLabelName, before?.labelValueCountByLabelName, (n) => this.change({ only: n })),
      unasked && this.unaskedTable(unasked, (n) => narrow(matcher("__name__", n))),
    );
  }

  private unaskedTable(u: Unasked, narrow: (name: string) => void): HTMLElement | null {
    const rows = u.records.map((r) => ({ name: r.metricName, value: r.series, samples: r.samples, bytes: r.bytes, dollarsPerMonth: r.dollarsPerMonth }));
    const made = list("Metrics that nobody asked for", "Metric", "Series", rows, undefined, narrow);
    const price = u.records.reduce((sum, r) => sum + r.dollarsPerMonth, 0);
    const since = `No query has named them since ${formatTime(u.statsCollectedSince * 1000, this.ctx.zone())}: ${dollars(price)} a month.`;
    made?.insertBefore(h("p", { class: "muted" }, since), made.children[1]!);
    return made;
  }

  // unasked is undefined if the server does not count what queries ask for.
  private async unasked(start: number, end: number, signal: AbortSignal): Promise<Unasked | undefined> {
    try {
      return await this.ctx.api.whole<Unasked>("status/metric_names_stats", { ...this.selected(start, end), le: "0", limit: topN }, signal);
    } catch (e) {
      if (e instanceof ApiError && e.status === 404) return undefined;
      throw e;
    }
  }

  private selected(start: number, end: number): Params {
    return { ...spanParams({ start, end, asOf: this.ctx.asOf() }), "match[]": this.state().filter };
  }

  private async ask(start: number, end: number, signal: AbortSignal): Promise<Explored> {
    const params = { ...this.selected(start, end), topN, focusLabel: this.state().only };
    return (await this.ctx.api.get<Explored>("status/tsdb", params, signal)).data;
  }
}

// narrowed adds a matcher to a selector.
function narrowed(selector: string, matcher: string): string {
  const m = /^(.*)\}\s*$/s.exec(selector);
  if (!selector) return `{${matcher}}`;
  if (!m) return `${selector}{${matcher}}`;
  return `${m[1]!}${/\{\s*$/.test(m[1]!) ? "" : ","}${matcher}}`;
}

const signed = (n: number) => (n > 0 ? `+${count(n)}` : n < 0 ? `−${count(-n)}` : "±0");

// list is the table of a title. A click on a name narrows the view to it.
function list(title: string, of: string, unit: string, rows: Row[] | undefined, before: Row[] | undefined, narrow: (name: string) => void, explore?: (name: string) => void): HTMLElement | null {
  if (!rows) return null;
  const old = before && new Map(before.map((r) => [r.name, r.value]));
  const weighed = rows.some((r) => r.bytes !== undefined);
  const head = [of, unit, ...(old ? ["Change"] : []), ...(weighed ? ["Samples", "Bytes", "A month"] : []), ...(explore ? [""] : [])];
  // A row of the list before may have been below its end, so a missing one is no proof of growth.
  const change = (r: Row) => (old!.has(r.name) ? num(r.value - old!.get(r.name)!, signed(r.value - old!.get(r.name)!)) : num(r.value, old!.size < Number(topN) ? "new" : "–"));
  const known = (v: number | undefined, write: (v: number) => string) => (v === undefined ? num(NaN, "") : num(v, write(v)));
  const row = (r: Row): Cell[] => [
    { by: r.name, show: [h("button", { type: "button", class: "quiet", "aria-label": r.name || '""', onclick: () => narrow(r.name) }, ...cut(r.name || '""'))] },
    num(r.value),
    ...(old ? [change(r)] : []),
    ...(weighed ? [known(r.samples, formatValue), known(r.bytes, (v) => formatValue(v, "bytes")), known(r.dollarsPerMonth, dollars)] : []),
    ...(explore ? [{ by: "", show: [h("button", { type: "button", class: "quiet", "aria-label": `Explore ${r.name}`, onclick: () => explore(r.name) }, "Explore")] }] : []),
  ];
  return h("section", { class: "panel", "aria-label": title }, h("h2", {}, ...cut(title)), table(`Table of ${title}`, head, rows.map(row)));
}
