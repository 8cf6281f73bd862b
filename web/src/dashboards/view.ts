import { alarm, choice, cut, h, replace } from "../dom";
import type { Context } from "../context";
import { encode, type PanelState, type State } from "../state";
import { annotations, type Events } from "./annotations";
import { anchors, Card } from "./card";
import { dashboardOf } from "./explored";
import { inText, type Scope, type Value } from "./interpolate";
import { layOut, type Placed, type PlacedSection } from "./layout";
import { read, type Dashboard } from "./model";
import { picker } from "./pickers";
import { first, isOpened, Sources, type Loaded, type Saved } from "./sources";
import { ordered, resolve, valueOf, type Variable } from "./variables";

// A server that has just begun has no data yet: while a variable, and then a panel, has no values,
// the dashboard asks again after pause (ms), at most so many times.
const pause = 1_000;
const tries = 30;

// DashboardsView shows one dashboard, which the address names, and the list of all.
export class DashboardsView {
  readonly dom: HTMLElement;
  private readonly chooser = h("div", { class: "row tools" });
  private readonly pickers = h("div", { class: "row tools pickers" });
  private readonly status = h("div", { class: "status", role: "status" });
  private readonly body = h("div", { class: "dashboard" });
  private readonly sources: Sources;
  private readonly sight: IntersectionObserver;
  private cards = new Map<Element, Card>();
  private events: Events = () => Promise.resolve([]);
  private loaded: (Loaded & { id: string }) | undefined;
  private built = ""; // what the cards were built of
  private picked = ""; // what the pickers were built of
  private run = 0;
  private tried = 0;
  private again: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly ctx: Context,
    private readonly state: () => State,
    private readonly change: (c: Partial<State>) => void,
    private readonly explore: (expr: string) => void,
    private readonly explain: (expr: string) => void,
    private readonly edit: (panels: PanelState[], saved: Saved) => void,
    private readonly alone: boolean, // it shows one panel, of a dashboard or of Explore
  ) {
    this.sources = new Sources(ctx.api);
    this.sight = new IntersectionObserver((all) => {
      for (const e of all) this.cards.get(e.target)?.see(e.isIntersecting);
    }, { rootMargin: "200px" });
    this.dom = h("div", { class: "dashboards" }, this.status, this.body);
    if (alone) return;
    this.dom.prepend(this.chooser, this.pickers);
    this.dom.addEventListener("dragover", (e) => e.preventDefault());
    this.dom.addEventListener("drop", (e) => {
      e.preventDefault();
      const file = e.dataTransfer?.files[0];
      if (file) void this.open(file);
    });
    void this.choices();
  }

  refresh(automatic = false): void {
    if (automatic && this.loaded?.id === this.id()) for (const c of this.cards.values()) c.refresh(true);
    else void this.show();
  }

  destroy(): void {
    this.run++;
    clearTimeout(this.again);
    this.sight.disconnect();
    for (const c of this.cards.values()) c.destroy();
  }

  private id(): string {
    return this.state().dash || first;
  }

  // choices lists the dashboards.
  private async choices(): Promise<void> {
    if (this.alone) return;
    const entries = await this.sources.list();
    const id = this.id();
    if (!entries.some((e) => e.id === id)) entries.push({ id, title: id });
    const file = h("input", { type: "file", accept: ".json,application/json", hidden: true, "aria-label": "Dashboard file" });
    file.addEventListener("change", () => {
      const chosen = file.files?.[0];
      if (chosen) void this.open(chosen);
    });
    replace(
      this.chooser,
      choice("Dashboard", entries.map((e) => [e.id, e.title] as const), id, (dash) => this.change({ dash, vars: {} })),
      h("button", { type: "button", onclick: () => file.click(), title: "A dashboard as Grafana exports it. You can also drop the file on the page." }, "Open file…"),
      file,
      ...this.saved(),
    );
  }

  // saved are the buttons of a dashboard that was saved on the server.
  private saved(): HTMLElement[] {
    const { saved, panels } = this.loaded?.id === this.id() ? this.loaded : {};
    if (!saved) return [];
    const remove = async () => {
      if (!confirm(`Delete the dashboard ${saved.name}?`)) return;
      try {
        await this.ctx.api.dashboard("DELETE", saved.name, { "If-Match": saved.version });
        this.change({ dash: "", vars: {} });
      } catch (e) {
        this.fail(e);
      }
    };
    const edit = panels && h("button", { type: "button", onclick: () => this.edit(panels, saved) }, "Edit in Explore");
    return [...(edit ? [edit] : []), h("button", { type: "button", onclick: () => void remove() }, "Delete")];
  }

  private async open(file: File): Promise<void> {
    try {
      const dash = await this.sources.open(file);
      this.loaded = undefined; // a file of the same name replaces the last one
      this.built = "";
      this.change({ dash, vars: {} });
      await this.choices();
    } catch (e) {
      this.fail(e);
    }
  }

  private fail(e: unknown): void {
    replace(this.status, alarm(e));
  }

  // show loads the dashboard if it is another one, finds the values of its variables, and asks its
  // panels. A later call ends an earlier one.
  private async show(): Promise<void> {
    const run = ++this.run;
    clearTimeout(this.again);
    const id = this.id();
    this.body.setAttribute("aria-busy", "true");
    try {
      const loaded = this.loaded?.id === id ? this.loaded : await this.load(id);
      const { dashboard } = loaded;
      const variables = await this.variables(dashboard);
      if (run !== this.run) return;
      if (this.loaded?.id !== id) {
        this.tried = 0;
        void this.choices();
      }
      const none = [...variables.values()].some((v) => v.spec.type === "query" && !v.options.length && !v.problem);
      if (none || this.tried) this.wait(none);
      this.loaded = { ...loaded, id };
      const notes = dashboard.notes.map((n) => h("p", { class: "warn" }, ...cut(n)));
      this.pick(variables);
      const scope: Scope = new Map<string, Value>([...variables].map(([name, v]) => [name, valueOf(v, this.ctx.range().length)]));
      replace(this.status, dashboard.description && h("p", { class: "muted" }, ...cut(dashboard.description)), ...anchors(dashboard.links, scope), ...notes);
      const key = JSON.stringify([id, [...scope]]);
      if (key === this.built) for (const c of this.cards.values()) c.refresh(false);
      else this.build(dashboard, scope);
      this.built = key;
    } catch (e) {
      if (run !== this.run) return;
      if (this.loaded?.id !== id) {
        this.loaded = undefined;
        this.build({ uid: "", title: "", description: "", links: [], sections: [], variables: [], annotations: [], notes: [] }, new Map());
        this.built = "";
        this.pick(new Map());
      }
      this.fail(e);
    } finally {
      if (run === this.run) this.body.setAttribute("aria-busy", "false");
    }
  }

  private async load(id: string): Promise<Loaded> {
    const s = this.state();
    return s.view === "explore" ? { dashboard: read(dashboardOf("", s)) } : this.sources.load(id);
  }

  // wait asks again soon: all, or the panels if some of them has no data.
  private wait(all: boolean): void {
    if (this.tried++ >= tries) return;
    const ask = () => {
      if (all) return void this.show();
      if (!this.body.querySelector(".empty")) return;
      for (const c of this.cards.values()) c.refresh(true);
      this.wait(false);
    };
    this.again = setTimeout(ask, pause);
  }

  private async variables(d: Dashboard): Promise<Map<string, Variable>> {
    const out = new Map<string, Variable>();
    const scope = new Map<string, Value>();
    const ctx = this.asking(d);
    for (const spec of ordered(d.variables.filter((v) => v.type !== "datasource"))) {
      const v = await resolve(spec, this.state().vars[spec.name], scope, ctx);
      out.set(spec.name, v);
      scope.set(spec.name, valueOf(v, this.ctx.range().length));
    }
    return out;
  }

  // pick shows the pickers. A refresh that finds the same values leaves them alone, because one may
  // be open.
  private pick(variables: Map<string, Variable>): void {
    const key = JSON.stringify([...variables]);
    if (key === this.picked) return;
    this.picked = key;
    const active = document.activeElement?.closest<HTMLElement>(".picker")?.dataset["name"];
    const set = (name: string) => (values: string[]) => this.change({ vars: { ...this.state().vars, [name]: values } });
    replace(this.pickers, ...[...variables.values()].filter((v) => !v.spec.hidden && v.spec.type !== "constant").map((v) => picker(v, set(v.spec.name))));
    if (active) this.pickers.querySelector<HTMLElement>(`[data-name="${CSS.escape(active)}"] :is(select, input, summary)`)?.focus();
  }

  private build(d: Dashboard, scope: Scope): void {
    for (const c of this.cards.values()) c.destroy();
    this.sight.disconnect();
    this.cards = new Map();
    const sections = layOut(d.sections, scope);
    this.events = annotations(this.asking(d), d.annotations, scope);
    if (this.alone) {
      const { panel } = this.state();
      const found = sections.flatMap((s) => s.panels).find((p) => !panel || p.spec.id === panel);
      if (!found && d.sections.length) throw new Error(`The dashboard has no panel ${JSON.stringify(panel)}.`);
      replace(this.body, found && this.card(d, found, scope));
    } else replace(this.body, ...sections.map((s) => this.section(d, s, scope)));
    for (const dom of this.cards.keys()) this.sight.observe(dom);
  }

  // asking is the context of the requests of a dashboard, or of one of its panels. They have
  // Grafana's headers, so that the server accounts what they take to the dashboard.
  private asking(d: Dashboard, panel?: string): Context {
    if (this.state().view === "explore") return this.ctx;
    const headers = { "X-Dashboard-Uid": d.uid || this.id(), "X-Dashboard-Title": d.title, ...(panel ? { "X-Panel-Id": panel } : {}) };
    return { ...this.ctx, api: this.ctx.api.with(headers) };
  }

  private section(d: Dashboard, s: PlacedSection, scope: Scope): HTMLElement {
    const grid = h("div", { class: "cards" }, ...s.panels.map((p) => this.card(d, p, scope)));
    if (!s.title) return grid;
    return h("details", { class: "section", open: !s.collapsed }, h("summary", {}, h("h2", {}, ...cut(inText(s.title, s.scope)))), grid);
  }

  // card shows a panel. Its link has the values of the variables that repeat it.
  private card(d: Dashboard, p: Placed, scope: Scope): HTMLElement {
    const repeated = Object.fromEntries([...p.scope].filter(([name, v]) => scope.get(name) !== v).map(([name, v]) => [name, v.values]));
    const link = () => encode({ ...this.state(), panel: p.spec.id, vars: { ...this.state().vars, ...repeated } });
    const card = new Card(this.asking(d, p.spec.id), p.spec, p.scope, p.place, this.events, this.explore, this.explain, isOpened(this.id()) ? undefined : link);
    this.cards.set(card.dom, card);
    return card.dom;
  }
}
