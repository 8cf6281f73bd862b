import { type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { newCompleteStrategy, type CompleteStrategy, type PrometheusClient } from "@prometheus-io/codemirror-promql";
import { CachedPrometheusClient, HTTPPrometheusClient } from "@prometheus-io/codemirror-promql/dist/esm/client/prometheus";
import type { Api } from "./api";

// Completion that stays fast among hundreds of thousands of metric names. With more than many of
// them, the editor gets only those that contain what is typed, at most offered, and they are found
// anew with each key.

const many = 5_000;
const offered = 1_000;

// Names finds names that contain a text, without regard to case. They are joined in one text, so
// that a search is one of the browser's own.
export class Names {
  private readonly text: string;
  private readonly starts: Uint32Array;

  constructor(readonly all: readonly string[]) {
    this.text = `\n${all.join("\n")}\n`.toLowerCase();
    this.starts = new Uint32Array(all.length);
    for (let i = 0, at = 1; i < all.length; i++) {
      this.starts[i] = at;
      at = this.text.indexOf("\n", at) + 1;
    }
  }

  // find returns at most n names: first those that begin with the text.
  find(text: string, n: number): string[] {
    const wanted = text.toLowerCase();
    const found = new Set<number>();
    for (const needle of [`\n${wanted}`, wanted]) {
      for (let at = this.text.indexOf(needle); at >= 0 && found.size < n; ) {
        const i = this.at(needle === wanted ? at : at + 1);
        if (i < 0) break;
        found.add(i);
        at = i + 1 < this.starts.length ? this.text.indexOf(needle, this.starts[i + 1]! - 1) : -1;
      }
    }
    return [...found].map((i) => this.all[i]!);
  }

  // at is the index of the name at a position of the text.
  private at(position: number): number {
    let low = 0;
    let high = this.starts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.starts[middle]! <= position) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}

// Few is a client that offers few of many names.
interface Few extends PrometheusClient {
  last: Set<string>; // the names that were offered last
  offer(typed: string): string[];
}

// few is the server's client but for the names of metrics.
function few(server: PrometheusClient): Few {
  let names = new Names([]);
  const client: Few = Object.assign(Object.create(server) as PrometheusClient, {
    last: new Set<string>(),
    async metricNames(typed = ""): Promise<string[]> {
      const all = await server.metricNames();
      if (all.length <= many) {
        client.last = new Set();
        return all;
      }
      if (names.all !== all) names = new Names(all);
      return client.offer(typed);
    },
    offer(typed: string): string[] {
      const found = names.find(typed, offered);
      client.last = new Set(found);
      return found;
    },
    // metricMetadata is left out where it would be as large as the list of names.
    metricMetadata: (): ReturnType<PrometheusClient["metricMetadata"]> => (client.last.size ? Promise.resolve({}) : server.metricMetadata()),
  });
  return client;
}

// completion completes PromQL with what the server has.
export function completion(api: Api): CompleteStrategy {
  const remote = {
    url: api.url("").replace(/\/$/, ""),
    fetchFn: (input: RequestInfo, init?: RequestInit) => fetch(input, { ...init, headers: { ...(init?.headers as Record<string, string>), ...api.headers() } }),
  };
  const client = few(new CachedPrometheusClient(new HTTPPrometheusClient(remote), { initialMetricList: [] }));
  const strategy = newCompleteStrategy({ remote: client });
  return {
    promQL: async (context: CompletionContext) => {
      client.last = new Set();
      const result = await strategy.promQL(context);
      return result && client.last.size ? renewed(result, client) : result;
    },
    destroy: () => strategy.destroy?.(),
  };
}

// renewed makes a result that finds the names anew when a key extends what is typed.
function renewed(result: CompletionResult, client: Few): CompletionResult {
  const others = result.options.filter((o) => !client.last.has(o.label));
  const { validFor: _, ...kept } = result;
  const update: NonNullable<CompletionResult["update"]> = (current, from, to, context) => {
    const typed = context.state.sliceDoc(from, to);
    if (!/^[a-zA-Z_:][\w:]*$/.test(typed)) return null;
    const names = client.offer(typed).map((label) => ({ label, type: "constant" }));
    return { ...current, from, options: [...others, ...names], update };
  };
  return { ...kept, update };
}
