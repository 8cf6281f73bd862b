// What the HTTP API answers to queries.

export type Labels = Record<string, string>;
export type Point = [seconds: number, value: string];

export interface Histogram {
  count: string;
  sum: string;
  buckets?: [boundaries: number, lower: string, upper: string, count: string][];
}

export interface Series {
  metric: Labels;
  value?: Point;
  values?: Point[];
  histogram?: [seconds: number, h: Histogram];
  histograms?: [seconds: number, h: Histogram][];
}

export interface Answer {
  resultType: "matrix" | "vector" | "scalar" | "string";
  result: Series[] | Point;
  stats?: { timings?: { evalTotalTime?: number }; samples?: { totalQueryableSamples?: number }; storage?: Record<string, unknown> };
}

export interface Reply<T> {
  data: T;
  warnings: string[];
  infos: string[];
  took: number; // ms
}
