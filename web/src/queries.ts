import { ApiError, headerText, seconds } from "./api";
import type { Context } from "./context";
import { Sources, type Entry } from "./dashboards/sources";
import { alarm, choice, cut, focusIn, h, oneLine, replace, type Child } from "./dom";
import { count, formatValue, price } from "./format";
import { Latest } from "./latest";
import { emptyPanel, encode, type State } from "./state";
import { num, table, type Cell } from "./table";
import { formatTime } from "./time";

// The queries of a tenant that run on this server, and what queries took (docs/querying.md).

// Source is what sends queries. Without a name it stands for those for which there was no room.
interface Source {
  kind: string;
  name: string;
  title?: string;
}

interface Running {
  id: string;
  duration: string; // such as 1.250s
  query: string;
  start?: number; // ms; only a query of PromQL has times
  end?: number;
  step?: number;
  path: string;
  remote_addr: string;
  state: "running" | "waiting";
  bytes_read: number;
  memory_bytes: number;
  token?: string;
  source: Source;
}

interface Spent {
  queries: number;
  seconds: number;
  bytes: number;
  requests: number;
  dollars: number; // 0 for all if the store is a directory
}

interface Spending {
  since: number; // ms
  total: Spent;
  sources: (Source & Spent)[];
  tokens: ({ name: string } & Spent)[];
}

type Tenant = { tenant: string } & Spent;

const kinds: Record<string, string> = { dashboard: "dashboard", alert_rule: "alert rule", rule_group: "rule group", client: "client" };
const day = 86_400_000;
// every is the time between two requests for the running queries, in ms.
const every = 2_000;

// QueriesView keeps the days of what queries took in the state's only.
export class QueriesView {
  readonly dom: HTMLElement;
  private readonly refused = h("div", { class: "status" });
  private readonly running = h("div", { tabIndex: -1 });
  private readonly spent = h("div");
  private readonly days: HTMLSelectElement;
  private readonly listing = new Latest(this.running);
  private readonly adding = new Latest(this.spent);
  private readonly sources: Sources;
  private dashboards: Entry[] = [];
  private tenants: Tenant[] | HTMLElement = []; // for operators, or an error
  private readonly timer = setInterval(() => !document.hidden && !this.listing.busy && this.list(), every);

  constructor(
    private readonly ctx: Context,
    private readonly state: () => State,
    change: (c: Partial<State>) => void,
  ) {
    this.sources = new Sources(ctx.api);
    this.days = choice("Days", [["today", "Today"], ["7d", "7 days"], ["", "This month"]], state().only, (only) => change({ only }));
    this.dom = h(
      "div",
      {},
      h("section", { class: "panel", "aria-label": "Running queries" }, h("h2", {}, "Running queries"), this.refused, this.running),
      h("section", { class: "panel", "aria-label": "What queries took" }, h("div", { class: "row" }, h("h2", {}, "What queries took"), this.days), this.spent),
    );
  }

  refresh(automatic = false): void {
    this.list();
    if (automatic && this.adding.busy) return;
    void this.adding.do((signal) => this.add(automatic, signal), (e) => replace(this.spent, alarm(e)));
  }

  destroy(): void {
    clearInterval(this.timer);
    this.listing.end();
    this.adding.end();
  }

  private list(): void {
    const work = async (signal: AbortSignal) => {
      const { data } = await this.ctx.api.get<Running[]>("status/active_queries", {}, signal);
      const head = ["Query", "Time", "State", "Source", "Bytes read", "Memory", ""];
      const none = h("p", { class: "muted" }, "No query is running.");
      const refocus = focusIn(this.running);
      replace(this.running, data.length ? table("Table of running queries", head, data.map((q) => this.row(q))) : none);
      refocus();
    };
    void this.listing.do(work, (e) => {
      const told = alarm(e instanceof ApiError && e.status === 404 ? "This server does not list its queries: it is older than this page." : e);
      if (this.running.textContent !== told.textContent) replace(this.running, told); // it is announced once
    });
  }

  private row(q: Running): Cell[] {
    const past = parseFloat(q.duration);
    const end = h("button", { type: "button", "aria-label": `End query ${q.id}`, onclick: () => void this.end(q) }, "End");
    const origin = [q.path, q.remote_addr && `from ${q.remote_addr}`, q.token && `with the token ${q.token}…`].filter(Boolean).join(" ");
    return [
      { by: q.query, show: [oneLine(q.query)] },
      num(past, formatValue(past, "seconds")),
      q.state,
      { by: q.source.title || q.source.name, show: [h("div", { title: origin }, ...this.source(q.source)), h("div", { class: "muted" }, kinds[q.source.kind] ?? q.source.kind)] },
      num(q.bytes_read, formatValue(q.bytes_read, "bytes")),
      num(q.memory_bytes, formatValue(q.memory_bytes, "bytes")),
      { by: "", show: [h("div", { class: "row" }, end, this.explored(q))] },
    ];
  }

  // explored is a link to a query in Explore.
  private explored({ id, query, start, end, step }: Running): Child {
    if (start === undefined || end === undefined) return null;
    const range = { length: start < end ? end - start : this.state().range.length, end };
    const panel = { ...emptyPanel(query), ...(step ? { step } : { tab: "table" as const }) };
    return h("a", { href: encode({ ...this.state(), view: "explore", range, panels: [panel] }), "aria-label": `Explore query ${id}` }, "Explore");
  }

  private async end(q: Running): Promise<void> {
    if (!confirm(`End this query?\n\n${q.query.slice(0, 300)}`)) return;
    try {
      await this.ctx.api.act("DELETE", "status/active_queries", { id: q.id });
      replace(this.refused);
    } catch (e) {
      replace(this.refused, alarm(e));
    }
    this.list();
  }

  // source names a source. A dashboard that the page knows is a link to it.
  private source({ kind, name, title }: Source): Child[] {
    const is = (id = "") => id === name || headerText(id) === name; // by Grafana, by the page
    const known = kind === "dashboard" && name && this.dashboards.find((d) => is(d.uid) || is(d.id));
    const text = cut(title || name || "others");
    return known ? [h("a", { href: encode({ ...this.state(), view: "dashboards", dash: known.id, vars: {} }) }, ...text)] : text;
  }

  private async add(automatic: boolean, signal: AbortSignal): Promise<void> {
    const { api } = this.ctx;
    const now = Date.now();
    const { only } = this.state();
    this.days.value = only;
    const today = now - (now % day); // UTC
    const first = only === "today" ? today : only === "7d" ? today - 6 * day : new Date(today).setUTCDate(1);
    const days = { start: seconds(first), end: seconds(now) };
    const [{ data }, dashboards] = await Promise.all([api.get<Spending>("status/spending", { ...days, limit: "100" }, signal), this.sources.list()]);
    if (signal.aborted) return;
    this.dashboards = dashboards;
    this.draw(data, first);
    // The server asks its store for each tenant.
    const tenants = automatic ? this.tenants : ((await api.operator<Tenant[]>("status/spending/tenants", days).catch(alarm)) ?? []);
    if (signal.aborted) return;
    this.tenants = tenants;
    this.draw(data, first);
  }

  // draw shows what queries took since a time (ms), the dearest first.
  private draw({ since, total, sources, tokens }: Spending, first: number): void {
    const priced = total.dollars > 0;
    const head = ["Time", "Queries", "Bytes", "Requests", ...(priced ? ["Dollars"] : [])];
    const cells = (s: Spent): Cell[] => [num(s.seconds, formatValue(s.seconds, "seconds")), num(s.queries), num(s.bytes, formatValue(s.bytes, "bytes")), num(s.requests), ...(priced ? [num(s.dollars, price(s.dollars))] : [])];
    const by = <T extends Spent>(of: string, names: string[], all: readonly T[], named: (s: T) => Cell[]) => {
      const sorted = [...all].sort((a, b) => b.dollars - a.dollars || b.seconds - a.seconds);
      return all.length ? [h("h3", {}, `By ${of}`), table(`What queries took by ${of}`, [...names, ...head], sorted.map((s) => [...named(s), ...cells(s)]))] : [];
    };
    const counted = since > first ? `, counted since ${formatTime(since, this.ctx.zone())}` : "";
    const sum = total.queries ? `${count(total.queries)} queries${counted}: ${formatValue(total.seconds, "seconds")}, ${formatValue(total.bytes, "bytes")}${priced ? `, ${price(total.dollars)}` : ""}.` : `No query has run in these days${counted}.`;
    const refocus = focusIn(this.spent);
    replace(
      this.spent,
      h("p", { class: "muted" }, sum),
      ...by("source", ["Source", "Kind"], sources, (s) => [{ by: s.title || s.name, show: this.source(s) }, kinds[s.kind] ?? s.kind]),
      ...by("token", ["Token"], tokens, (t) => [t.name || "others"]),
      ...(this.tenants instanceof HTMLElement ? [this.tenants] : by("tenant", ["Tenant"], this.tenants, (t) => [t.tenant])),
    );
    refocus();
  }
}
