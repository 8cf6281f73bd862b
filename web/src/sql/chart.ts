import { formatValue } from "../format";
import { drawn, lines, type Graph, type Lines } from "../graph";
import type { Zone } from "../time";
import { isNumber, isTime, plain, type Column, type Rows } from "./rows";

// cells bounds the memory of a chart: its lines times its times.
const cells = 5_000_000;

// Shape is how columns become lines.
interface Shape {
  time: number;
  values: number[];
  names: number[]; // the other columns; their values name the lines
}

// shapeOf uses the first column of times and all numeric columns. A result without them is no
// chart.
export function shapeOf(columns: readonly Column[]): Shape | undefined {
  const time = columns.findIndex(isTime);
  const indexes = columns.map((_, i) => i).filter((i) => i !== time);
  const values = indexes.filter((i) => isNumber(columns[i]!));
  if (time < 0 || !values.length) return undefined;
  return { time, values, names: indexes.filter((i) => !values.includes(i) && !isTime(columns[i]!)) };
}

// number reads a value. NaN and infinities are gaps, as in graphs of PromQL.
function number(json: string): number | null {
  const v = json === "null" ? NaN : Number(plain(json));
  return Number.isFinite(v) ? v : null;
}

// instant reads a time in seconds. A time without a zone is UTC.
function instant(json: string): number {
  const text = plain(json);
  if (text === null) return NaN;
  return Date.parse(/Z$|[-+]\d\d:\d\d$/.test(text) || !text.includes("T") ? text : text + "Z") / 1000;
}

export interface Drawn {
  lines: Lines;
  repeated: number; // rows with the time and the names of another row
  untimed: number; // rows without a time
}

// arrange makes a line of each value column and each set of names. It leaves the browser time to
// react, and throws if the lines are too much to draw.
export async function arrange(rows: Rows, shape: Shape): Promise<Drawn> {
  const points = new Map<string, Map<number, number | null>>();
  const times = new Set<number>();
  let repeated = 0;
  let untimed = 0;
  for (let i = 0; i < rows.count; i++) {
    if (i % 10_000 === 9_999) await new Promise((next) => setTimeout(next));
    const row = rows.row(i);
    const at = instant(row[shape.time]!);
    if (Number.isNaN(at)) {
      untimed++;
      continue;
    }
    times.add(at);
    const own = shape.names.map((j) => plain(row[j]!) ?? "NULL");
    let again = false;
    for (const j of shape.values) {
      const name = [...own, ...(shape.values.length > 1 || !own.length ? [rows.columns[j]!.name] : [])].join(" · ");
      let line = points.get(name);
      if (!line) points.set(name, (line = new Map()));
      again ||= line.has(at);
      line.set(at, number(row[j]!));
    }
    if (again) repeated++;
  }
  const all = [...points];
  const last = ([, p]: (typeof all)[number]) => [...p.values()].at(-1) ?? 0;
  const kept = all.length > drawn ? all.sort((a, b) => last(b) - last(a)).slice(0, drawn) : all;
  if (kept.length * times.size > cells) {
    throw new Error(`The chart would have ${kept.length} lines of up to ${times.size.toLocaleString("en")} times. Aggregate in the statement, for example: time_bucket(INTERVAL 5 MINUTE, ts), avg(value) … GROUP BY ALL.`);
  }
  const sorted = [...times].sort((a, b) => a - b);
  const values = kept.map(([, p]) => sorted.map((t) => p.get(t)));
  const names = kept.map(([name]) => name.split(" · ").filter((part) => part !== "NULL").join(" · ") || name);
  return { lines: { times: sorted, values, names, titles: names, total: all.length }, repeated, untimed };
}

// chart draws what arrange made.
export function chart(d: Drawn, zone: Zone): Graph {
  return lines(d.lines, { format: (v) => formatValue(v), stacked: false, log: false, zone, height: 360 });
}
