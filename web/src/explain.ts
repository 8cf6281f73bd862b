import { rangeParams, type Api, type Span } from "./api";
import { alarm, copyButton, cut, h, replace } from "./dom";
import type { Hint } from "./explore/hints";
import { count, formatValue, price } from "./format";
import { num, table } from "./table";
import { formatDuration } from "./time";

// Types of the answer of /api/v1/explain, version 3 (docs/querying.md).
interface Share {
  considered: number;
  read: number;
}
// Estimate is what a query takes before it runs, as /api/v1/query_cost has it, too.
export interface Estimate {
  seriesTouched: number;
  samplesRead: number;
  bytes: number;
  requests: number;
  functionMilliseconds: number;
  dollars: number;
}
interface Operation {
  op: string;
  series: number;
  samples?: number;
  folded?: boolean; // its input is added up while it is read
  children?: Operation[];
}
interface Operator {
  name: string;
  detail?: string;
  rows: number;
  seconds: number;
  children?: Operator[];
}
interface Analysis {
  seconds: number;
  rows: number;
  peakBytes: number;
  leaves?: { op: string; seconds: number; samples: number; rows: number }[];
  operator?: Operator;
}
interface Statement {
  driver: "direct" | "duckdb";
  sql?: string; // none: the driver is direct
  files?: { key: string; rowGroups: Share; bytes: Share }[];
  analysis?: Analysis;
}
interface Explanation {
  equivalent_sql?: string; // of the whole query
  engine: string; // with a selector for each pushed subtree
  pushed?: { name: string; expr: string; tree: Operation; statements?: Statement[] }[];
  kept?: string[];
  selectors?: { selector: string; series: number; samples: number; segments: number; blocks: number; refused?: string }[];
  cost: { lists: number; gets: number; bytes: number; dollars: number }; // of the requests
  estimate: Estimate;
}

const percent = (part: number, of: number) => `${Math.round((100 * part) / of)} %`;

// explanation asks how a range query is evaluated and shows the plan. With analyze, the server also
// runs the statements and reports their times. start, end and step are in ms.
export async function explanation(api: Api, into: HTMLElement, expr: string, start: number, end: number, step: number, asOf: number | undefined, analyze: boolean): Promise<void> {
  replace(into, h("p", { class: "muted", role: "status" }, "Planning…"));
  into.setAttribute("aria-busy", "true");
  try {
    const { data } = await api.get<Explanation>("explain", { ...rangeParams(expr, start, end, step, asOf), analyze: analyze ? "true" : undefined });
    replace(into, ...plan(data, end - start, step));
  } catch (e) {
    replace(into, alarm(e));
  }
  into.setAttribute("aria-busy", "false");
}

function plan(x: Explanation, length: number, step: number): HTMLElement[] {
  const { cost, estimate: e } = x;
  const pushed = x.pushed ?? [];
  const analyses = pushed.flatMap((p) => p.statements ?? []).flatMap((s) => s.analysis ?? []);
  const took = sum(analyses, (a) => a.seconds);
  const paid = e.dollars ? ` ${price(e.dollars)}: ${price(cost.dollars)} for the requests, ${price(e.dollars - cost.dollars)} for ${formatValue(e.functionMilliseconds / 1000, "seconds")} of a function.` : "";
  const out: HTMLElement[] = [
    h("h3", {}, analyses.length ? "Actual cost" : "Estimated cost"),
    h("p", {}, `About ${count(e.samplesRead)} samples of ${count(e.seriesTouched)} series; ${formatValue(cost.bytes, "bytes")} of samples, cached or not; ${count(cost.lists + cost.gets)} requests to the store (${count(cost.lists)} LIST, ${count(cost.gets)} GET).${paid}`),
    ...advice(x, length, step).slice(0, 2).map(({ text }) => h("p", { class: "advice" }, ...cut(text))),
  ];
  if (took) {
    const reads = analyses.flatMap((a) => a.leaves ?? []).map((l): [string, number, number?] => [`Read and evaluate ${expression(l.op)}`, l.seconds, l.samples]);
    const all = [...reads, ["Operators over these values", Math.max(0, took - sum(reads, ([, t]) => t)), undefined] as const].sort((a, b) => b[1] - a[1]);
    out.push(h("h3", {}, `Where the time went: ${formatValue(took, "seconds")}`), table("Time", ["What", "Time", "Share", "Samples"], all.map(([what, t, n]) => [what, num(t, formatValue(t, "seconds")), num(t, percent(t, took)), n === undefined ? num(NaN, "") : num(n)])));
  }
  const samples = sum(x.selectors ?? [], (s) => s.samples) || 1;
  out.push(h("h3", {}, "Selectors"), table("Selectors", ["Selector", "Series", "Samples", "Share", "Segments", "Blocks", "Refused"], (x.selectors ?? []).map((s) => [s.selector, num(s.series), num(s.samples), num(s.samples, percent(s.samples, samples)), num(s.segments), num(s.blocks), s.refused ?? ""])));
  const left = x.engine.replace(pushedSelector, (_, name: string) => part(name));
  const whole = left === part("0");
  out.push(h("h3", {}, "How it is evaluated"), whole ? h("p", {}, "Promlake evaluates the whole query while it reads the samples.") : h("p", {}, "PromQL's engine evaluates ", h("code", {}, ...cut(left)), "."));
  if (x.kept?.length) out.push(h("details", {}, h("summary", {}, "Why the engine evaluates these parts"), h("ul", {}, ...x.kept.map((k) => h("li", {}, h("code", {}, ...cut(k)))))));
  for (const p of pushed) out.push(...(whole ? [] : [h("h3", {}, `Promlake evaluates ${part(p.name)}`), h("pre", {}, ...cut(p.expr))]), tree(p.tree), ...(p.statements ?? []).map(statement));
  if (x.equivalent_sql) out.push(sql("The query as SQL, with the same rows", x.equivalent_sql));
  return out;
}

const pushedSelector = /\{__promlake_pushed__="(\d+)"\}/g;
const part = (name: string) => `part ${Number(name) + 1}`;
const sum = <T>(all: readonly T[], of: (x: T) => number) => all.reduce((n, x) => n + of(x), 0);
const leaves = (n: Operation): Operation[] => (n.children?.length ? n.children.flatMap(leaves) : [n]);

// cheaper asks what would make a range query cheaper.
export async function cheaper(api: Api, expr: string, { start, end, asOf }: Span, step: number, signal: AbortSignal): Promise<Hint[]> {
  const { data } = await api.get<Explanation>("explain", { ...rangeParams(expr, start, end, step, asOf), statements: "false" }, signal);
  return advice(data, end - start, step);
}

// advice is what would make a query cheaper, the best first. A larger step or a narrower range
// takes one click.
function advice(x: Explanation, length: number, step: number): Hint[] {
  const { seriesTouched: series, samplesRead: samples } = x.estimate;
  if (samples < 100_000) return [];
  const out: Hint[] = [];
  const add = (text: string, ...mends: Hint["mends"]) => out.push({ text, mends });
  for (const p of x.pushed ?? []) {
    const read = sum(leaves(p.tree), (n) => (n.samples ? n.series : 0));
    if (p.tree.series && read >= 100 && read >= 10 * p.tree.series) add(`A recording rule of ${p.expr} would make ${count(p.tree.series)} series of ${count(read)}: a query of its result reads ${percent(p.tree.series, read)} of the series.`);
  }
  const most = [...(x.selectors ?? [])].sort((a, b) => b.samples - a.samples)[0];
  if (!out.length && most && most.series >= 100) add(`${most.selector} has ${count(most.series)} series: a matcher that selects half of them saves about half of its samples.`);
  const steps = Math.floor(length / step) + 1;
  if (steps > 1_000) add(`The step of ${formatDuration(step)} makes ${count(steps)} values of each series: one of ${formatDuration(4 * step)} makes a quarter of them.`, { name: `a step of ${formatDuration(4 * step)}`, step: 4 * step });
  const window = Math.max(0, ...(x.pushed ?? []).flatMap((p) => leaves(p.tree)).map((n) => Number(/ range=(\d+)/.exec(n.op)?.[1] ?? 0)));
  if (window > length) add(`The window of ${formatDuration(window)} is longer than the time range: a shorter window reads less.`);
  else add(`Half of the time range reads about half of the ${count(samples)} samples of ${count(series)} series.`, { name: `a time range of ${formatDuration(length / 2)}`, length: length / 2 });
  return out;
}

// expression writes an operation of a plan as PromQL has it.
export function expression(op: string): string {
  const m = /^(\w+)(?: \{(.*)\})? start=\S+ step=\d+ n=\d+ range=(\d+) shift=(-?\d+)((?: [a-z]\w*=\S+)*)(?: over start=\S+ step=(\d+) n=\d+)?$/s.exec(op);
  if (!m) return op;
  const [, name, matchers, range, shift, params, inner] = m;
  const metric = /^__name__="(\w+)",?/.exec(matchers ?? "");
  const rest = (matchers ?? "").slice(metric?.[0].length ?? 0);
  const of = matchers === undefined ? "…" : `${metric?.[1] ?? ""}${rest || !metric ? `{${rest}}` : ""}`;
  const window = name === "instant" ? "" : `[${formatDuration(Number(range))}${inner ? `:${formatDuration(Number(inner))}` : ""}]`;
  const offset = Number(shift) ? ` offset ${Number(shift) < 0 ? "-" : ""}${formatDuration(Math.abs(Number(shift)))}` : "";
  const given = (params ?? "").split(" ").filter(Boolean).map((p) => `${p.split("=")[1]}, `).join("");
  return name === "instant" ? of + offset : `${name}(${given}${of}${window}${offset})`;
}

function tree(n: Operation): HTMLElement {
  return h("ul", { class: "tree" }, h("li", {}, h("code", {}, ...cut(expression(n.op))), ` ${count(n.series)} series${n.samples ? `, about ${count(n.samples)} samples` : ""}${n.folded ? ", added up as they are read" : ""}`, ...(n.children ?? []).map(tree)));
}

function operators(n: Operator): HTMLElement {
  return h("ul", { class: "tree" }, h("li", {}, h("code", {}, n.name), ` ${formatValue(n.seconds, "seconds")}, ${count(n.rows)} rows`, n.detail ? h("span", { class: "muted" }, ...cut(` ${n.detail}`)) : null, ...(n.children ?? []).map(operators)));
}

function statement(s: Statement): HTMLElement {
  const files = (s.files ?? []).map((f) => [f.key, num(f.rowGroups.read, `${count(f.rowGroups.read)} of ${count(f.rowGroups.considered)}`), num(f.bytes.read, `${formatValue(f.bytes.read, "bytes")} of ${formatValue(f.bytes.considered, "bytes")}`)]);
  const a = s.analysis;
  return h(
    "div",
    { class: "statement" },
    a ? h("p", {}, `${formatValue(a.seconds, "seconds")}, ${count(a.rows)} rows, ${formatValue(a.peakBytes, "bytes")} of memory`) : null,
    a?.operator ? h("details", {}, h("summary", {}, "DuckDB's operators"), operators(a.operator)) : null,
    h("details", {}, h("summary", {}, `Objects (${files.length})`), table("Objects", ["Object", "Row groups read", "Bytes read"], files)),
    s.sql ? sql("The statement that runs", s.sql) : h("p", { class: "muted" }, "Its values are few: they are computed without a statement."),
  );
}

function sql(title: string, text: string): HTMLElement {
  const statement = h("pre", {}, ...cut(text));
  return h("details", {}, h("summary", {}, title), copyButton(statement), statement);
}
