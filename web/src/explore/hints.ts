import type { SyntaxNode } from "@lezer/common";
import { formatDuration, parseDuration } from "../time";
import { rangeFor, type Kind } from "./choose";
import { bare, call, children, edit, grouping, label, parse, select, selector, selectors, type Place, type Selector } from "./syntax";

// Common mistakes in queries, and what to write instead.

export interface Hint {
  text: string;
  mends: Mend[];
}

// Mend is what one click makes of a query: another text, step (ms) or length of the time range
// (ms). Without any of them it explains the query.
export interface Mend {
  name: string;
  expr?: string;
  step?: number;
  length?: number;
}

// Facts are what the hints need to know of the data.
export interface Facts {
  kind(metric: string): Kind;
  interval(selector: string): number | undefined; // the distance of samples in ms, by the selector as select writes it
  step: number; // of the graph in ms
}

// hints lists the mistakes of a query. A text that is not PromQL has none.
export function hints(text: string, facts: Facts): Hint[] {
  const out: Hint[] = [];
  for (const s of selectors(text)) out.push(...rawCounter(text, s, facts), ...shortRange(text, s, facts));
  parse(text)?.cursor().iterate(({ node }) => {
    if (node.name === "AggregateExpr") out.push(...addedQuantiles(text, node, facts));
    if (node.name === "FunctionCall") out.push(...lostBuckets(text, node));
  });
  return out.filter((x, i) => out.findIndex((y) => y.text === x.text) === i);
}

const at = ({ from, to }: Place): Place => ({ from, to });
const part = (text: string, { from, to }: Place) => text.slice(from, to);

// whole is a selector with its range, offset and time.
function whole(node: SyntaxNode): SyntaxNode {
  while (/^(MatrixSelector|OffsetExpr|StepInvariantExpr|ParenExpr)$/.test(node.parent?.name ?? "")) node = node.parent!;
  return node;
}

// A counter's value since the start of its process says little, unless a function reads it.
function rawCounter(text: string, s: Selector, facts: Facts): Hint[] {
  if (!/^(counter|bucket|histogram)$/.test(facts.kind(s.name)) || s.node.parent?.name === "MatrixSelector") return [];
  for (let n = s.node.parent; n; n = n.parent) {
    const name = /^(FunctionCall|AggregateExpr)$/.test(n.name) ? call(n, text).name : "";
    if (n.name === "FunctionCall" && !/^(histogram_quantile|sort|sort_desc)$/.test(name)) return [];
    if (/^(count|group|count_values)$/.test(name) || n.name === "SubqueryExpr") return [];
    if (n.name === "BinaryExpr" && !["Add", "Sub", "Mul", "Div", "Mod"].some((op) => n.getChild(op))) return [];
  }
  const range = rangeFor(facts.interval(select(s.name, s.matchers)), facts.step);
  const { from, to } = whole(s.node);
  const expr = edit(text, [{ from, to: from }, "rate("], [{ from: s.node.to, to: s.node.to }, `[${range}]`], [{ from: to, to }, ")"]);
  return [{ text: `${s.name} counts from the start of its process. Its rate shows what happens now.`, mends: [{ name: `rate(…[${range}])`, expr }] }];
}

const rates = /^(rate|irate|increase|delta|idelta|deriv|predict_linear)$/;

// A function that compares samples needs two of them in its range.
function shortRange(text: string, s: Selector, facts: Facts): Hint[] {
  const matrix = s.node.parent;
  const duration = matrix?.name === "MatrixSelector" ? matrix.getChild("DurationExpr") : undefined;
  const outer = whole(s.node).parent?.parent; // the call around its arguments
  const interval = facts.interval(select(s.name, s.matchers));
  if (!duration || outer?.name !== "FunctionCall" || interval === undefined) return [];
  const { name } = call(outer, text);
  const length = parseDuration(part(text, duration)) ?? Number(part(text, duration)) * 1000;
  if (!rates.test(name) || !(length < 2 * interval)) return [];
  const range = rangeFor(interval, facts.step);
  return [{ text: `${name} needs two samples, and those of ${s.name || "this selector"} are ${formatDuration(interval)} apart: ${part(text, duration)} may hold fewer.`, mends: [{ name: `[${range}]`, expr: edit(text, [at(duration), range]) }] }];
}

// within lists the selectors in a part of the text.
function within(text: string, node: SyntaxNode): Selector[] {
  const out: Selector[] = [];
  node.cursor().iterate((n) => void (n.name === "VectorSelector" && out.push(selector(n.node, text))));
  return out;
}

const ofBuckets = (text: string, node: SyntaxNode) => within(text, node).some((s) => s.name.endsWith("_bucket"));

// The sum and the mean of quantiles are no quantiles.
function addedQuantiles(text: string, node: SyntaxNode, facts: Facts): Hint[] {
  const { name, args } = call(node, text);
  const inner = bare(args[0]);
  if (!/^(sum|avg)$/.test(name) || !inner) return [];
  const done = name === "sum" ? "added up" : "averaged";
  if (inner.name === "FunctionCall" && call(inner, text).name === "histogram_quantile") {
    const [quantile, of] = call(inner, text).args;
    const { without, labels } = grouping(node, text);
    if (!quantile || !of) return [];
    const summed = bare(of)?.name === "AggregateExpr" && call(bare(of)!, text).name === "sum" ? call(bare(of)!, text).args[0]! : of;
    const by = [...labels, ...(ofBuckets(text, of) && !labels.includes("le") ? ["le"] : [])].map(label).join(", ");
    const expr = edit(text, [at(node), `histogram_quantile(${part(text, quantile)}, sum${by && ` by (${by}) `}(${part(text, summed)}))`]);
    return [{ text: `Quantiles cannot be ${done}. Add up the buckets first, then take the quantile.`, mends: without ? [] : [{ name: "Add up the buckets", expr }] }];
  }
  const s = inner.name === "VectorSelector" ? selector(inner, text) : undefined;
  if (!s || (facts.kind(s.name) !== "summary" && !s.matchers.some((m) => m.label === "quantile"))) return [];
  return [{ text: `Quantiles cannot be ${done}. The largest of them is an upper bound.`, mends: [{ name: "max", expr: edit(text, [at(node.firstChild!), "max"]) }] }];
}

// histogram_quantile finds the buckets of a classic histogram by their label le.
function lostBuckets(text: string, node: SyntaxNode): Hint[] {
  const { name, args } = call(node, text);
  const inner = bare(args[1]);
  if (name !== "histogram_quantile" || inner?.name !== "AggregateExpr" || !ofBuckets(text, inner)) return [];
  const { without, labels } = grouping(inner, text);
  if (labels.includes("le") !== without) return [];
  const modifier = inner.getChild("AggregateModifier");
  const kept = without ? labels.filter((l) => l !== "le") : [...labels, "le"];
  const written = `${without ? "without" : "by"} (${kept.map(label).join(", ")})`;
  const head = children(inner)[0]!;
  const expr = edit(text, modifier ? [at(modifier), written] : [{ from: head.to, to: head.to }, ` ${written} `]);
  return [{ text: "histogram_quantile needs the label le of the buckets, which this aggregation drops.", mends: [{ name: written, expr }] }];
}

// pairs lists the pairs of adjacent letters of a text, its ends included.
const pairs = (text: string) => Array.from({ length: text.length + 1 }, (_, i) => `\n${text}\n`.slice(i, i + 2));

// nearest returns the texts that are most like another one: at most n, the best first.
export function nearest(wanted: string, all: readonly string[], n = 3): string[] {
  const parts = pairs(wanted.toLowerCase());
  const scored = all.map((name) => {
    const text = `\n${name.toLowerCase()}\n`;
    return [name, (2 * parts.filter((p) => text.includes(p)).length) / (parts.length + text.length - 1)] as const;
  });
  return scored.filter(([, score]) => score >= 0.45).sort((a, b) => b[1] - a[1]).slice(0, n).map(([name]) => name);
}
