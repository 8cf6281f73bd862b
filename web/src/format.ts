// Numbers as people read them.

export type Unit = "number" | "bytes" | "bytes/s" | "seconds" | "percent" | "time";

const decimal = ["", "k", "M", "G", "T", "P", "E"];
const binary = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

function scaled(v: number, base: number, prefixes: string[]): string {
  const a = Math.abs(v);
  let i = 0;
  let divisor = 1;
  while (a / divisor >= base && i < prefixes.length - 1) {
    divisor *= base;
    i++;
  }
  const n = v / divisor;
  return `${Number(n.toPrecision(Math.abs(n) >= 1000 ? 5 : 4))}${prefixes[i] ? " " + prefixes[i] : ""}`;
}

// formatValue writes a sample value with four significant digits.
export function formatValue(v: number, unit: Unit = "number"): string {
  if (Number.isNaN(v)) return "NaN";
  if (!Number.isFinite(v)) return v > 0 ? "+Inf" : "-Inf";
  switch (unit) {
    case "bytes":
    case "bytes/s": {
      const text = scaled(v, 1024, binary);
      return `${text}${text.includes(" ") ? "" : " "}${unit === "bytes" ? "B" : "B/s"}`;
    }
    case "percent":
      return `${Number((v * 100).toPrecision(4))} %`;
    case "seconds":
      if (v !== 0 && Math.abs(v) < 0.001) return `${Number((v * 1e6).toPrecision(4))} µs`;
      if (v !== 0 && Math.abs(v) < 1) return `${Number((v * 1e3).toPrecision(4))} ms`;
      if (Math.abs(v) < 600) return `${Number(v.toPrecision(4))} s`;
      return Math.abs(v) < 172_800 ? `${Number((v / 3600).toPrecision(4))} h` : `${Number((v / 86_400).toPrecision(4))} d`;
    default:
      if (v !== 0 && Math.abs(v) < 1e-3) return v.toExponential(3);
      return scaled(v, 1000, decimal);
  }
}

// unitOf guesses the unit of an expression's values from the metric name's suffix and the outermost
// function (https://prometheus.io/docs/practices/naming/).
export function unitOf(expr: string): Unit {
  const rate = /\b(i?rate|deriv)\s*\(/.test(expr);
  if (/[/*]/.test(expr.replace(/"[^"]*"/g, ""))) return "number";
  if (/\bcount|group|absent/.test(expr)) return "number";
  if (/_bytes(_total)?\b/.test(expr)) return rate ? "bytes/s" : "bytes";
  if (/_timestamp_seconds\b|_time_seconds\b/.test(expr)) return "number";
  if (/_seconds\b/.test(expr) && (!rate || expr.includes("histogram_"))) return "seconds";
  return "number";
}

// legend writes a label set as PromQL writes it. It shows only what tells the series of one answer
// apart.
export function legend(labels: Record<string, string>, hidden: ReadonlySet<string> = new Set()): string {
  const name = hidden.has("__name__") ? "" : (labels["__name__"] ?? "");
  const pairs = Object.keys(labels)
    .filter((l) => l !== "__name__" && !hidden.has(l))
    .sort()
    .map((l) => `${/^[a-zA-Z_]\w*$/.test(l) ? l : JSON.stringify(l)}=${JSON.stringify(labels[l])}`);
  return pairs.length ? `${name}{${pairs.join(", ")}}` : name || "{}";
}

// filled writes the values of labels into a text such as "{{job}} of {{instance}}".
export const filled = (text: string, labels: Record<string, string>) => text.replace(/\{\{\s*([^{}]+?)\s*\}\}/g, (_, l: string) => labels[l] ?? "");

// shared returns the labels that have the same value in all of two or more series.
export function shared(series: readonly { metric: Record<string, string> }[]): Set<string> {
  const out = new Set<string>();
  const first = series[0];
  if (!first || series.length < 2) return out;
  for (const [l, v] of Object.entries(first.metric)) if (series.every((s) => s.metric[l] === v)) out.add(l);
  return out;
}

// count writes a whole number.
export const count = (n: number) => n.toLocaleString("en");

// price writes dollars that may be far less than a cent.
export const price = (n: number) => (n === 0 ? "$0" : n < 0.01 ? `$${Number(n.toPrecision(2))}` : `$${n.toFixed(2)}`);

// dollars writes a price a month.
export const dollars = (n: number) => (n === 0 ? "$0" : n < 0.01 ? "< $0.01" : `$${n.toFixed(2)}`);
