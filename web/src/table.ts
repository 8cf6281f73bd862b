import type { Answer, Labels, Point, Series } from "./answer";
import { h } from "./dom";
import { formatValue, legend, type Unit } from "./format";

const shownRows = 1_000;

// table shows an instant answer with a row per series.
export function table(answer: Answer, unit: Unit): HTMLElement {
  if (answer.resultType === "scalar" || answer.resultType === "string") {
    const [, v] = answer.result as Point;
    return h("div", { class: "scroll", tabIndex: 0 }, h("table", {}, h("tbody", {}, h("tr", {}, h("th", { scope: "row" }, answer.resultType), h("td", { class: "number" }, v)))));
  }
  const series = answer.result as Series[];
  if (!series.length) return h("p", { class: "muted" }, "No series.");
  const body = h("tbody");
  for (const s of series.slice(0, shownRows)) {
    const v = s.value ? formatValue(Number(s.value[1]), unit) : s.histogram ? `count ${s.histogram[1].count}, sum ${s.histogram[1].sum}` : (s.values ?? []).map(([t, x]) => `${x} @${t}`).join("\n");
    body.appendChild(h("tr", {}, h("th", { scope: "row" }, labelCell(s.metric)), h("td", { class: "number", title: s.value?.[1] }, v)));
  }
  return h(
    "div",
    { class: "scroll", tabIndex: 0 },
    h("table", {}, h("caption", {}, series.length > shownRows ? `The first ${shownRows} of ${series.length} series` : `${series.length} series`), h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Series"), h("th", { scope: "col", class: "number" }, "Value"))), body),
  );
}

function labelCell(metric: Labels): HTMLElement {
  return h("code", {}, legend(metric));
}

// rows lists an answer's samples as CSV: a column per label, then time (RFC 3339) and value.
export function csv(answer: Answer): string {
  const series = Array.isArray(answer.result) && answer.resultType !== "scalar" && answer.resultType !== "string" ? (answer.result as Series[]) : [{ metric: {}, value: answer.result as Point }];
  const names = [...new Set(series.flatMap((s) => Object.keys(s.metric)))].sort();
  const lines = [[...names, "time", "value"]];
  for (const s of series) {
    for (const [t, v] of s.values ?? (s.value ? [s.value] : [])) lines.push([...names.map((n) => (s.metric as Labels)[n] ?? ""), new Date(t * 1000).toISOString(), v]);
  }
  return lines.map((l) => l.map(csvField).join(",")).join("\r\n") + "\r\n";
}

// csvField quotes a field (RFC 4180). A leading apostrophe keeps spreadsheets from reading a label
// value as a formula.
export function csvField(text: string): string {
  const safe = /^[=@\t\r]/.test(text) || /^[-+](?![\d.]|Inf)/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
