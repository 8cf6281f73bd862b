import type { Answer, Point, Series } from "./answer";
import { number, written } from "./compact";
import { cut, h, replace, type Child } from "./dom";
import { formatValue, legend, type Unit } from "./format";

// Cell is a text, or what is shown with what it is sorted by. Numbers are on the right.
export type Cell = string | { by: string | number; show: string | readonly Child[]; css?: Partial<CSSStyleDeclaration> };

// num is the cell of a number. NaN is none, and comes before all others.
export const num = (by: number, show = by.toLocaleString("en")): Cell => ({ by, show });

// shownRows bounds the rows of a table.
const shownRows = 1_000;

// left is how the user left the table of a name: its order, and where it was scrolled to. A refresh
// makes the table anew.
const left = new Map<string, { column: number; down: boolean; scrollLeft: number; scrollTop: number }>();

// listed are the rows of a table in the order that it shows.
const listed = new WeakMap<Element, () => (readonly Cell[])[]>();

// tableRows are the head and all rows of a table in the order that it shows, with exact values. It
// is undefined for other elements.
export function tableRows(dom: Element | null): string[][] | undefined {
  const exact = (c: Cell) => (typeof c === "string" ? c : typeof c.by === "number" && !Number.isNaN(c.by) ? written(c.by) : typeof c.show === "string" ? c.show : String(c.by));
  return dom ? listed.get(dom)?.().map((r) => r.map(exact)) : undefined;
}

const key = (c: Cell | undefined) => (typeof c === "object" ? c.by : (c ?? ""));

// order compares texts, or numbers; a text beside a number counts as none.
export function order(a: string | number, b: string | number): number {
  if (typeof a === "string" && typeof b === "string") return a.localeCompare(b, undefined, { numeric: true });
  const known = (x: string | number) => (typeof x === "string" || Number.isNaN(x) ? -Infinity : x);
  return known(a) - known(b) || 0;
}

// table is every table of the page but the grid of SQL. The first cell of a row names it. It and
// the head stay in sight while the rest scrolls within the table's own box. A column's name is a
// button that sorts: the largest number or the first text first, the other way, then as given.
export function table(name: string, head: readonly string[], rows: readonly (readonly Cell[])[], caption = ""): HTMLElement {
  const mine = left.get(name) ?? { column: -1, down: false, scrollLeft: 0, scrollTop: 0 };
  left.set(name, mine);
  const right = head.map((_, i) => rows.some((r) => typeof key(r[i]) === "number"));
  const body = h("tbody");
  const sort = (i: number) => {
    if (mine.column !== i) Object.assign(mine, { column: i, down: right[i] });
    else if (mine.down === right[i]) mine.down = !mine.down;
    else mine.column = -1;
    draw();
  };
  const title = (t: string, i: number) => (rows.length > 1 ? [h("button", { type: "button", class: "sort", "aria-label": t, onclick: () => sort(i) }, ...cut(t))] : cut(t));
  const heads = head.map((t, i) => h(t ? "th" : "td", { scope: t ? "col" : undefined, class: right[i] ? "number" : undefined }, ...(t ? title(t, i) : [])));
  const cell = (c: Cell, i: number) => {
    const show = typeof c === "string" ? c : c.show;
    const parts = typeof show === "string" ? cut(show) : show;
    const props = { class: right[i] ? "number" : undefined, "aria-label": typeof show === "string" && parts.length > 1 ? show : undefined };
    const dom = h(i ? "td" : "th", i ? props : { scope: "row", ...props }, ...(right[i] ? parts : [h("div", { class: "text" }, ...parts)]));
    if (typeof c === "object") Object.assign(dom.style, c.css);
    return dom;
  };
  const sorted = () => {
    const { column, down } = mine;
    return column in head ? [...rows].sort((a, b) => (down ? -1 : 1) * order(key(a[column]), key(b[column]))) : rows;
  };
  const draw = () => {
    const { column, down } = mine;
    heads.forEach((th, i) => (i === column ? th.setAttribute("aria-sort", down ? "descending" : "ascending") : th.removeAttribute("aria-sort")));
    replace(body, ...sorted().slice(0, shownRows).map((r) => h("tr", {}, ...r.map(cell))));
  };
  draw();
  const text = rows.length > shownRows ? `The first ${shownRows} of ${rows.length.toLocaleString("en")} rows` : caption;
  const box = h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": name }, h("table", {}, text && h("caption", {}, text), h("thead", {}, h("tr", {}, ...heads)), body));
  box.addEventListener("scroll", () => Object.assign(mine, { scrollLeft: box.scrollLeft, scrollTop: box.scrollTop }), { passive: true });
  listed.set(box, () => [head, ...sorted()]);
  queueMicrotask(() => Object.assign(box, { scrollLeft: mine.scrollLeft, scrollTop: mine.scrollTop })); // it is in the page by then
  return box;
}

// results shows the answer of an instant query with a row per series.
export function results(name: string, answer: Answer, unit: Unit): HTMLElement {
  if (answer.resultType === "scalar" || answer.resultType === "string") return table(name, ["Type", "Value"], [[answer.resultType, num(Number((answer.result as Point)[1]), (answer.result as Point)[1])]]);
  const series = answer.result as Series[];
  if (!series.length) return h("p", { class: "muted" }, "No series.");
  const value = (s: Series): Cell => {
    if (s.value) return { by: number(s.value[1]), show: [h("span", { title: s.value[1] }, formatValue(number(s.value[1]), unit))] };
    if (s.histogram) return num(Number(s.histogram[1].count), `count ${s.histogram[1].count}, sum ${s.histogram[1].sum}`);
    return num(NaN, (s.values ?? []).map(([t, x]) => `${x} @${t}`).join("\n"));
  };
  return table(name, ["Series", "Value"], series.map((s) => [legend(s.metric), value(s)]), `${series.length.toLocaleString("en")} series`);
}
