import type { SyntaxNode } from "@lezer/common";
import { parser } from "@prometheus-io/lezer-promql";
import { parseDuration } from "./time";

// Compared is a comparison of an expression with a number, as alerting rules have it.
export interface Compared {
  expr: string; // the expression without the comparison
  bound: number;
}

const comparisons = new Set(["Eql", "Neq", "Gtr", "Gte", "Lss", "Lte"]);
const arithmetic: Record<string, (a: number, b: number) => number> = { Add: (a, b) => a + b, Sub: (a, b) => a - b, Mul: (a, b) => a * b, Div: (a, b) => a / b };

// compared reads a comparison. It returns undefined if an expression is none, or has the modifier
// bool, whose result is no longer the compared value.
export function compared(query: string): Compared | undefined {
  const text = (n: SyntaxNode) => query.slice(n.from, n.to);
  const inner = (n: SyntaxNode | null): SyntaxNode | null => (n && /^(ParenExpr|LineComment)$/.test(n.name) ? inner(n.name === "ParenExpr" ? n.firstChild : n.nextSibling) : n);
  // constant is the value of an expression of numbers, NaN if it is none.
  const constant = (n: SyntaxNode | null): number => {
    const e = inner(n);
    const [first, last] = [e?.firstChild, e?.lastChild];
    switch (e?.name) {
      case "NumberDurationLiteral": {
        const length = parseDuration(text(e));
        return length === undefined ? Number(text(e)) : length / 1000;
      }
      case "UnaryExpr":
        return text(e)[0] === "-" ? -constant(last!) : constant(last!);
      case "BinaryExpr":
        return first?.nextSibling?.nextSibling?.from === last!.from ? (arithmetic[first.nextSibling.name]?.(constant(first), constant(last!)) ?? NaN) : NaN;
    }
    return NaN;
  };
  const tree = parser.parse(query);
  const top = inner(tree.topNode.firstChild);
  const [left, right] = [top?.firstChild, top?.lastChild];
  if (top?.name !== "BinaryExpr" || !comparisons.has(left!.nextSibling!.name) || top.getChild("BoolModifier")) return undefined;
  for (const [side, other] of [[left!, right!], [right!, left!]] as const) {
    const bound = constant(other);
    if (Number.isFinite(bound)) return { expr: text(side), bound };
  }
  return undefined;
}
