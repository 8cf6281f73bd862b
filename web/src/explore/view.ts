import { spanParams, type Span } from "../api";
import { h, replace } from "../dom";
import { spanOf, type Context } from "../context";
import { dashboardOf } from "../dashboards/explored";
import type { Saved } from "../dashboards/sources";
import { Panel } from "../panel";
import { emptyPanel, encode, type State } from "../state";
import { stepFor } from "../time";
import { Browser } from "./browser";
import { divider, graphOf, needs, rangeFor } from "./choose";
import { interval } from "./facts";
import type { Metric } from "./metrics";
import { saveDialog } from "./saving";
import { start } from "./start";
import { select } from "./syntax";

// ExploreView is the list of metrics, or how to send some, and panels with queries.
export class ExploreView {
  readonly dom: HTMLElement;
  private panels: Panel[] = [];
  private readonly top = h("div");
  private readonly holder = h("div");
  private readonly browser: Browser;
  private told = ""; // "data", or for whom the start is shown
  private chosen = { state: emptyPanel(), expr: "" }; // what a click on a metric made last

  // save writes the panels into the address.
  constructor(
    private readonly ctx: Context,
    private readonly state: () => State,
    private readonly save: () => void,
    private readonly explain: (expr: string) => void,
    private readonly sql: (statement: string) => void,
    saved: () => Saved | undefined, // the dashboard that was edited or saved last
    done: (s: Saved) => void,
  ) {
    this.browser = new Browser(ctx, (m) => void this.pick(m));
    this.browser.dom.open = !state().panels.some((g) => g.expr);
    this.dom = h("div", { class: "explore" }, this.top, h("div", {}, this.holder, h("button", { type: "button", onclick: () => this.add().focus() }, "Add panel"), " ", h("button", { type: "button", onclick: () => saveDialog(ctx.api, (title) => dashboardOf(title, state()), saved(), done) }, "Save as dashboard…")));
    this.build();
  }

  // setEmpty says whether the tenant has no data at all. What the user sees changes only with that.
  setEmpty(empty: boolean): void {
    const { api } = this.ctx;
    const told = empty ? JSON.stringify([api.tenant, api.headers()]) : "data";
    if (told === this.told) return;
    const waited = this.told !== "";
    this.told = told;
    if (empty) return replace(this.top, start(api));
    replace(this.top, this.browser.dom);
    if (waited) this.refresh();
    else this.browser.refresh();
  }

  refresh(automatic = false): void {
    this.browser.refresh(automatic);
    for (const p of this.panels) void p.refresh(automatic);
  }

  focus(): void {
    this.panels[0]?.focus();
  }

  destroy(): void {
    this.browser.destroy();
    for (const p of this.panels) p.destroy();
  }

  private panel(g: State["panels"][number]): Panel {
    return new Panel(this.ctx, g, this.save, () => this.close(g), this.explain, this.sql, () => encode({ ...this.state(), panels: [g] }));
  }

  private build(): void {
    for (const p of this.panels) p.destroy();
    this.panels = this.state().panels.map((g) => this.panel(g));
    replace(this.holder, ...this.panels.map((p) => p.dom));
  }

  private close(g: State["panels"][number]): void {
    const s = this.state();
    s.panels = s.panels.filter((p) => p !== g);
    if (!s.panels.length) s.panels = [emptyPanel()];
    this.save();
    this.build();
    for (const p of this.panels) void p.refresh();
  }

  private add(): Panel {
    const g = emptyPanel();
    this.state().panels.push(g);
    this.save();
    const p = this.panel(g);
    this.panels.push(p);
    this.holder.appendChild(p.dom);
    return p;
  }

  // pick shows the graph of a metric: in the place of the metric that was picked before, else in an
  // empty panel, else in a new one.
  private async pick(m: Metric): Promise<void> {
    const span = spanOf(this.ctx);
    const of = select(m.name);
    const step = stepFor(span.end - span.start, this.holder.clientWidth);
    const length = /^(counter|bucket|histogram)$/.test(m.kind) ? await interval(this.ctx.api, of, span).catch(() => undefined) : undefined;
    const by = needs(m.kind, m.series ?? 0) ? await this.divider(of, span) : undefined;
    const expr = graphOf(m.name, m.kind, m.series ?? 0, rangeFor(length, step), by);
    const { state, expr: before } = this.chosen;
    const panel = this.panels.find((p) => p.state === state && p.state.expr === before) ?? this.panels.find((p) => !p.state.expr) ?? this.add();
    this.chosen = { state: panel.state, expr };
    panel.show(expr);
    panel.dom.scrollIntoView({ block: "nearest" });
  }

  // divider is the label by which the graph of a metric with many series is averaged.
  private async divider(of: string, span: Span): Promise<string | undefined> {
    try {
      const params = { "match[]": of, ...spanParams(span), topN: "100" };
      const { data } = await this.ctx.api.get<{ labelValueCountByLabelName?: { name: string; value: number }[] }>("status/tsdb", params);
      return divider(data.labelValueCountByLabelName ?? []);
    } catch {
      return undefined; // the average of all is a graph too
    }
  }
}
