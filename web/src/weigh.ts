import { ApiError, type Api } from "./api";
import { h } from "./dom";
import { formatValue } from "./format";
import { written, type Cost, type Selector } from "./explain";

// Asks before heavy queries run: the server estimates a query (docs/querying.md, "Explain") before
// the page sends it.

// Estimate is what a query would read.
export interface Estimate {
  series: number;
  samples: number;
  bytes: number;
  dollars: number;
}

// A query that reads more than one of these is heavy.
const light: Omit<Estimate, "series"> = { samples: 50_000_000, bytes: 2 ** 30, dollars: 0.01 };

const heavy = (e: Estimate) => e.samples > light.samples || e.bytes > light.bytes || e.dollars > light.dollars;

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

// together is what several queries would read. It is undefined if there is no estimate of any.
export function together(all: readonly (Estimate | undefined)[]): Estimate | undefined {
  const known = all.filter((e) => e !== undefined);
  const sum = (of: keyof Estimate) => known.reduce((n, e) => n + e[of], 0);
  return known.length ? { series: sum("series"), samples: sum("samples"), bytes: sum("bytes"), dollars: sum("dollars") } : undefined;
}

// Gate holds back what is heavy until the user has decided. A decision, or that something is not
// heavy, holds as long as the same is asked.
export class Gate {
  private open = ""; // what may run
  private asked = ""; // what waits for a decision

  // waits reports that the user has to decide.
  get waits(): boolean {
    return this.asked !== "";
  }

  // closed reports whether the user has to decide first. If so, and the question is not there yet,
  // ask shows it, and its argument lets pass what was asked.
  async closed(what: string, weigh: () => Promise<Estimate | undefined>, ask: (e: Estimate, pass: () => void) => void): Promise<boolean> {
    if (what === this.asked) return true;
    this.asked = "";
    if (what === this.open) return false;
    const e = await weigh();
    if (!e) return false; // the next time there may be an estimate
    if (!heavy(e)) {
      this.open = what;
      return false;
    }
    this.asked = what;
    ask(e, () => {
      this.asked = "";
      this.open = what;
    });
    return true;
  }

  // forget drops the question.
  forget(): void {
    this.asked = "";
  }
}

// question shows an estimate and the choice.
export function question(e: Estimate, run: () => void, explain: () => void): HTMLElement {
  const n = (x: number) => x.toLocaleString("en");
  return h(
    "div",
    { class: "question", role: "group", "aria-label": "Estimate of a heavy query" },
    h("p", { class: "warn" }, `This is heavy: it reads about ${n(e.samples)} samples of ${n(e.series)} series, ${formatValue(e.bytes, "bytes")} (${written(e.dollars)}).`),
    h("div", { class: "row" }, h("button", { type: "button", class: "primary", onclick: run }, "Run anyway"), h("button", { type: "button", onclick: explain }, "Explain it")),
  );
}
