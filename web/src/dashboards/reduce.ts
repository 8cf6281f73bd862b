// Calculations over the values of a series
// (https://grafana.com/docs/grafana/latest/, "Calculation types").

export type Values = readonly (number | null)[];

const present = (v: Values) => v.filter((x): x is number => x !== null && !Number.isNaN(x));
const sum = (v: readonly number[]) => v.reduce((a, b) => a + b, 0);

function variance(v: readonly number[]): number {
  const mean = sum(v) / v.length;
  return sum(v.map((x) => (x - mean) ** 2)) / v.length;
}

const functions: Record<string, (p: number[], all: Values) => number | null | undefined> = {
  lastNotNull: (p) => p.at(-1),
  last: (_, all) => all.at(-1),
  firstNotNull: (p) => p[0],
  first: (_, all) => all[0],
  min: (p) => p.reduce((a, b) => Math.min(a, b)),
  max: (p) => p.reduce((a, b) => Math.max(a, b)),
  mean: (p) => sum(p) / p.length,
  median: (p) => [...p].sort((a, b) => a - b)[p.length >> 1],
  sum: (p) => sum(p),
  count: (p) => p.length,
  range: (p) => Math.max(...p) - Math.min(...p),
  diff: (p) => p.at(-1)! - p[0]!,
  diffperc: (p) => (p.at(-1)! - p[0]!) / p[0]!,
  delta: (p) => sum(p.map((x, i) => (i === 0 ? 0 : x >= p[i - 1]! ? x - p[i - 1]! : x))),
  stdDev: (p) => Math.sqrt(variance(p)),
  variance,
  distinctCount: (p) => new Set(p).size,
  allIsZero: (p) => Number(p.length > 0 && p.every((v) => v === 0)),
  allIsNull: (p) => Number(!p.length),
};

// flags are calculations that are true (1) or false (0).
export const flags = ["allIsZero", "allIsNull"];

export const isCalculation = (name: string) => Object.hasOwn(functions, name);

// titles are the names of calculations in legends.
export const title = (name: string): string => ({ lastNotNull: "last", firstNotNull: "first" })[name] ?? name;

// column is the name of a calculation's column in Grafana.
export const column = (name: string): string =>
  ({ lastNotNull: "Last *", firstNotNull: "First *", sum: "Total", diff: "Difference", diffperc: "Difference percent", stdDev: "StdDev", distinctCount: "Distinct Count" })[name] ?? name[0]!.toUpperCase() + name.slice(1);

// reduce returns null if there are no values, or the calculation is none.
export function reduce(values: Values, calculation: string): number | null {
  const p = present(values);
  if (!p.length && !/^(count|last|first|allIs.*)$/.test(calculation)) return null;
  return (isCalculation(calculation) ? functions[calculation]!(p, values) : undefined) ?? null;
}

// onTimes are the values of a line at the times of several lines, undefined where it has none.
export function onTimes(l: { times: readonly number[]; values: Values }, times: readonly number[]): readonly (number | null | undefined)[] {
  if (l.times.length === times.length) return l.values;
  const at = new Map(l.times.map((t, i) => [t, l.values[i]]));
  return times.map((t) => at.get(t));
}
