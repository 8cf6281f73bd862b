import { reduce } from "./dashboards/reduce";
import { h, replace } from "./dom";
import { num, table } from "./table";
import { formatTime, type Zone } from "./time";

// The table behind a graph: what the lines are, for those who do not see them, and in figures for
// those who do.

// Values is what a graph shows, as its table lists it.
export interface Values {
  of: string; // what a row is: "Series" or "Bucket"
  times: readonly number[]; // seconds
  zone: Zone;
  rows: readonly Row[];
  point(index: number): void; // moves the crosshair to a time
  table?(): HTMLElement; // of a picture without times
}

export interface Row {
  name: string;
  values: readonly (number | null | undefined)[]; // at the times; null and undefined are no sample
  format(v: number): string;
  shown(): boolean; // the legend does not hide it
}

const summary = ["lastNotNull", "min", "max"];

// legendChanged is the event of a graph's element whose legend hides or shows series.
export const legendChanged = "legendchange";

// ValuesTable lives as long as its panel, so that it stays open, and keeps the keyboard's focus and
// its point in time, when a refresh draws the graph anew. A closed table has no rows.
export class ValuesTable {
  readonly dom: HTMLDetailsElement;
  private values: Values | undefined;
  private graph: HTMLElement | undefined;
  private at: number | undefined; // seconds; undefined: the last time
  private readonly time: HTMLInputElement;
  private readonly written = h("output", { class: "muted" });
  private readonly rows = h("div");
  private of = ""; // the panel or the expression
  private readonly follow = () => this.list();

  constructor() {
    this.time = h("input", { type: "range", min: "0", step: "1", "aria-label": "Time of the column of values", oninput: () => this.move() });
    this.dom = h("details", { class: "values", hidden: true, ontoggle: () => this.list() }, h("summary", {}, "Table of values"), h("div", { class: "row" }, this.time, this.written), this.rows);
  }

  // show lists what a graph shows. name is that of the panel or the expression.
  show(name: string, graph: HTMLElement, values: Values): void {
    this.graph?.removeEventListener(legendChanged, this.follow);
    graph.addEventListener(legendChanged, this.follow);
    [this.graph, this.values] = [graph, values];
    this.dom.hidden = false;
    this.of = name;
    this.list();
  }

  // hide is for panels without a graph.
  hide(): void {
    this.graph?.removeEventListener(legendChanged, this.follow);
    this.graph = this.values = undefined;
    this.dom.hidden = true;
    replace(this.rows);
  }

  private index(): number {
    const { times } = this.values!;
    const i = this.at === undefined ? -1 : times.findIndex((t) => t >= this.at!);
    return i < 0 ? times.length - 1 : i;
  }

  // list writes the rows. The last column has the values at the chosen time.
  private list(): void {
    const v = this.values;
    this.time.hidden = this.written.hidden = v?.table !== undefined;
    if (v?.table && this.dom.open) return replace(this.rows, v.table());
    if (!v || !this.dom.open || !v.times.length) return replace(this.rows);
    const i = this.index();
    this.time.max = String(v.times.length - 1);
    this.time.value = String(i);
    const rows = v.rows.filter((r) => r.shown());
    const hidden = v.rows.length - rows.length;
    const cells = (r: Row) => [r.name, ...[...summary.map((c) => reduce(r.values.map((v) => v ?? null), c)), r.values[i]].map((x) => num(x ?? NaN, x === null || x === undefined ? "no sample" : r.format(x)))];
    const caption = `${rows.length.toLocaleString("en")} rows${hidden ? `, ${hidden.toLocaleString("en")} hidden by the legend` : ""}`;
    replace(this.rows, table(`Values of ${this.of}`, [v.of, "Last", "Minimum", "Maximum", this.name(i)], rows.map(cells), caption));
  }

  // move follows the slider.
  private move(): void {
    const v = this.values;
    if (!v) return;
    const i = Number(this.time.value);
    this.at = i === v.times.length - 1 ? undefined : v.times[i];
    this.list();
    v.point(i);
  }

  private name(i: number): string {
    const text = formatTime(this.values!.times[i]! * 1000, this.values!.zone);
    this.time.setAttribute("aria-valuetext", text);
    this.written.textContent = text;
    return text;
  }
}
