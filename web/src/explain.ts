import { rangeParams, type Api } from "./api";
import { alarm, copyButton, cut, h, replace } from "./dom";
import { formatValue } from "./format";
import { num, table } from "./table";

// Types of the answer of /api/v1/explain, version 2 (docs/querying.md).
interface Share {
  considered: number;
  read: number;
}
export interface Cost {
  lists: number;
  gets: number;
  bytes: number;
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
  cost: Cost;
  analysis?: Analysis;
}
export interface Selector {
  selector: string;
  series: number;
  samples: number; // about
  segments: number;
  blocks: number;
  refused?: string;
}
interface Explanation {
  version: number;
  query: string;
  equivalent_sql?: string; // of the whole query
  engine: string;
  pushed?: { name: string; expr: string; tree: Operation; statements?: Statement[] }[];
  kept?: string[];
  selectors?: Selector[];
  cost: Cost;
}

const count = (n: number) => n.toLocaleString("en");
// written is an amount of dollars.
export const written = (n: number) => (n === 0 ? "$0" : `$${n < 0.01 ? n.toExponential(1) : n.toFixed(2)}`);

// explanation asks how a range query is evaluated and shows the plan. With analyze, the server also
// runs the statements and reports their times.
export async function explanation(api: Api, into: HTMLElement, expr: string, start: number, end: number, step: number, asOf: number | undefined, analyze: boolean): Promise<void> {
  replace(into, h("p", { class: "muted", role: "status" }, "Planning…"));
  into.setAttribute("aria-busy", "true");
  try {
    const r = await api.get<Explanation>("explain", { ...rangeParams(expr, start, end, step, asOf), analyze: analyze ? "true" : undefined });
    replace(into, ...plan(r.data));
  } catch (e) {
    replace(into, alarm(e));
  }
  into.setAttribute("aria-busy", "false");
}

function plan(x: Explanation): HTMLElement[] {
  const out: HTMLElement[] = [
    h("h3", {}, analyzed(x) ? "Actual cost" : "Estimated cost"),
    h("p", {}, `${count(x.cost.lists + x.cost.gets)} requests to the store (${count(x.cost.lists)} LIST, ${count(x.cost.gets)} GET), ${written(x.cost.dollars)}; ${formatValue(x.cost.bytes, "bytes")} of samples, cached or not.`),
    h("h3", {}, "Evaluated by the engine"),
    h("pre", {}, ...cut(x.engine)),
  ];
  if (x.kept?.length) out.push(h("details", {}, h("summary", {}, "Why these parts are not pushed to DuckDB"), h("ul", {}, ...x.kept.map((k) => h("li", {}, h("code", {}, ...cut(k)))))));
  out.push(h("h3", {}, "Selectors"), table("Selectors", ["Selector", "Series", "Samples", "Segments", "Blocks", "Refused"], (x.selectors ?? []).map((s) => [s.selector, num(s.series), num(s.samples), num(s.segments), num(s.blocks), s.refused ?? ""])));
  for (const p of x.pushed ?? []) {
    out.push(h("h3", {}, `Pushed subtree ${p.name}`), h("pre", {}, ...cut(p.expr)), tree(p.tree));
    for (const s of p.statements ?? []) out.push(statement(s));
  }
  if (x.equivalent_sql) out.push(sql("The query as SQL, with the same rows", x.equivalent_sql));
  return out;
}

const analyzed = (x: Explanation) => (x.pushed ?? []).some((p) => (p.statements ?? []).some((s) => s.analysis));

function tree(n: Operation): HTMLElement {
  return h("ul", { class: "tree" }, h("li", {}, h("code", {}, ...cut(n.op)), ` ${count(n.series)} series${n.samples ? `, about ${count(n.samples)} samples` : ""}${n.folded ? ", folded" : ""}`, ...(n.children ?? []).map(tree)));
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
    a?.leaves?.length ? table("Range functions", ["Range function", "Time", "Samples", "Rows"], a.leaves.map((l) => [l.op, num(l.seconds, formatValue(l.seconds, "seconds")), num(l.samples), num(l.rows)])) : null,
    a?.operator ? h("details", {}, h("summary", {}, "DuckDB's operators"), operators(a.operator)) : null,
    h("details", { open: true }, h("summary", {}, `Objects (${files.length})`), table("Objects", ["Object", "Row groups read", "Bytes read"], files)),
    s.sql ? sql("The statement that runs", s.sql) : h("p", { class: "muted" }, "Its values are few: they are computed without a statement."),
  );
}

function sql(title: string, text: string): HTMLElement {
  const statement = h("pre", {}, ...cut(text));
  return h("details", {}, h("summary", {}, title), copyButton(statement), statement);
}
