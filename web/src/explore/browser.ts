import { alarm, choice, cut, h, replace } from "../dom";
import { spanOf, type Context } from "../context";
import { dollars } from "../format";
import { Latest } from "../latest";
import { formatTime } from "../time";
import { usageOf, values } from "./facts";
import { find, join, type Metadata, type Metric, type Order } from "./metrics";
import { matchersIn, select } from "./syntax";

// shownRows bounds the rows of the list.
const shownRows = 100;
// weighed bounds the metrics whose series and queries are asked for.
const weighed = 20_000;
// again is after how long an automatic refresh asks for the metrics, in ms.
const again = 60_000;
// fresh is how long before the end of the time range the last sample of a metric may be, in ms.
const fresh = 300_000;

const count = (n: number, one: string, many: string) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

// Browser is the list of the metrics that have samples in the time range, with a search by name and
// help text. It asks for them while it is open.
export class Browser {
  readonly dom: HTMLDetailsElement;
  private readonly search = h("input", { type: "search", placeholder: 'Name, help text, unit, {job="api"}', "aria-label": "Find metrics by name, help text, unit or labels" });
  private readonly status = h("div", { class: "status muted", role: "status" });
  private readonly list = h("ul", { "aria-label": "Metrics" });
  private order: Order = "name";
  private all: Metric[] = [];
  private selector = ""; // in the search: the metrics are those of its series
  private end = 0; // ms; of the time range that the metrics are of; 0 before they are there
  private readonly latest = new Latest(this.list);

  constructor(
    private readonly ctx: Context,
    private readonly pick: (m: Metric) => void,
  ) {
    const order = choice("Order of the metrics", [["name", "By name"], ["series", "Most series first"], ["asked", "Most asked first"], ["seen", "Oldest last sample first"]], "name", (v) => {
      this.order = v as Order;
      this.show();
    });
    this.dom = h("details", { class: "panel metrics", "aria-label": "Metrics" }, h("summary", {}, h("h2", {}, "Metrics")), h("div", { class: "row tools" }, this.search, order), this.status, this.list);
    this.dom.addEventListener("toggle", () => this.latest.busy || this.end || this.refresh());
    this.search.addEventListener("input", () => this.find());
    this.dom.addEventListener("keydown", (e) => this.key(e));
  }

  // refresh asks for the metrics anew.
  refresh(automatic = false): void {
    if (automatic && this.end > spanOf(this.ctx).end - again) return;
    this.latest.end();
    if (!this.dom.isConnected || !this.dom.open) this.end = 0;
    else void this.latest.do((signal) => this.load(signal), (e) => replace(this.status, alarm(e)));
  }

  // load shows the metrics when their names are there, and again with what is stored of them. The
  // list is useful without these, and without metadata.
  private async load(signal: AbortSignal): Promise<void> {
    const { api } = this.ctx;
    const span = spanOf(this.ctx);
    const known = api.get<Metadata>("metadata", { limit_per_metric: "1" }, signal).then((r) => r.data, () => ({}));
    const names = await values(api, "__name__", span, this.selector, undefined, signal);
    const metadata = await known;
    for (const usage of [[], names.length && names.length <= weighed ? usageOf(api, span, signal).catch(() => []) : []]) {
      const all = join(names, metadata, await usage);
      if (signal.aborted) return;
      [this.all, this.end] = [all, span.end];
      this.show();
    }
  }

  private find(): void {
    const matchers = matchersIn(/\{[^]*\}/.exec(this.search.value)?.[0] ?? "");
    const selector = select("", matchers);
    if (selector === this.selector || (!selector && this.search.value.includes("{"))) return this.show(); // it may not be finished
    this.selector = selector;
    this.refresh();
  }

  private show(): void {
    const found = find(this.all, this.search.value.replace(/\{[^]*\}|\{.*/, ""), this.order);
    const total = count(found.length, "metric", "metrics");
    const none = this.all.length ? "No metric has these words in its name, help text or unit." : `No metric has samples${this.selector && ` of ${this.selector}`} in this time range.`;
    replace(this.status, !found.length ? none : found.length > shownRows ? `The first ${shownRows} of ${total}. Type to narrow.` : total, this.all.length > weighed && ` Series and queries are listed for at most ${count(weighed, "metric", "metrics")}.`);
    const active = document.activeElement instanceof HTMLElement && this.list.contains(document.activeElement) ? document.activeElement.dataset["name"] : undefined;
    const { scrollTop } = this.list;
    replace(this.list, ...found.slice(0, shownRows).map((m) => this.row(m)));
    this.list.scrollTop = scrollTop;
    if (active) this.rows().find((b) => b.dataset["name"] === active)?.focus();
  }

  private row(m: Metric): HTMLElement {
    const type = m.kind === "bucket" ? "histogram" : m.kind;
    const facts = [type, m.unit, m.series !== undefined && count(m.series, "series", "series"), m.asked !== undefined && (m.asked ? `asked by ${count(m.asked, "query", "queries")}` : "never asked"), (m.dollars ?? 0) >= 0.01 && `${dollars(m.dollars!)} a month`].filter(Boolean).join(" · ");
    const stale = m.seen !== undefined && m.seen < this.end - fresh && "stale";
    const seen = m.seen !== undefined && `last sample ${formatTime(m.seen, this.ctx.zone())}`;
    const cost = (text: string, tone = "") => h("span", { class: `cost ${tone}` }, ...cut(text));
    const parts = [h("span", { class: "expr" }, ...cut(m.name)), stale && cost(stale, "warn"), facts && cost(facts, "muted"), seen && cost(seen, "muted"), m.help && cost(m.help)].filter((p) => p instanceof HTMLElement);
    const button = h("button", { type: "button", class: "metric", "aria-label": parts.map((p) => p.textContent).join(" "), onclick: () => this.pick(m) }, ...parts.flatMap((p) => [p, " "]));
    button.dataset["name"] = m.name;
    return h("li", {}, button);
  }

  private rows(): HTMLElement[] {
    return [...this.list.querySelectorAll<HTMLElement>("button")];
  }

  // The arrows move between the field and the rows; Enter in the field takes the first row.
  private key(e: KeyboardEvent): void {
    const rows = this.rows();
    const at = rows.indexOf(document.activeElement as HTMLElement);
    const inField = document.activeElement === this.search;
    if ((at < 0 && !inField) || !rows.length) return;
    const to = { ArrowDown: rows[at + 1], ArrowUp: at > 0 ? rows[at - 1] : inField ? undefined : this.search, Home: inField ? undefined : rows[0], End: inField ? undefined : rows.at(-1) }[e.key];
    if (to) to.focus();
    else if (inField && e.key === "Enter") rows[0]!.click();
    else return;
    e.preventDefault();
  }

  destroy(): void {
    this.latest.end();
  }
}
