import { cut, h, replace } from "../dom";
import { isNumber, plain, type Rows } from "./rows";

// rowHeight is the height of a row in pixels, as page.css sets it.
const rowHeight = 24;
// tallest is the height that every browser gives an element. Beyond it the scroll bar stands for
// more rows than it has pixels.
const tallest = 8_000_000;
const sampled = 200;
const widest = 60;
// pinnable is how wide the first column may be, in characters, to stay in sight.
const pinnable = 24;

// Grid shows rows of a result. Only the rows in sight are in the document. The arrow keys move an
// active cell, and its complete text is below the grid.
export class Grid {
  readonly dom: HTMLElement;
  private readonly body = h("tbody");
  private readonly columns = h("colgroup");
  private readonly head = h("tr", { "aria-rowindex": 1 });
  private readonly table = h("table", { class: "grid", role: "grid", tabIndex: 0, "aria-label": "Result" }, this.columns, h("thead", {}, this.head), this.body);
  private readonly space = h("div", { class: "grid-space" }, h("div", { class: "grid-window" }, this.table));
  private readonly scroller = h("div", { class: "grid-scroll" }, this.space);
  private readonly text = h("pre", { class: "grid-cell", tabIndex: 0, "aria-label": "Text of the active cell", hidden: true });
  private readonly watch: ResizeObserver;
  private first = 0; // row at the top
  private row = 0;
  private column = 0;
  private pinned = false; // the first column stays in sight
  private placed = 0; // scrollTop that the grid has set or seen
  private frame = 0;

  constructor(private readonly rows: Rows) {
    this.dom = h("div", {}, this.scroller, this.text);
    this.scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.scroller.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    this.table.addEventListener("keydown", (e) => this.key(e));
    this.body.addEventListener("click", (e) => this.click(e));
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.scroller);
  }

  // grow shows rows that arrived.
  grow(): void {
    if (!this.head.firstChild && this.rows.columns.length) this.heading();
    this.space.style.height = `${Math.min(tallest, this.height())}px`;
    this.table.setAttribute("aria-rowcount", String(this.rows.count + 1));
    this.draw();
  }

  // finished opens the text of a short result that has several lines, such as a plan.
  finished(): void {
    for (let i = 0; i < Math.min(this.rows.count, 5); i++) {
      const at = this.rows.row(i).findIndex((v) => v.includes("\\n"));
      if (at < 0 || this.rows.count > 5) continue;
      this.activate(i, at);
      return;
    }
  }

  destroy(): void {
    this.watch.disconnect();
    cancelAnimationFrame(this.frame);
  }

  private height(): number {
    return this.rows.count * rowHeight + this.table.tHead!.offsetHeight + 1;
  }

  // visible is the number of rows that fit.
  private visible(): number {
    return Math.max(1, Math.floor((this.scroller.clientHeight - this.table.tHead!.offsetHeight) / rowHeight));
  }

  private heading(): void {
    const widths = this.rows.columns.map((c) => Math.max(c.name.length, Math.min(c.type.length, 14)));
    for (let i = 0; i < Math.min(sampled, this.rows.count); i++) this.rows.row(i).forEach((v, j) => (widths[j] = Math.max(widths[j]!, v.length)));
    const ch = widths.map((w) => Math.min(widest, w) + 3);
    for (const w of ch) {
      const col = h("col");
      col.style.width = `${w}ch`;
      this.columns.appendChild(col);
    }
    this.table.style.width = `${ch.reduce((a, b) => a + b, 0)}ch`;
    this.pinned = ch.length > 1 && ch[0]! <= pinnable;
    this.table.classList.toggle("pinned", this.pinned);
    this.table.setAttribute("aria-colcount", String(ch.length));
    for (const c of this.rows.columns) this.head.appendChild(h("th", { scope: "col", class: isNumber(c) ? "number" : undefined, title: `${c.name} ${c.type}` }, ...cut(c.name), h("span", { class: "muted type" }, c.type)));
  }

  private draw(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.paint());
  }

  private paint(): void {
    const last = Math.min(this.rows.count, this.first + this.visible() + 1);
    const lines: HTMLElement[] = [];
    for (let i = this.first; i < last; i++) {
      const cells = this.rows.row(i).map((json, j) => {
        const text = plain(json);
        const active = i === this.row && j === this.column;
        return h("td", { id: active ? "grid-active" : undefined, class: [isNumber(this.rows.columns[j]!) && "number", text === null && "muted", active && "active"].filter(Boolean).join(" ") || undefined, "aria-selected": active ? "true" : undefined }, ...cut((text ?? "NULL").slice(0, 300)));
      });
      const line = h("tr", { "aria-rowindex": i + 2 }, ...cells);
      line.dataset["row"] = String(i);
      lines.push(line);
    }
    replace(this.body, ...lines);
    if (this.row >= this.first && this.row < last) this.table.setAttribute("aria-activedescendant", "grid-active");
    else this.table.removeAttribute("aria-activedescendant");
  }

  private activate(row: number, column: number): void {
    this.row = Math.max(0, Math.min(this.rows.count - 1, row));
    this.column = Math.max(0, Math.min(this.rows.columns.length - 1, column));
    if (!this.rows.count) return;
    if (this.row < this.first) this.scrollTo(this.row);
    else if (this.row >= this.first + this.visible()) this.scrollTo(this.row - this.visible() + 1);
    this.text.hidden = false;
    replace(this.text, plain(this.rows.row(this.row)[this.column]!) ?? "NULL");
    this.draw();
    this.reveal();
  }

  // reveal scrolls sideways to the active column.
  private reveal(): void {
    const th = this.head.children[this.column] as HTMLElement | undefined;
    if (!th) return;
    const s = this.scroller;
    if (this.pinned && this.column === 0) return;
    const from = this.pinned ? (this.head.firstChild as HTMLElement).offsetWidth : 0; // it is behind the first column
    if (th.offsetLeft - from < s.scrollLeft) s.scrollLeft = th.offsetLeft - from;
    else if (th.offsetLeft + th.offsetWidth > s.scrollLeft + s.clientWidth) s.scrollLeft = Math.min(th.offsetLeft, th.offsetLeft + th.offsetWidth - s.clientWidth);
  }

  private click(e: Event): void {
    const td = (e.target as HTMLElement).closest("td");
    if (td) this.activate(Number(td.parentElement!.dataset["row"]), td.cellIndex);
  }

  private key(e: KeyboardEvent): void {
    const page = this.visible();
    const far = e.ctrlKey || e.metaKey;
    const moves: Record<string, [row: number, column: number]> = {
      ArrowUp: [this.row - 1, this.column],
      ArrowDown: [this.row + 1, this.column],
      ArrowLeft: [this.row, this.column - 1],
      ArrowRight: [this.row, this.column + 1],
      PageUp: [this.row - page, this.column],
      PageDown: [this.row + page, this.column],
      Home: far ? [0, 0] : [this.row, 0],
      End: far ? [this.rows.count - 1, this.rows.columns.length - 1] : [this.row, this.rows.columns.length - 1],
    };
    const to = moves[e.key];
    if (!to || e.altKey) return;
    e.preventDefault();
    this.activate(...to);
  }

  // last is the largest row that may be at the top.
  private last(): number {
    return Math.max(0, this.rows.count - this.visible());
  }

  private scrollTo(row: number): void {
    this.first = Math.max(0, Math.min(this.last(), row));
    const s = this.scroller;
    const most = s.scrollHeight - s.clientHeight;
    s.scrollTop = this.height() <= tallest ? this.first * rowHeight : (this.first / Math.max(1, this.last())) * most;
    this.placed = s.scrollTop;
    this.draw();
  }

  private scrolled(): void {
    const s = this.scroller;
    if (s.scrollTop === this.placed) return;
    this.placed = s.scrollTop;
    const most = s.scrollHeight - s.clientHeight;
    const row = this.height() <= tallest ? s.scrollTop / rowHeight : (s.scrollTop / most) * this.last();
    this.first = s.scrollTop >= most - 1 ? this.last() : Math.min(this.last(), Math.round(row));
    this.draw();
  }

  // wheel moves by rows where a pixel of the scroll bar is more than a pixel of the rows.
  private wheel(e: WheelEvent): void {
    if (this.height() <= tallest || e.ctrlKey || e.shiftKey || !e.deltaY) return;
    e.preventDefault();
    const lines = e.deltaMode === WheelEvent.DOM_DELTA_PIXEL ? e.deltaY / rowHeight : e.deltaY;
    this.scrollTo(this.first + Math.sign(lines) * Math.max(1, Math.round(Math.abs(lines))));
  }
}
