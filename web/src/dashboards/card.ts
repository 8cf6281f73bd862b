import { alarm, cut, h, replace } from "../dom";
import type { Graph } from "../graph";
import type { Context } from "../context";
import { alertList } from "./alertlist";
import type { Events } from "./annotations";
import { draw, seriesOf, words, type Picture } from "./draw";
import { inText, type Scope } from "./interpolate";
import { link } from "../monitoring/listing";
import { asks, type Link, type PanelSpec, type Place } from "./model";
import { Queries, type Data } from "./query";
import { seriesRows } from "../csv";
import { Latest } from "../latest";
import { shareMenu } from "../share";
import { tableRows } from "../table";
import { ValuesTable } from "../values";
import { Gate } from "../weigh";

// anchors are links to other servers.
export const anchors = (links: readonly Link[], scope: Scope) => links.map((l) => h("div", {}, link(inText(l.url, scope), inText(l.title, scope))));

// Card is a panel of a dashboard. It asks only while it is in sight, so that a long dashboard costs
// what the user sees.
export class Card {
  readonly dom: HTMLElement;
  private readonly queries: Queries;
  private readonly status = h("div", { class: "status", role: "status" });
  private readonly body = h("div", { class: "card-body" });
  private readonly values = new ValuesTable();
  private readonly title: string;
  private readonly latest: Latest;
  private drawing: Graph | undefined;
  private data: Data | undefined;
  private stale: "no" | "refresh" | "all" = "all"; // what it must ask when it comes into sight
  private visible = false;
  private readonly gate: Gate;

  constructor(
    private readonly ctx: Context,
    private readonly spec: PanelSpec,
    private readonly scope: Scope,
    place: Place,
    events: Events,
    private readonly explore: (expr: string) => void,
    private readonly explain: (expr: string) => void,
    link?: () => string, // shows the panel alone
  ) {
    this.queries = new Queries(ctx, spec, events);
    this.gate = new Gate(ctx.api, this.status);
    this.title = inText(spec.title, scope);
    const asked = this.asked();
    const about = h("div", { class: "muted about", hidden: true }, h("div", {}, ...cut(inText(spec.description, scope))), ...anchors(spec.links, scope));
    this.dom = h(
      "section",
      { class: `panel card card-${asked ? spec.type : "plain"}`, "aria-label": this.title || spec.type, "aria-busy": "false" },
      h(
        "div",
        { class: "row card-head" },
        h("h2", { title: [this.title, ...spec.notes].join("\n") }, ...cut(this.title)),
        (spec.description || spec.links.length > 0) && h("button", { type: "button", class: "quiet", "aria-label": `About ${this.title}`, "aria-expanded": "false", onclick: (e: Event) => (e.currentTarget as HTMLElement).setAttribute("aria-expanded", String((about.hidden = !about.hidden) === false)) }, "i"),
        spec.targets.length > 0 && h("button", { type: "button", class: "quiet", "aria-label": `Explore ${this.title}`, onclick: () => this.explore(this.queries.expressions(scope)[0]!) }, "Explore"),
        asked && shareMenu(`Save or share ${this.title}`, "⋯", { title: () => this.title || spec.type, shown: this.body, rows: () => this.rows(), ...(link ? { link } : {}) }, (e) => replace(this.status, alarm(e))),
      ),
      about,
      this.status,
      this.body,
      this.values.dom,
      this.notes(),
    );
    this.latest = new Latest(this.dom);
    Object.assign(this.dom.style, { gridColumn: `${place.x + 1} / span ${place.w}`, gridRow: `${place.y + 1} / span ${place.h}` });
    if (!asked) {
      replace(this.body, ...this.unasked());
      this.stale = "no";
    }
  }

  // asked reports whether the panel asks the server for what it shows.
  private asked(): boolean {
    return this.spec.type === "alertlist" || (asks(this.spec.type) && this.spec.targets.length > 0);
  }

  // unasked is the content of a panel without queries that the page draws.
  private unasked(): (HTMLElement | null)[] {
    if (this.spec.type === "text") return [words(this.spec, this.scope)];
    if (asks(this.spec.type)) return [h("p", { class: "muted empty" }, "No PromQL query")];
    const queries = this.queries.expressions(this.scope).map((e) => h("li", {}, h("button", { type: "button", class: "quiet expr", "aria-label": e, onclick: () => this.explore(e) }, ...cut(e))));
    return [h("p", { class: "warn" }, ...cut(`Panels of type ${this.spec.type} are not supported.`)), queries.length ? h("p", {}, "Its queries in Explore:") : null, h("ul", {}, ...queries)];
  }

  private notes(): HTMLElement | null {
    const all = this.spec.notes;
    return all.length ? h("details", { class: "warn card-notes" }, h("summary", {}, `Not as in Grafana (${all.length})`), h("ul", {}, ...all.map((n) => h("li", {}, ...cut(n))))) : null;
  }

  // rows are those of a table or of bars, or the series of other panels.
  private rows(): Iterable<readonly string[]> | undefined {
    const table = tableRows(this.drawing?.values.table?.() ?? this.body.firstElementChild);
    return table ?? (this.data && seriesRows(seriesOf(this.spec, this.data, this.ctx, this.scope)));
  }

  // see reports that the panel came into sight, or left it.
  see(visible: boolean): void {
    this.visible = visible;
    if (visible && this.stale !== "no") void this.ask(this.stale === "refresh");
  }

  // refresh asks again, at once or when the panel comes into sight.
  refresh(automatic: boolean): void {
    if (!this.asked()) return;
    if (this.visible) void this.ask(automatic);
    else if (this.stale !== "all") this.stale = automatic ? "refresh" : "all";
  }

  private async ask(refresh: boolean): Promise<void> {
    // Refreshes that come faster than answers must not cancel each other for good.
    if (refresh && (this.latest.busy || this.gate.waits)) return;
    this.stale = "no";
    const work = async (signal: AbortSignal) => {
      const pixels = this.dom.clientWidth || 600;
      const explain = () => this.explain(this.queries.expressions(this.scope)[0]!);
      if (!refresh && (await this.gate.closed(this.queries.key(this.scope, pixels), this.queries.params(this.scope, pixels), signal, () => void this.ask(false), explain))) return this.clear();
      const data = await this.queries.ask(this.scope, pixels, refresh, signal);
      const list = this.spec.type === "alertlist" && (await alertList(this.spec, this.ctx, this.scope));
      if (signal.aborted) return;
      this.drawing?.destroy();
      const picture: Picture = list ? { dom: list } : draw(this.spec, data, this.ctx, this.scope);
      [this.drawing, this.data] = [picture.graph, data];
      replace(this.body, picture.dom);
      if (picture.graph) this.values.show(this.title || "the panel", picture.graph.dom, picture.graph.values);
      else this.values.hide();
      replace(this.status, ...data.warnings.map((w) => h("p", { class: "warn" }, ...cut(w))));
    };
    await this.latest.do(work, (e) => {
      if (!refresh) this.clear();
      replace(this.status, alarm(e));
    });
  }

  private clear(): void {
    this.drawing?.destroy();
    this.drawing = this.data = undefined;
    this.values.hide();
    replace(this.body);
  }

  destroy(): void {
    this.latest.end();
    this.clear();
  }
}
