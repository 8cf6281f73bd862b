import { ApiError, type Api, type Params, type Span } from "./api";
import { h, replace } from "./dom";
import { cheaper, type Estimate } from "./explain";
import type { Hint } from "./explore/hints";
import { count, formatValue, price } from "./format";

// A query whose estimate exceeds one of these is heavy: the page asks before it runs. Above a tenth
// of one of these it is costly, and has hints.
const light = { samplesRead: 50_000_000, bytes: 2 ** 30, dollars: 0.01 };
const exceeds = (e: Estimate, part: number) => Object.entries(light).some(([of, most]) => e[of as keyof Estimate] > part * most);

const both = (a: Estimate, b: Estimate) => Object.fromEntries(Object.entries(a).map(([of, n]) => [of, n + b[of as keyof Estimate]])) as unknown as Estimate;

// taken is what queries take. A directory has no price.
function taken(e: Estimate): string {
  const time = e.functionMilliseconds ? `, ${formatValue(e.functionMilliseconds / 1000, "seconds")} of a function` : "";
  return `about ${count(e.samplesRead)} samples of ${count(e.seriesTouched)} series, ${formatValue(e.bytes, "bytes")}${time}${e.dollars ? ` (${price(e.dollars)})` : ""}`;
}

// Gate holds back queries that are heavy until the user has decided. A decision, or that they are
// not heavy, holds as long as the same is asked.
export class Gate {
  private open = ""; // what may run
  private asked = ""; // what waits for a decision
  private cost: Estimate | undefined; // of all queries together

  constructor(
    private readonly api: Api,
    private readonly status: HTMLElement,
  ) {}

  // waits reports that the user has to decide.
  get waits(): boolean {
    return this.asked !== "";
  }

  // closed reports whether the user has to decide first. If so, and the question is not there yet,
  // it takes the place of the status, with what all queries together would read. Without an
  // estimate the queries run, and report why.
  async closed(what: string, queries: readonly Params[], signal: AbortSignal, run: () => void, explain: () => void): Promise<boolean> {
    if (what === this.asked) return true;
    this.asked = "";
    if (what === this.open) return false;
    const found = await Promise.all(queries.map((q) => this.estimate(q, signal)));
    const all = found.filter((e) => e !== undefined);
    this.cost = all.length ? all.reduce(both) : undefined;
    if (!this.cost) return false; // the next time there may be one
    if (!exceeds(this.cost, 1)) {
      this.open = what;
      return false;
    }
    this.asked = what;
    const pass = () => {
      this.asked = "";
      this.open = what;
      run();
    };
    const text = `This is heavy: it takes ${taken(this.cost)}.`;
    const buttons = [h("button", { type: "button", class: "primary", onclick: pass }, "Run anyway"), h("button", { type: "button", onclick: explain }, "Explain it")];
    replace(this.status, h("div", { class: "question", role: "group", "aria-label": "Estimate of a heavy query" }, h("p", { class: "warn" }, text), h("div", { class: "row" }, ...buttons)));
    return true;
  }

  // hints names what the last query takes if it is costly, unless the question does, and what makes
  // it cheaper with one click. Only a query over time has a span.
  async hints(expr: string, span: Span | undefined, step: number, signal: AbortSignal): Promise<Hint[]> {
    if (!this.cost || !exceeds(this.cost, 0.1)) return [];
    const named = this.waits ? [] : [{ text: `This query takes ${taken(this.cost)}.`, mends: [{ name: "Explain" }] }];
    const all = span ? await cheaper(this.api, expr, span, step, signal) : [];
    return [...named, ...all.filter((a) => a.mends.length)];
  }

  // estimate returns the price of a query (docs/querying.md), undefined if the server has none.
  private async estimate(query: Params, signal: AbortSignal): Promise<Estimate | undefined> {
    try {
      return (await this.api.get<{ estimate: Estimate }>(query["step"] ? "query_range_cost" : "query_cost", query, signal)).data.estimate;
    } catch (e) {
      if (signal.aborted || (e instanceof ApiError && (e.status === 0 || e.status === 401))) throw e;
      return undefined;
    }
  }

  // forget drops the question.
  forget(): void {
    this.asked = "";
  }
}
