import type { Answer, Reply, Series } from "./answer";
import { queryParams, rangeParams } from "./api";
import { spanOf, type Context } from "./context";
import { seriesRows } from "./csv";
import { alarm, choice, cut, h, replace } from "./dom";
import { editor, type Editor } from "./editor";
import { exemplars, listed } from "./exemplars";
import { Builder } from "./explore/builder";
import { advise } from "./explore/facts";
import type { Hint, Mend } from "./explore/hints";
import { formatValue, legend, unitOf } from "./format";
import { drawn, graph, linesOf, type Graph, type GraphOptions, type Mark } from "./graph";
import { cellsOf, heatmap, isHistogram } from "./heatmap";
import { Latest } from "./latest";
import { pause } from "./pause";
import { Ranged } from "./ranged";
import { shareMenu, type Shared } from "./share";
import { remember, type PanelState } from "./state";
import { results, tableRows } from "./table";
import { bounds, formatDuration, parseDuration, stepFor, type Range } from "./time";
import { ValuesTable } from "./values";
import { Gate } from "./weigh";

// Focus is what a result shows of an expression's series, and how.
export interface Focus {
  chosen?(all: Series[]): Series[];
  marks?(): Mark[];
  refused?(e: unknown): boolean; // another request follows, so the error is not shown
  answered?(): void; // after a run, or a question instead of it, that is no refresh
}

// Result asks one expression and shows the answer as a graph or a table.
export class Result {
  readonly dom: HTMLElement;
  answer: Answer | undefined;
  private readonly status = h("div", { class: "status", role: "status" });
  private readonly body = h("div", { class: "body" });
  private readonly latest: Latest;
  private drawing: Graph | undefined;
  private readonly values = new ValuesTable();
  private readonly query: Ranged;
  private readonly gate: Gate;

  constructor(
    private readonly ctx: Context,
    private readonly height: number,
    private readonly explain: (expr: string) => void,
    private readonly focus: Focus = {},
  ) {
    this.query = new Ranged(ctx);
    this.gate = new Gate(ctx.api, this.status);
    this.dom = h("div", { class: "result", "aria-busy": "false" }, this.status, this.body, this.values.dom);
    this.latest = new Latest(this.dom);
  }

  // ask runs the expression. An earlier run is cancelled. With refresh, only the end of a range
  // that moved on is asked again.
  async ask(g: PanelState, refresh = false): Promise<void> {
    // Refreshes that come faster than answers must not cancel each other for good.
    if (refresh && (this.latest.busy || this.gate.waits)) return;
    if (!g.expr.trim()) {
      this.latest.end();
      this.gate.forget();
      this.empty();
      return replace(this.status);
    }
    const work = async (signal: AbortSignal) => {
      if (!refresh && (await this.weigh(g, signal))) this.empty();
      else if (g.tab === "table") await this.instant(g, signal);
      else await this.ranged(g, refresh, signal);
      if (!refresh && !signal.aborted) this.focus.answered?.();
    };
    await this.latest.do(work, (e) => {
      if (this.focus.refused?.(e)) return;
      replace(this.status, alarm(e));
      // A refresh that fails keeps the last answer, with the error above it.
      if (!refresh) this.empty();
    });
  }

  // weigh reports whether the query is heavy and the user has not decided yet.
  private weigh(g: PanelState, signal: AbortSignal): Promise<boolean> {
    const range = this.ctx.range();
    const { start, end } = bounds(range, Date.now());
    const asOf = this.ctx.asOf();
    const step = this.step(g, range);
    const query = g.tab === "table" ? queryParams(g.expr, end, asOf) : rangeParams(g.expr, start, end, step, asOf);
    return this.gate.closed(JSON.stringify([g.expr, g.tab === "table", range, step, asOf]), [query], signal, () => void this.ask(g), () => this.explain(g.expr));
  }

  // costs are the hints of a costly query.
  costs(g: PanelState, signal: AbortSignal): Promise<Hint[]> {
    return this.gate.hints(g.expr, g.tab === "table" ? undefined : spanOf(this.ctx), this.step(g, this.ctx.range()), signal);
  }

  step(g: PanelState, range: Range): number {
    return g.step ?? stepFor(range.length, this.dom.clientWidth || 800);
  }

  private async instant(g: PanelState, signal: AbortSignal): Promise<void> {
    const { end } = bounds(this.ctx.range(), Date.now());
    const r = await this.ctx.api.get<Answer>("query", { ...queryParams(g.expr, end, this.ctx.asOf()), stats: "all" }, signal);
    this.tell(r);
    this.answer = r.data;
    this.drop();
    this.values.hide();
    replace(this.body, results(`Result of ${g.expr}`, r.data, unitOf(g.expr)));
  }

  private async ranged(g: PanelState, refresh: boolean, signal: AbortSignal): Promise<void> {
    const range = this.ctx.range();
    const step = this.step(g, range);
    const [{ series: all, start, end, reply: r }, dots] = await Promise.all([this.query.ask(g.expr, range, step, refresh, signal), g.exemplars && g.tab === "graph" ? exemplars(this.ctx.api, g.expr, spanOf(this.ctx), signal) : undefined]);
    const series = this.focus.chosen?.(all) ?? all;
    const unit = unitOf(g.expr);
    const zone = this.ctx.zone();
    const zoom = (s: number, e: number) => this.ctx.zoom(s, e);
    const how: GraphOptions = { unit, stacked: g.stacked, log: g.log, zone, start, end, step, height: this.height, zoom, marks: this.focus.marks?.() ?? [], ...(dots ? { dots: dots.dots } : {}) };
    const of = g.tab === "heatmap" ? undefined : linesOf(series, how);
    if (of) of.names = of.names.map((n) => (n === "{}" ? g.expr : n));
    if (series.length > drawn) await pause(); // the browser may react to input
    if (signal.aborted) return;
    this.answer = { ...r.data, result: series };
    this.tell(r, series.length, step);
    this.drop();
    const none = !series.length ? h("p", { class: "muted" }, "No series in this time range.") : !of && !isHistogram(series) && h("p", { class: "warn" }, "A heatmap shows the buckets of histograms: sum by (le) (rate(name_bucket[5m])), or sum(rate(name[5m])) of a native histogram.");
    if (none) {
      this.values.hide();
      return replace(this.body, none);
    }
    if (of) {
      this.drawing = graph(of, how);
      replace(this.body, this.drawing.dom, dots && listed(dots.dots, dots.total, zone));
    } else {
      const bound = /_bytes/.test(g.expr) ? "bytes" : /_seconds/.test(g.expr) ? "seconds" : "number";
      this.drawing = heatmap(cellsOf(series, { start, end, step }, (v) => formatValue(v, bound)), { zone, height: this.height, format: (v) => formatValue(v), zoom });
      replace(this.body, this.drawing.dom);
    }
    this.values.show(g.expr, this.drawing.dom, this.drawing.values);
  }

  private tell(r: Reply<Answer>, series?: number, step?: number): void {
    const stats = r.data.stats;
    const parts = [`${Math.round(r.took)} ms`];
    if (series !== undefined) parts.push(`${series} series`);
    if (step !== undefined) parts.push(`step ${formatDuration(step)}`);
    const samples = stats?.samples?.totalQueryableSamples;
    if (samples) parts.push(`${samples.toLocaleString("en")} samples`);
    replace(this.status, h("p", { class: "muted cost" }, parts.join(" · ")), ...r.warnings.map((w) => h("p", { class: "warn" }, ...cut(w))), ...r.infos.map((w) => h("p", { class: "muted" }, ...cut(w))));
  }

  // shared is what the menu of the panel saves.
  shared(title: () => string, link: () => string): Shared {
    const rows = () => {
      const table = tableRows(this.body.firstElementChild);
      return table ?? (this.answer && seriesRows((this.answer.result as Series[]).map((series) => ({ name: legend(series.metric), series }))));
    };
    return { title, shown: this.body, rows, json: () => this.answer, link };
  }

  private drop(): void {
    this.drawing?.destroy();
    this.drawing = undefined;
  }

  private empty(): void {
    this.drop();
    this.values.hide();
    this.query.forget();
    this.answer = undefined;
    replace(this.body);
  }

  destroy(): void {
    this.latest.end();
    this.empty();
  }
}

// Panel is an editor with its result.
export class Panel {
  readonly dom: HTMLElement;
  private readonly input: Editor;
  private readonly result: Result;
  private readonly hints = h("div", { class: "hints", role: "status", "aria-label": "Hints" });
  private readonly builder: Builder;
  private readonly step: HTMLInputElement;
  private advising: AbortController | undefined;

  constructor(
    private readonly ctx: Context,
    readonly state: PanelState,
    private readonly changed: () => void,
    close: () => void,
    private readonly explain: (expr: string) => void,
    private readonly sql: (statement: string) => void,
    link: () => string,
  ) {
    this.input = editor(ctx.api, state.expr, () => this.submit(), () => this.builder.read(this.input.text()));
    this.builder = new Builder(ctx, (expr) => this.show(expr));
    this.builder.read(state.expr);
    this.result = new Result(ctx, 320, explain, { answered: () => void this.advise() });
    const tabs = choice("Show as", [["graph", "Graph"], ["heatmap", "Heatmap"], ["table", "Table"]], state.tab, (v) => this.set({ tab: v === "table" || v === "heatmap" ? v : "graph" }));
    const scale = choice("Scale", [["", "Linear"], ["stacked", "Stacked"], ["log", "Logarithmic"]], state.stacked ? "stacked" : state.log ? "log" : "", (v) => this.set({ stacked: v === "stacked", log: v === "log" }));
    const dots = h("input", { type: "checkbox", checked: state.exemplars, onchange: () => this.set({ exemplars: dots.checked }) });
    this.step = h("input", { class: "short", placeholder: "step", "aria-label": "Step, for example 30s; empty chooses one", value: state.step ? formatDuration(state.step) : "" });
    this.step.addEventListener("change", () => {
      const d = parseDuration(this.step.value);
      this.step.setCustomValidity(d === undefined && this.step.value.trim() ? "Write a duration such as 15s or 5m." : "");
      if (this.step.reportValidity()) this.pace(d);
    });
    const share = shareMenu("Save or share the answer", "Save…", this.result.shared(() => state.expr, link), (e) => replace(this.hints, alarm(e)));
    this.dom = h(
      "section",
      { class: "panel", "aria-label": "Query panel" },
      h("div", { class: "row" }, this.input.dom, h("button", { type: "button", class: "primary", onclick: () => this.submit() }, "Run")),
      h("div", { class: "row tools" }, tabs, scale, this.step, h("label", { class: "toggle" }, dots, " Exemplars"), share, h("button", { type: "button", onclick: () => this.explain(this.input.text()) }, "Explain"), h("button", { type: "button", title: "Open as a SQL statement with the same rows", onclick: () => void this.translate() }, "SQL"), h("button", { type: "button", onclick: close, "aria-label": "Remove this panel" }, "Remove")),
      this.builder.dom,
      this.hints,
      this.result.dom,
    );
  }

  private set(change: Partial<PanelState>): void {
    Object.assign(this.state, change);
    this.changed();
    void this.refresh();
  }

  // pace sets the step; undefined leaves it to the page.
  private pace(step: number | undefined): void {
    if (step === undefined) delete this.state.step;
    else this.state.step = step;
    this.step.value = step ? formatDuration(step) : "";
    this.set({});
  }

  private submit(): void {
    if (this.state.expr !== this.input.text()) replace(this.hints);
    this.state.expr = this.input.text();
    remember(this.state.expr);
    this.changed();
    void this.refresh();
  }

  // show runs another expression.
  show(expr: string): void {
    this.input.set(expr);
    this.submit();
  }

  // translate opens the query as a statement, as the server writes it, or around the query.
  private async translate(): Promise<void> {
    const { start, end } = bounds(this.ctx.range(), Date.now());
    const expr = this.input.text();
    const step = this.result.step(this.state, this.ctx.range());
    try {
      const { data } = await this.ctx.api.get<{ equivalent_sql?: string }>("explain", rangeParams(expr, start, end, step, this.ctx.asOf()));
      this.sql(data.equivalent_sql ?? `SELECT * FROM promql('${expr.replaceAll("'", "''")}', $start, $end, INTERVAL ${step} MILLISECONDS)`);
    } catch (e) {
      replace(this.hints, alarm(e));
    }
  }

  private mend({ expr, step, length }: Mend): void {
    if (expr !== undefined) this.show(expr);
    else if (step) this.pace(step);
    else if (length) this.ctx.setLength(length);
    else this.explain(this.state.expr);
  }

  // advise shows the mistakes of the query that was answered last, and what it costs.
  private async advise(): Promise<void> {
    this.advising?.abort();
    const { signal } = (this.advising = new AbortController());
    const { expr } = this.state;
    const range = this.ctx.range();
    const answer = this.result.answer;
    const span = spanOf(this.ctx);
    const empty = /^(matrix|vector)$/.test(answer?.resultType ?? "") && !(answer!.result as unknown[]).length;
    const all = [advise(this.ctx.api, expr, span, this.result.step(this.state, range), empty, signal), this.result.costs(this.state, signal)];
    const found = (await Promise.all(all.map((hints) => hints.catch(() => [])))).flat(); // the answer is there without hints
    if (signal.aborted) return;
    const button = (m: Mend) => h("button", { type: "button", class: "quiet", "aria-label": m.name, title: m.expr, onclick: () => this.mend(m) }, ...cut(m.name));
    replace(this.hints, ...found.map(({ text, mends }) => h("p", {}, ...cut(text), ...(mends.length ? [" Use "] : []), ...mends.map(button))));
  }

  refresh(automatic = false): Promise<void> {
    if (!automatic) this.advising?.abort();
    return this.result.ask(this.state, automatic);
  }

  focus(): void {
    this.input.focus();
  }

  destroy(): void {
    this.advising?.abort();
    this.input.destroy();
    this.result.destroy();
  }
}
