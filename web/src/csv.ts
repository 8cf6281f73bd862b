import type { Series } from "./answer";
import { eachPoint, number, written } from "./compact";
import { download, fileName } from "./dom";
import { pause } from "./pause";

// Named is a series with its name in a legend.
export interface Named {
  name: string;
  series: Series;
}

// seriesRows are series as rows: a column of times (RFC 3339, ms), and one for each series. A
// histogram is its count. Series of the same name have a number.
export function* seriesRows(all: readonly Named[]): Generator<string[]> {
  const count = new Map<string, number>();
  const names = all.map(({ name }) => {
    const n = (count.get(name) ?? 0) + 1;
    count.set(name, n);
    return n > 1 ? `${name} (${n})` : name;
  });
  const rows = new Map<number, (number | undefined)[]>();
  all.forEach(({ series: s }, i) => {
    const put = (t: number, v: number) => {
      let row = rows.get(t);
      if (!row) rows.set(t, (row = new Array<number | undefined>(all.length).fill(undefined)));
      row[i] = v;
    };
    eachPoint(s, put);
    if (s.value) put(s.value[0], number(s.value[1]));
    for (const [t, x] of [...(s.histograms ?? []), ...(s.histogram ? [s.histogram] : [])]) put(t, number(x.count));
  });
  yield ["time", ...names];
  for (const [t, row] of [...rows].sort(([a], [b]) => a - b)) yield [new Date(Math.round(t * 1000)).toISOString(), ...row.map((v) => (v === undefined ? "" : written(v)))];
}

// saveCsv saves rows as a CSV file. It leaves the browser time to react.
export async function saveCsv(name: string, rows: Iterable<readonly string[]>): Promise<void> {
  const parts = [""];
  for (const r of rows) {
    parts[parts.length - 1] += r.map(field).join(",") + "\r\n";
    if (parts.at(-1)!.length < 1 << 20) continue;
    parts.push("");
    await pause();
  }
  download(fileName(name, "csv"), new Blob(parts, { type: "text/csv" }));
}

// field quotes a field (RFC 4180). A leading apostrophe keeps spreadsheets from reading a label
// value as a formula.
function field(text: string): string {
  const safe = /^[=@\t\r]/.test(text) || /^[-+](?![\d.]|Inf)/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
