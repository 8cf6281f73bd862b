import { call, children, commented, grouping, label, parse, select, selector, type Matcher } from "./syntax";

// The queries that the builder makes: a selector, one function of a range, one aggregation, and a
// quantile of a histogram. All but the selector may be absent.

export interface Query {
  metric: string;
  matchers: Matcher[];
  func: string; // of a range
  range: string; // PromQL's notation of a duration
  aggregation: string;
  by: string[];
  quantile: string; // a number: the argument of histogram_quantile
}

export const functions = ["rate", "increase", "irate", "delta", "deriv", "changes", "resets", "avg_over_time", "min_over_time", "max_over_time", "sum_over_time", "count_over_time", "last_over_time", "stddev_over_time"] as const;
export const aggregations = ["sum", "avg", "min", "max", "count", "stddev", "group"] as const;

const has = (all: readonly string[], name: string) => all.includes(name);

// read returns the query of a text. It is undefined if the text is not PromQL, or something that
// the builder does not make.
export function read(text: string): Query | undefined {
  const q: Query = { metric: "", matchers: [], func: "", range: "", aggregation: "", by: [], quantile: "" };
  let node = parse(text);
  if (node === null) return q;
  if (node?.name === "FunctionCall" && call(node, text).name === "histogram_quantile") {
    const { args } = call(node, text);
    if (args.length !== 2 || args[0]!.name !== "NumberDurationLiteral") return undefined;
    q.quantile = text.slice(args[0]!.from, args[0]!.to);
    node = args[1];
  }
  if (node?.name === "AggregateExpr") {
    const { name, args } = call(node, text);
    const { without, labels } = grouping(node, text);
    if (!has(aggregations, name) || args.length !== 1 || without) return undefined;
    Object.assign(q, { aggregation: name, by: labels });
    node = args[0];
  }
  if (node?.name === "FunctionCall") {
    const { name, args } = call(node, text);
    const [vector, duration, ...more] = args.length === 1 && args[0]!.name === "MatrixSelector" ? children(args[0]) : [];
    if (!has(functions, name) || !vector || !duration || more.length || duration.firstChild?.name !== "NumberDurationLiteralInDurationContext") return undefined;
    Object.assign(q, { func: name, range: text.slice(duration.from, duration.to) });
    node = vector;
  }
  if (node?.name !== "VectorSelector" || commented(text)) return undefined;
  const { name, matchers } = selector(node, text);
  return { ...q, metric: name, matchers: matchers.map(({ label, op, value }) => ({ label, op, value })) };
}

// write returns the text of a query. A matcher without a label is not finished, and left out.
export function write(q: Query): string {
  let out = select(q.metric, q.matchers.filter((m) => m.label));
  if (!out) return "";
  if (q.func) out = `${q.func}(${out}[${q.range}])`;
  if (q.aggregation) out = q.by.length ? `${q.aggregation} by (${q.by.map(label).join(", ")}) (${out})` : `${q.aggregation}(${out})`;
  return q.quantile ? `histogram_quantile(${q.quantile}, ${out})` : out;
}
