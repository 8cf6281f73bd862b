import { asOfParams } from "../api";
import { saveCsv } from "../csv";
import { alarm, choice, cut, h, replace } from "../dom";
import type { Editor } from "../editor";
import type { Graph } from "../graph";
import type { Context } from "../context";
import { bounds } from "../time";
import { arrange, chart, shapeOf } from "./chart";
import { sqlEditor } from "./editor";
import { examples } from "./examples";
import { Grid } from "./grid";
import { plain, Rows } from "./rows";

// kept bounds the text of a result that the page keeps, in UTF-16 units.
const kept = 256 << 20;

// What the address keeps of the view.
export interface SqlState {
  sql: string;
  chart: boolean;
}

// SqlView runs a statement and shows its rows in a grid or a chart. Rows are shown as they arrive.
export class SqlView {
  readonly dom: HTMLElement;
  private readonly input: Editor;
  private readonly status = h("div", { class: "status", role: "status" });
  private readonly body = h("div", { class: "body" });
  private readonly result = h("div", { class: "result", "aria-busy": "false" }, this.status, this.body);
  private readonly stop = h("button", { type: "button", disabled: true, onclick: () => this.running?.abort() }, "Cancel");
  private readonly save = h("button", { type: "button", disabled: true, onclick: () => this.rows && void saveCsv("promlake", this.listed(this.rows)) }, "Save as CSV");
  private running: AbortController | undefined;
  private rows: Rows | undefined;
  private grid: Grid | undefined;
  private drawing: Graph | undefined;
  private gone = false;

  constructor(
    private readonly ctx: Context,
    private readonly state: () => SqlState,
    private readonly change: (c: Partial<SqlState>) => void,
  ) {
    this.input = sqlEditor(ctx, state().sql, () => this.submit());
    const tabs = choice("Show as", [["table", "Table"], ["chart", "Chart"]], state().chart ? "chart" : "table", (v) => {
      this.change({ chart: v === "chart" });
      this.show();
    });
    this.dom = h(
      "section",
      { class: "panel", "aria-label": "SQL" },
      h("div", { class: "row" }, this.input.dom, h("button", { type: "button", class: "primary", title: "Ctrl+Enter", onclick: () => this.submit() }, "Run"), this.stop),
      h("div", { class: "row tools" }, tabs, this.save, ...examples.map(([title, statement]) => h("button", { type: "button", class: "quiet", title: statement, onclick: () => this.example(statement) }, title))),
      this.result,
    );
  }

  private example(statement: string): void {
    this.input.set(statement);
    this.submit();
    this.input.focus();
  }

  private submit(): void {
    this.change({ sql: this.input.text() });
    void this.run();
  }

  // refresh runs the statement of the address again. A statement may read a lot, so the automatic
  // refresh leaves it out.
  refresh(automatic = false): void {
    if (!automatic) void this.run();
  }

  focus(): void {
    this.input.focus();
  }

  private async run(): Promise<void> {
    this.running?.abort();
    const run = (this.running = new AbortController());
    const statement = this.state().sql;
    this.clear();
    if (!statement.trim()) return this.idle(run);
    this.result.setAttribute("aria-busy", "true");
    this.stop.disabled = false;
    const rows = (this.rows = new Rows());
    const began = performance.now();
    let told = 0;
    const took = () => `${Math.round(performance.now() - began).toLocaleString("en")} ms`;
    let full = false;
    try {
      await this.ctx.api.stream("sql", { query: statement, params: this.params(statement), format: "json", ...asOfParams(this.ctx.asOf()) }, run.signal, (part) => {
        if (this.running !== run) return;
        rows.feed(part);
        if (rows.count && !this.grid) this.show();
        if (performance.now() - told > 200) {
          this.grid?.grow();
          this.tell(rows, took(), "so far");
          told = performance.now();
        }
        if (rows.size <= kept) return;
        full = true;
        run.abort();
      });
      if (this.running !== run) return;
      const warnings = rows.end();
      this.idle(run);
      this.show();
      this.tell(rows, took(), "", warnings);
    } catch (e) {
      if (this.running !== run) return;
      this.idle(run);
      if (full) {
        this.show();
        this.tell(rows, took(), "", [`The page keeps at most ${kept >> 20} MiB of a result: these are its first rows. Add a LIMIT, aggregate, or read the whole result from /api/v1/sql with format=csv.`]);
      } else if (run.signal.aborted) {
        this.show();
        this.tell(rows, took(), "until it was cancelled");
      } else {
        replace(this.status, alarm(e));
        if (rows.count) this.show();
      }
    }
  }

  // params are the times of $start and $end, where the statement has them outside of texts and
  // comments.
  private params(statement: string): string | undefined {
    const code = statement.replace(/'(?:[^']|'')*'|"(?:[^"]|"")*"|--.*|\/\*[^]*?\*\//g, " ");
    const b = bounds(this.ctx.range(), Date.now());
    const out: Record<string, string> = {};
    for (const name of ["start", "end"] as const) if (new RegExp(`\\$${name}\\b`).test(code)) out[name] = new Date(b[name]).toISOString();
    return Object.keys(out).length ? JSON.stringify(out) : undefined;
  }

  private tell(rows: Rows, took: string, state: string, warnings: string[] = []): void {
    const parts = [`${rows.count.toLocaleString("en")} ${rows.count === 1 ? "row" : "rows"} ${state}`.trim(), `${rows.columns.length} columns`, took];
    replace(this.status, h("p", { class: "muted cost" }, parts.join(" · ")), ...warnings.map((w) => h("p", { class: "warn" }, ...cut(w))));
  }

  private idle(run: AbortController): void {
    if (this.running === run) this.running = undefined;
    this.result.setAttribute("aria-busy", "false");
    this.stop.disabled = true;
    this.save.disabled = !this.rows?.count;
  }

  // show puts what has arrived into the view: the grid, and the chart when all rows are there.
  private show(): void {
    const rows = this.rows;
    if (!rows?.columns.length) return;
    this.drop();
    if (this.state().chart && !this.running) return void this.draw(rows);
    this.grid = new Grid(rows);
    replace(this.body, this.grid.dom);
    this.grid.grow();
    if (!this.running) this.grid.finished();
  }

  private async draw(rows: Rows): Promise<void> {
    const only = (text: string) => replace(this.body, h("p", { class: "muted" }, text));
    const shape = shapeOf(rows.columns);
    if (!shape) return only("A chart needs a column of times and a numeric column.");
    if (!rows.count) return only("No rows.");
    only("Drawing…");
    try {
      const d = await arrange(rows, shape);
      if (this.rows !== rows || !this.state().chart || this.gone) return; // something else is shown
      const notes = [
        d.repeated && `${d.repeated.toLocaleString("en")} rows have the same time and names as another row. The chart shows the last of them: select the columns that differ, such as labels, or aggregate.`,
        d.untimed && `${d.untimed.toLocaleString("en")} rows without a time are not in the chart.`,
      ].filter((n) => typeof n === "string");
      this.drop();
      this.drawing = chart(d, this.ctx.zone());
      replace(this.body, ...notes.map((n) => h("p", { class: "warn" }, n)), this.drawing.dom);
    } catch (e) {
      if (this.rows === rows) replace(this.body, alarm(e));
    }
  }

  // listed are the rows of the page.
  private *listed(rows: Rows): Generator<string[]> {
    yield rows.columns.map((c) => c.name);
    for (let i = 0; i < rows.count; i++) yield rows.row(i).map((v) => plain(v) ?? "");
  }

  private drop(): void {
    this.grid?.destroy();
    this.drawing?.destroy();
    this.grid = undefined;
    this.drawing = undefined;
  }

  private clear(): void {
    this.drop();
    this.rows = undefined;
    this.save.disabled = true;
    replace(this.status);
    replace(this.body);
  }

  destroy(): void {
    this.gone = true;
    this.running?.abort();
    this.running = undefined;
    this.drop();
    this.input.destroy();
  }
}
