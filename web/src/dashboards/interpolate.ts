// Replaces variables in texts of a dashboard
// (https://grafana.com/docs/grafana/latest/visualizations/dashboards/variables/variable-syntax/).

// Value is what is chosen for a variable.
export interface Value {
  values: string[];
  texts: string[];
  several: boolean; // it may have several values, so expressions compare it with =~
  raw: boolean; // its one value is a pattern that the author wrote
}

export type Scope = ReadonlyMap<string, Value>;

export const single = (value: string): Value => ({ values: [value], texts: [value], several: false, raw: true });

const pattern = /\$(\w+)|\$\{(\w+)(?:\.[^:}]*)?(?::([^}]*))?\}|\[\[(\w+)(?::([^\]]*))?\]\]/g;

// names lists the variables that a text mentions.
export function names(text: string): string[] {
  return [...text.matchAll(pattern)].map((m) => m[1] ?? m[2] ?? m[4]!);
}

// inText replaces variables in a title or a legend. Unknown ones stay.
export function inText(text: string, scope: Scope): string {
  return substitute(text, scope, (v) => v.texts.join(" + "));
}

// inExpression replaces variables in PromQL: the values of one that may have several become an
// alternation of a regular expression.
export function inExpression(text: string, scope: Scope): string {
  return substitute(text, scope, (v) => {
    if (v.raw) return v.values.join("|");
    if (!v.several) return quoted(v.values[0] ?? "");
    const parts = v.values.map((one) => quoted(escapedRegex(one)));
    return parts.length === 1 ? parts[0]! : `(${parts.join("|")})`;
  });
}

function substitute(text: string, scope: Scope, plain: (v: Value) => string): string {
  return text.replace(pattern, (whole, a?: string, b?: string, format?: string, c?: string, other?: string) => {
    const v = scope.get((a ?? b ?? c)!);
    if (!v) return whole;
    const as = format ?? other;
    return as ? formatted(v, as) : plain(v);
  });
}

const escapedRegex = (s: string) => s.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
// quoted escapes a value for a PromQL string in quotes of either kind.
const quoted = (s: string) => s.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/'/g, "\\'").replace(/\n/g, "\\n");

function formatted(v: Value, format: string): string {
  const all = v.values;
  switch (format) {
    case "regex":
      if (v.raw) return all.join("|");
      return all.length === 1 ? quoted(escapedRegex(all[0]!)) : `(${all.map((x) => quoted(escapedRegex(x))).join("|")})`;
    case "pipe":
      return all.join("|");
    case "glob":
      return all.length === 1 ? all[0]! : `{${all.join(",")}}`;
    case "json":
      return JSON.stringify(all.length === 1 && !v.several ? all[0] : all);
    case "doublequote":
      return all.map((x) => JSON.stringify(x)).join(",");
    case "singlequote":
      return all.map((x) => `'${x.replace(/'/g, "\\'")}'`).join(",");
    case "text":
      return v.texts.join(" + ");
    case "percentencode":
      return encodeURIComponent(all.length === 1 ? all[0]! : `{${all.join(",")}}`);
    default: // csv, raw and formats that dates have
      return all.join(",");
  }
}
