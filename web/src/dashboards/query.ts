import type { Answer, Labels, Point, Series } from "../answer";
import { queryParams, rangeParams } from "../api";
import { legend, shared } from "../format";
import { columns } from "../graph";
import type { Context } from "../context";
import { Ranged } from "../ranged";
import { bounds, formatDuration, parseDuration, stepFor, type Range } from "../time";
import { estimate, together, type Estimate } from "../weigh";
import { inExpression, inText, single, type Scope } from "./interpolate";
import type { PanelSpec, Target } from "./model";
import type { Values } from "./reduce";

// Line is a series of a panel, on the panel's times.
export interface Line {
  name: string;
  refId: string;
  labels: Labels;
  values: Values;
  series: Series;
}

// Data is what a panel's queries returned.
export interface Data {
  times: number[]; // seconds
  start: number; // ms
  end: number;
  step: number;
  lines: Line[];
  tables: { refId: string; series: Series[] }[]; // of queries for tables
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
  ) {}

  // ask runs all queries. With refresh, range queries ask only for what is new.
  async ask(scope: Scope, pixels: number, refresh: boolean, signal: AbortSignal): Promise<Data> {
    const { range, step, inner } = this.timed(scope, pixels);
    const b = bounds(range, Date.now());
    const data: Data = { times: [], start: Math.floor(b.start / step) * step, end: Math.floor(b.end / step) * step, step, lines: [], tables: [], warnings: [] };
    const answers = await Promise.all(this.spec.targets.map((t) => this.one(t, inner, range, step, refresh, signal)));
    // A refresh at the edge of a step may ask some queries for one step more.
    for (const a of answers) if (a.end !== undefined) [data.start, data.end] = [Math.max(data.start, a.start!), Math.max(data.end, a.end)];
    this.spec.targets.forEach((t, i) => {
      const { series, warnings, instant } = answers[i]!;
      data.warnings.push(...warnings.filter((w) => !data.warnings.includes(w)));
      if (t.table || instant) data.tables.push({ refId: t.refId, series });
      const hidden = shared(series);
      const grid = instant ? undefined : columns(series, { ...data, log: false });
      if (grid) data.times = grid.times;
      series.forEach((s, j) => {
        const values = grid ? grid.values[j]! : [s.value ? Number(s.value[1]) : s.histogram ? Number(s.histogram[1].count) : null];
        data.lines.push({ name: nameOf(t, s.metric, hidden, scope), refId: t.refId, labels: s.metric, values, series: s });
      });
    });
    return data;
  }

  // estimate is what all queries together would read.
  async estimate(scope: Scope, pixels: number, signal: AbortSignal): Promise<Estimate | undefined> {
    const { range, step, inner } = this.timed(scope, pixels);
    const { start, end } = bounds(range, Date.now());
    const asOf = this.ctx.asOf();
    const params = (t: Target) => {
      const expr = inExpression(t.expr, inner);
      return isInstant(t) ? queryParams(expr, end, asOf) : rangeParams(expr, start, end, step, asOf);
    };
    return together(await Promise.all(this.spec.targets.map((t) => estimate(this.ctx.api, params(t), signal))));
  }

  // key identifies what the queries ask. A time range that ends now is the same one later.
  key(scope: Scope, pixels: number): string {
    const { range, step } = this.timed(scope, pixels);
    return JSON.stringify([range, step, this.ctx.asOf()]);
  }

  // expressions lists the queries as they are asked.
  expressions(scope: Scope): string[] {
    const { inner } = this.timed(scope, 600);
    return this.spec.targets.map((t) => inExpression(t.expr, inner));
  }

  // timed is the time range of the queries, their step, and the variables with those of the time.
  private timed(scope: Scope, pixels: number): { range: Range; step: number; inner: Scope } {
    const range = this.range(scope);
    const step = stepFor(range.length, pixels, this.leastStep(scope));
    return { range, step, inner: new Map([...scope, ...times(range, step, this.scraped(scope))]) };
  }

  private range(scope: Scope): Range {
    const own = parseDuration(inText(this.spec.timeFrom, scope));
    return own ? { ...this.ctx.range(), length: own } : this.ctx.range();
  }

  // scraped is the time between two samples, as far as the panel has it.
  private scraped(scope: Scope): number {
    return Math.max(0, ...this.spec.targets.map((t) => duration(t.interval, scope))) || scrapeInterval;
  }

  private leastStep(scope: Scope): number {
    return Math.max(duration(this.spec.interval, scope), ...this.spec.targets.map((t) => duration(t.interval, scope))) || scrapeInterval;
  }

  private async one(t: Target, scope: Scope, range: Range, step: number, refresh: boolean, signal: AbortSignal): Promise<{ series: Series[]; warnings: string[]; instant: boolean; start?: number; end?: number }> {
    const expr = inExpression(t.expr, scope);
    if (isInstant(t)) {
      const { end } = bounds(range, Date.now());
      const r = await this.ctx.api.get<Answer>("query", queryParams(expr, end, this.ctx.asOf()), signal);
      return { series: vector(r.data), warnings: r.warnings, instant: true };
    }
    let query = this.ranged.get(t.refId);
    if (!query) this.ranged.set(t.refId, (query = new Ranged(this.ctx)));
    const m = await query.ask(expr, range, step, refresh, signal);
    return { series: m.series, warnings: m.reply.warnings, instant: false, start: m.start, end: m.end };
  }
}

const isInstant = (t: Target) => t.instant || t.table;

// duration reads a least step, such as 30s or >30s. It is 0 if there is none.
const duration = (step: string, scope: Scope) => parseDuration(inText(step, scope).replace(/^[<>]/, "")) ?? 0;

function vector(a: Answer): Series[] {
  if (a.resultType === "scalar" || a.resultType === "string") return [{ metric: {}, value: a.result as Point }];
  return a.result as Series[];
}

// times are the variables that the time range determines
// (https://grafana.com/docs/grafana/latest/, "Global variables").
function times(range: Range, step: number, scraped: number): [string, ReturnType<typeof single>][] {
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
  const own = t.legend && t.legend !== "__auto" ? inText(t.legend, scope).replace(/\{\{\s*([^{}]+?)\s*\}\}/g, (_, l: string) => labels[l] ?? "") : "";
  return own.trim() ? own : legend(labels, hidden);
}
