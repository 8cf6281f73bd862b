import type { SyntaxNode } from "@lezer/common";
import { parser } from "@prometheus-io/lezer-promql";
import type { Labels } from "../answer";

// PromQL as the editor's grammar reads it, with the positions in the text.

// matchOps are the operators of matchers.
export const matchOps = ["=", "!=", "=~", "!~"] as const;
export type MatchOp = (typeof matchOps)[number];

export interface Matcher {
  label: string;
  op: MatchOp;
  value: string;
}

// fits reports whether labels have what a matcher wants. A regular expression that JavaScript does
// not have fits nothing.
export function fits({ label, op, value }: Matcher, labels: Labels): boolean {
  const own = labels[label] ?? "";
  const [, flags = "", source] = /^(?:\(\?([im]+)\))?(.*)$/s.exec(value)!;
  try {
    return (op.endsWith("~") ? new RegExp(`^(?:${source})$`, `s${flags}`).test(own) : own === value) !== op.startsWith("!");
  } catch {
    return false;
  }
}

// Place is a part of the text, from one position to before another.
export interface Place {
  from: number;
  to: number;
}

// Selector is a selector of series. Only text has a place in the query.
export interface Selector {
  name: string; // "" selects by matchers only
  matchers: (Matcher & { place: Place })[]; // the place is that of the value
  node: SyntaxNode; // without its range and offset
  namePlace?: Place; // of the name, quotes included
}

// parse returns the expression of a text. It is undefined if the text is not PromQL, and null if
// the text is empty.
export function parse(text: string): SyntaxNode | null | undefined {
  const tree = parser.parse(text);
  let broken = false;
  tree.iterate({ enter: (n) => void (broken ||= n.type.isError) });
  if (!text.trim()) return null;
  const [expr, ...more] = children(tree.topNode);
  return broken || more.length ? undefined : expr;
}

// commented reports whether a text has a comment.
export function commented(text: string): boolean {
  let found = false;
  parser.parse(text).iterate({ enter: (n) => void (found ||= n.name === "LineComment") });
  return found;
}

// children lists what a node consists of.
export function children(node: SyntaxNode | null | undefined): SyntaxNode[] {
  const out: SyntaxNode[] = [];
  for (let c = node?.firstChild; c; c = c.nextSibling) out.push(c);
  return out;
}

// call splits an aggregation or a function call: its name, and its arguments.
export function call(node: SyntaxNode, text: string): { name: string; args: SyntaxNode[] } {
  const head = node.firstChild!;
  return { name: text.slice(head.from, head.to).toLowerCase(), args: children(node.getChild("FunctionCallBody")) };
}

// grouping returns the labels of an aggregation and whether they are kept or dropped.
export function grouping(node: SyntaxNode, text: string): { without: boolean; labels: string[] } {
  const modifier = node.getChild("AggregateModifier");
  const names = children(modifier?.getChild("GroupingLabels"));
  return { without: Boolean(modifier?.getChild("Without")), labels: names.map((n) => plain(text.slice(n.from, n.to))) };
}

// bare is a node without the parentheses around it.
export function bare(node: SyntaxNode | undefined): SyntaxNode | undefined {
  while (node?.name === "ParenExpr") node = node.firstChild ?? undefined;
  return node;
}

// selector reads a node of the type VectorSelector.
export function selector(node: SyntaxNode, text: string): Selector {
  const part = (n: SyntaxNode) => text.slice(n.from, n.to);
  const out: Selector = { name: "", matchers: [], node };
  const named = node.getChild("Identifier") ?? node.getChild("LabelMatchers")?.getChild("QuotedLabelName");
  if (named) Object.assign(out, { name: plain(part(named)), namePlace: { from: named.from, to: named.to } });
  for (const m of children(node.getChild("LabelMatchers"))) {
    const [label, op, value] = children(m);
    if (label && op && value) out.matchers.push({ label: plain(part(label)), op: part(op) as MatchOp, value: plain(part(value)), place: { from: value.from, to: value.to } });
  }
  return out;
}

// matchersIn reads matchers in PromQL's notation, with or without braces. There are none if the
// text is something else.
export function matchersIn(text: string): Matcher[] {
  const source = `{${text.trim().replace(/^\{|\}$/g, "")}}`;
  const node = parse(source);
  return node?.name === "VectorSelector" ? selector(node, source).matchers : [];
}

// selectors lists all selectors of a text. There are none if the text is not PromQL.
export function selectors(text: string): Selector[] {
  const out: Selector[] = [];
  parse(text)?.cursor().iterate((n) => void (n.name === "VectorSelector" && out.push(selector(n.node, text))));
  return out;
}

const escapes: Record<string, string> = { a: "\x07", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" };

// plain is the text of a string literal, or of a name without quotes.
function plain(literal: string): string {
  if (literal.startsWith("`")) return literal.slice(1, -1);
  if (!/^["']/.test(literal)) return literal;
  return literal.slice(1, -1).replace(/\\(?:x([\da-f]{2})|u([\da-f]{4})|U([\da-f]{8})|([0-7]{3})|(.))/gi, (_, x?: string, u?: string, long?: string, octal?: string, c?: string) => {
    const hex = x ?? u ?? long;
    return hex ? String.fromCodePoint(parseInt(hex, 16)) : octal ? String.fromCharCode(parseInt(octal, 8)) : (escapes[c!] ?? c!);
  });
}

export const isLabel = (name: string) => /^[a-zA-Z_]\w*$/.test(name);

// label writes a label name.
export const label = (name: string) => (isLabel(name) ? name : JSON.stringify(name));

// select writes a selector. A name that PromQL cannot write otherwise is in quotes.
export function select(name: string, matchers: readonly Matcher[] = []): string {
  const simple = /^[a-zA-Z_:][\w:]*$/.test(name);
  const inner = [...(name && !simple ? [JSON.stringify(name)] : []), ...matchers.map((m) => `${label(m.label)}${m.op}${JSON.stringify(m.value)}`)];
  return `${simple ? name : ""}${inner.length ? `{${inner.join(", ")}}` : ""}`;
}

// edit replaces places of a text, which do not overlap. Of two at one position, the first given
// comes first.
export function edit(text: string, ...changes: readonly (readonly [Place, string])[]): string {
  let out = "";
  let done = 0;
  for (const [{ from, to }, by] of [...changes].sort((a, b) => a[0].from - b[0].from)) {
    out += text.slice(done, from) + by;
    done = to;
  }
  return out + text.slice(done);
}
