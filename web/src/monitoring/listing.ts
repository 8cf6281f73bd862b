import type { Labels } from "../answer";
import { alarm, choice, cut, h, replace, type Child } from "../dom";
import { formatValue } from "../format";
import type { Context } from "../context";
import { table, type Cell } from "../table";
import { formatTime, type Zone } from "../time";

// What targets, rules and alerts have in common: a filter by text and by state, and groups that
// can be closed.

export interface Filter {
  filter: string;
  only: string;
}

// Item is a row of a group. text is what the filter searches.
export interface Item {
  state: string;
  text: string;
  cells: () => Cell[];
}

export interface Group {
  name: string;
  note: string;
  items: Item[]; // a group without any is shown only where nothing is filtered
  below?: HTMLElement; // the same element after each refresh
}

export interface Kind {
  name: string; // of the items
  states: readonly string[];
  columns: readonly string[];
  none: string; // what to do to have items
  load(ctx: Context, changed: () => void): Promise<Group[]>; // changed shows the groups again
  above?: HTMLElement;
  destroy?(): void; // ends what the groups have below their tables
}

const shownRows = 1_000;

// Listing shows the items of a kind. A refresh that fails keeps the last list, with the error
// above it.
export class Listing {
  readonly dom: HTMLElement;
  private readonly status = h("div", { class: "status", role: "status" });
  private readonly body = h("div");
  private readonly closed = new Set<string>();
  private groups: Group[] | undefined;
  private running = false;

  constructor(
    private readonly ctx: Context,
    private readonly kind: Kind,
    private readonly state: () => Filter,
    private readonly change: (f: Partial<Filter>) => void,
  ) {
    const filter = h("input", { type: "search", class: "filter", placeholder: "Filter", "aria-label": `Filter ${kind.name} by text`, value: state().filter });
    filter.addEventListener("input", () => {
      this.change({ filter: filter.value });
      this.show();
    });
    const only = choice("State", [["", "All states"], ...kind.states.map((s) => [s, s] as const)], state().only, (v) => {
      this.change({ only: v });
      this.show();
    });
    this.dom = h("div", {}, h("div", { class: "row tools" }, filter, only, this.status), kind.above, this.body);
  }

  async refresh(): Promise<void> {
    if (this.running) return;
    this.running = true;
    try {
      this.groups = await this.kind.load(this.ctx, () => this.show());
      this.show();
    } catch (e) {
      replace(this.status, alarm(e));
    } finally {
      this.running = false;
    }
  }

  focus(): void {
    this.dom.querySelector<HTMLElement>(".filter")?.focus();
  }

  destroy(): void {
    this.kind.destroy?.();
  }

  private show(): void {
    if (!this.groups) return;
    const all = this.groups.flatMap((g) => g.items);
    const { filter, only } = this.state();
    const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (i: Item) => (!only || i.state === only) && words.every((w) => i.text.toLowerCase().includes(w));
    let count = 0;
    const sections = this.groups.flatMap((g) => {
      const items = g.items.filter(fits);
      const room = Math.max(0, shownRows - count);
      count += items.length;
      return (items.length && room) || (!g.items.length && !only && !words.length) ? [this.section(g, items.slice(0, room))] : [];
    });
    const counts = this.kind.states.map((s) => [s, all.filter((i) => i.state === s).length] as const).filter(([, n]) => n > 0);
    replace(
      this.status,
      h("p", { class: "muted" }, [`${count} of ${all.length} ${this.kind.name}`, ...counts.map(([s, n]) => `${n} ${s}`)].join(" · ")),
      count > shownRows && h("p", { class: "warn" }, `The first ${shownRows} are listed. Filter to see others.`),
    );
    replace(this.body, ...(this.groups.length ? sections : [h("section", { class: "panel", "aria-label": this.kind.name }, h("p", {}, this.kind.none))]));
  }

  private section(g: Group, items: Item[]): HTMLElement {
    const details = h("details", { class: "panel", open: !this.closed.has(g.name), "aria-label": g.name }, h("summary", {}, h("h2", {}, ...cut(g.name)), " ", h("span", { class: "muted" }, g.note)), items.length > 0 && table(`${this.kind.name} of ${g.name}`, this.kind.columns, items.map((i) => i.cells())), g.below);
    details.addEventListener("toggle", () => (details.open ? this.closed.delete(g.name) : this.closed.add(g.name)));
    return details;
  }
}

// mark shows a state by its name, and a colour.
export function mark(state: string, ...more: Child[]): { by: string; show: Child[] } {
  const colour = /^(up|ok|inactive|active)$/.test(state) ? "good" : /^(down|err|firing)$/.test(state) ? "bad" : "warn";
  return { by: state, show: [h("strong", { class: colour }, state), ...more] };
}

// button does something when it is pressed.
export const button = (text: string, press: () => void) => h("button", { type: "button", onclick: press }, text);

// chips shows labels, without those that the page shows elsewhere, and what follows them.
export function chips(labels: Labels, without: readonly string[] = [], ...more: Child[]): { by: string; show: Child[] } {
  const all = pairs(labels, without);
  return { by: all.join(), show: [h("div", { class: "chips" }, ...all.map((p) => h("code", {}, ...cut(p)))), ...more] };
}

// pairs writes labels as PromQL does, by name.
export const pairs = (labels: Labels, without: readonly string[] = []) => Object.keys(labels).filter((n) => !without.includes(n)).sort().map((n) => `${n}=${JSON.stringify(labels[n])}`);

// when shows a time, and how long ago it was. The API has the year 1 for never.
export function when(text: string, zone: Zone, before = ""): HTMLElement {
  const at = Date.parse(text);
  if (!(at > 0)) return h("div", { class: "muted" }, "never");
  return h("div", { class: before && "muted", title: formatTime(at, zone) }, `${before}${formatValue(Math.max(0, Math.round((Date.now() - at) / 100) / 10), "seconds")} ago`);
}

// linked is a text whose addresses of web servers are links. Nothing else of it becomes one.
export function linked(text: string): Child[] {
  return text.split(/(\bhttps?:\/\/[^\s<>"'`{}|\\^]*[^\s<>"'`{}|\\^.,;:!?)\]])/i).flatMap((part, i) => (i % 2 ? link(part, part) : cut(part)));
}

// link leads to another server, which learns nothing about this page.
export const link = (href: string, text: string) => h("a", { href, "aria-label": text, target: "_blank", rel: "noreferrer noopener" }, ...cut(text));

// problem shows an error in the server's words.
export const problem = (text: string | undefined) => (text ? h("div", { class: "bad" }, ...cut(text)) : null);
