import type { Answer, Labels, Point, Series } from "../answer";
import { queryParams, rangeParams, type Params } from "../api";
import { exemplars, type Dot } from "../exemplars";
import { filled, legend, shared } from "../format";
import { columns, type Mark } from "../graph";
import type { Context } from "../context";
import { Ranged } from "../ranged";
import { bounds, formatDuration, parseDuration, stepFor, type Range, type Zone } from "../time";
import type { Events } from "./annotations";
import { inExpression, inText, single, type Scope } from "./interpolate";
import type { PanelSpec, Target } from "./model";
import type { Values } from "./reduce";
import { overTime } from "./support";

// Line is a series of a panel, on the times of its query.
export interface Line {
  times: number[]; // seconds; none for an instant query
  name: string;
  refId: string;
  labels: Labels;
  values: Values;
  series: Series;
}

// Data is what a panel's queries returned.
export interface Data {
  start: number; // ms; start, end and step are those of the first query over time
  end: number;
  step: number;
  until: number; // ms; the end of the time range, which may lie behind the last step
  lines: Line[];
  tables: { refId: string; series: Series[] }[]; // of queries for tables: one value each, or all values over time
  zone: Zone;
  dots: Dot[]; // exemplars
  marks: Mark[]; // annotations
  warnings: string[];
}

// scrapeInterval is the time between two samples that $__rate_interval assumes, unless a query has
// a least step. Grafana's data source has the same default.
const scrapeInterval = 15_000;

// Queries asks for the data of one panel.
export class Queries {
  private readonly ranged = new Map<string, Ranged>();

  constructor(
    private readonly ctx: Context,
    private readonly spec: PanelSpec,
    private readonly events: Events,
  ) {}

  // ask runs all queries. With refresh, range queries ask only for what is new.
  async ask(scope: Scope, pixels: number, refresh: boolean, signal: AbortSignal): Promise<Data> {
    const b = bounds(this.range(scope), Date.now());
    const [answers, { dots, marks, warnings }] = await Promise.all([Promise.all(this.spec.targets.map((t) => this.one(t, scope, pixels, refresh, signal))), this.beside(scope, pixels, signal)]);
    const first = answers.find((a) => a.step) ?? { ...b, step: 1_000 };
    const data: Data = { start: first.start, end: first.end, step: first.step, until: Math.max(b.end, first.end), lines: [], tables: [], dots, marks, warnings, zone: this.ctx.zone() };
    this.spec.targets.forEach((t, i) => {
      const { series, warnings, ...at } = answers[i]!;
      data.warnings.push(...warnings.filter((w) => !data.warnings.includes(w)));
      if (!at.step || t.table) data.tables.push({ refId: t.refId, series });
      const hidden = shared(series);
      const grid = at.step ? columns(series, { ...at, log: false }) : undefined;
      series.forEach((s, j) => {
        const values = grid ? grid.values[j]! : [s.value ? Number(s.value[1]) : s.histogram ? Number(s.histogram[1].count) : null];
        data.lines.push({ name: nameOf(t, s.metric, hidden, scope), refId: t.refId, labels: s.metric, times: grid?.times ?? [], values, series: s });
      });
    });
    return data;
  }

  // beside asks for what a graph shows beside its lines: the exemplars of the queries that have
  // them, and annotations. A graph without is better than none, so an error is a warning.
  private async beside(scope: Scope, pixels: number, signal: AbortSignal): Promise<Pick<Data, "dots" | "marks" | "warnings">> {
    const out: Pick<Data, "dots" | "marks" | "warnings"> = { dots: [], marks: [], warnings: [] };
    if (this.spec.type !== "timeseries") return out;
    const failed = (what: string) => (e: unknown) => void out.warnings.push(`No ${what}: ${e instanceof Error ? e.message : String(e)}`);
    const span = { ...bounds(this.range(scope), Date.now()), asOf: this.ctx.asOf() };
    const dots = this.spec.targets.filter((t) => t.exemplars && !this.isInstant(t)).map((t) => exemplars(this.ctx.api, inExpression(t.expr, this.timed(t, scope, pixels).inner), span, signal));
    await Promise.all([
      Promise.all(dots).then((all) => (out.dots = all.flatMap((e) => e.dots)), failed("exemplars")),
      this.events(this.spec.id).then((marks) => (out.marks = marks), failed("annotations")),
    ]);
    return out;
  }

  // params are the parameters of all queries, for an estimate.
  params(scope: Scope, pixels: number): Params[] {
    const { start, end } = bounds(this.range(scope), Date.now());
    return this.spec.targets.map((t) => {
      const { step, inner } = this.timed(t, scope, pixels);
      const expr = inExpression(t.expr, inner);
      return this.isInstant(t) ? queryParams(expr, end, this.ctx.asOf()) : rangeParams(expr, start, end, step, this.ctx.asOf());
    });
  }

  // key identifies what the queries ask. A time range that ends now is the same one later.
  key(scope: Scope, pixels: number): string {
    return JSON.stringify([this.ctx.range(), this.spec.targets.map((t) => this.timed(t, scope, pixels).step), this.ctx.asOf()]);
  }

  // expressions lists the queries as they are asked.
  expressions(scope: Scope): string[] {
    return this.spec.targets.map((t) => inExpression(t.expr, this.timed(t, scope, 600).inner));
  }

  // timed is the step of a query, and the variables with those of the time. A least step slows its
  // own query alone.
  private timed(t: Target, scope: Scope, pixels: number): { step: number; inner: Scope } {
    const range = this.range(scope);
    const least = Math.max(duration(this.spec.interval, scope), duration(t.interval, scope)) || scrapeInterval;
    const step = stepFor(range.length, pixels, Math.max(least, range.length / (this.spec.points || Infinity))) * t.factor;
    return { step, inner: new Map([...scope, ...times(range, step, duration(t.interval, scope) || scrapeInterval)]) };
  }

  private isInstant(t: Target): boolean {
    return t.instant || (t.table && !overTime(this.spec.type));
  }

  private range(scope: Scope): Range {
    const range = this.ctx.range();
    const own = (text: string) => parseDuration(inText(text, scope));
    const shift = own(this.spec.timeShift);
    return { ...range, length: own(this.spec.timeFrom) ?? range.length, ...(shift ? { end: (range.end ?? Date.now()) - shift } : {}) };
  }

  // one asks a query. Its step is 0 if it is an instant query.
  private async one(t: Target, scope: Scope, pixels: number, refresh: boolean, signal: AbortSignal): Promise<{ series: Series[]; warnings: string[]; start: number; end: number; step: number }> {
    const range = this.range(scope);
    const { step, inner } = this.timed(t, scope, pixels);
    const expr = inExpression(t.expr, inner);
    if (this.isInstant(t)) {
      const { end } = bounds(range, Date.now());
      const r = await this.ctx.api.get<Answer>("query", queryParams(expr, end, this.ctx.asOf()), signal);
      return { series: vector(r.data), warnings: r.warnings, start: end, end, step: 0 };
    }
    let query = this.ranged.get(t.refId);
    if (!query) this.ranged.set(t.refId, (query = new Ranged(this.ctx)));
    const m = await query.ask(expr, range, step, refresh, signal);
    return { series: m.series, warnings: m.reply.warnings, start: m.start, end: m.end, step };
  }
}

// duration reads a least step, such as 30s or >30s. It is 0 if there is none.
const duration = (step: string, scope: Scope) => parseDuration(inText(step, scope).replace(/^[<>]/, "")) ?? 0;

function vector(a: Answer): Series[] {
  if (a.resultType === "scalar" || a.resultType === "string") return [{ metric: {}, value: a.result as Point }];
  return a.result as Series[];
}

// times are the variables that the time range determines
// (https://grafana.com/docs/grafana/latest/, "Global variables").
export function times(range: Range, step: number, scraped: number): [string, ReturnType<typeof single>][] {
  const rate = Math.max(step + scraped, 4 * scraped);
  const b = bounds(range, Date.now());
  const rounded = (ms: number) => single(formatDuration(Math.ceil(ms / 1000) * 1000));
  return [
    ["__interval", rounded(step)],
    ["__interval_ms", single(String(step))],
    ["__rate_interval", rounded(rate)],
    ["__rate_interval_ms", single(String(rate))],
    ["__range", single(`${Math.round(range.length / 1000)}s`)],
    ["__range_s", single(String(Math.round(range.length / 1000)))],
    ["__range_ms", single(String(range.length))],
    ["__from", single(String(b.start))],
    ["__to", single(String(b.end))],
    // An interval variable that is left to the page.
    ["__auto", rounded(step)],
  ];
}

// nameOf writes a legend: the format of the query, else the labels that differ.
function nameOf(t: Target, labels: Labels, hidden: ReadonlySet<string>, scope: Scope): string {
  const own = t.legend && t.legend !== "__auto" ? filled(inText(t.legend, scope), labels) : "";
  return own.trim() ? own : legend(labels, hidden);
}
