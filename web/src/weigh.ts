import { ApiError, type Api, type Params } from "./api";
import { h, replace } from "./dom";
import { formatValue } from "./format";
import { written, type Estimate } from "./explain";

// A query whose estimate exceeds one of these is heavy: the page asks before it runs.
const light = { samplesRead: 50_000_000, bytes: 2 ** 30, dollars: 0.01 };

// Gate holds back queries that are heavy until the user has decided. A decision, or that they are
// not heavy, holds as long as the same is asked.
export class Gate {
  private open = ""; // what may run
  private asked = ""; // what waits for a decision

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
    if (!all.length) return false; // the next time there may be one
    const sum = (of: keyof Estimate) => all.reduce((n, e) => n + e[of], 0);
    if (!Object.entries(light).some(([of, most]) => sum(of as keyof Estimate) > most)) {
      this.open = what;
      return false;
    }
    this.asked = what;
    const pass = () => {
      this.asked = "";
      this.open = what;
      run();
    };
    const text = `This is heavy: it reads about ${sum("samplesRead").toLocaleString("en")} samples of ${sum("seriesTouched").toLocaleString("en")} series, ${formatValue(sum("bytes"), "bytes")} (${written(sum("dollars"))}).`;
    const buttons = [h("button", { type: "button", class: "primary", onclick: pass }, "Run anyway"), h("button", { type: "button", onclick: explain }, "Explain it")];
    replace(this.status, h("div", { class: "question", role: "group", "aria-label": "Estimate of a heavy query" }, h("p", { class: "warn" }, text), h("div", { class: "row" }, ...buttons)));
    return true;
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
