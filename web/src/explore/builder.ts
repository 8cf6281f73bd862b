import { choice, h, replace } from "../dom";
import { spanOf, type Context } from "../context";
import { parseDuration } from "../time";
import { labels, values } from "./facts";
import { aggregations, functions, read, write, type Query } from "./query";
import { matchOps, parse, select, type MatchOp, type Matcher } from "./syntax";

// offered bounds the names and values that a field completes.
const offered = 100;

let made = 0;

// completed is a field that offers what ask returns for the text in it.
function completed(name: string, hint: string, value: string, ask: (typed: string) => Promise<string[]>, change: (v: string) => void): HTMLElement {
  const list = h("datalist", { id: `offer-${++made}` });
  const field = h("input", { "aria-label": name, placeholder: hint, value, autocomplete: "off" });
  field.setAttribute("list", list.id);
  let last = 0;
  const offer = async () => {
    const mine = ++last;
    const found = await ask(field.value).catch(() => []);
    if (mine === last) replace(list, ...found.slice(0, offered).map((v) => h("option", { value: v })));
  };
  for (const event of ["focus", "input"]) field.addEventListener(event, () => void offer());
  field.addEventListener("change", () => change(field.value.trim()));
  return h("span", {}, field, list);
}

const asPattern = (typed: string) => typed.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

// Builder edits a query with fields, beside its text. A text that it cannot express stays as it is.
export class Builder {
  readonly dom: HTMLDetailsElement;
  private readonly body = h("div", { class: "row tools" });
  private query: Query | undefined;

  // show takes the text of the query after a change.
  constructor(
    private readonly ctx: Context,
    private readonly show: (expr: string) => void,
  ) {
    const kept = localStorage.getItem("promlake.builder");
    const summary = h("summary", { onclick: () => localStorage.setItem("promlake.builder", this.dom.open ? "closed" : "open") }, "Builder");
    this.dom = h("details", { class: "builder", open: kept ? kept === "open" : innerWidth > 600 }, summary, this.body);
  }

  // read takes over the text of the query. While it is not complete, the fields wait.
  read(text: string): void {
    const complete = parse(text) !== undefined;
    this.body.inert = !complete && this.body.hasChildNodes();
    if (this.body.inert) return;
    const q = read(text);
    if (q && this.query && write(q) === write(this.query)) return; // a field that is not finished stays
    this.query = q;
    if (q) return this.draw(q);
    replace(this.body, h("p", { class: "muted" }, complete ? "The builder makes one metric with matchers, one function, one aggregation and one quantile. This query has more than that: edit its text." : "The text is not a complete query."));
  }

  private draw(q: Query): void {
    const { api } = this.ctx;
    // The fields are drawn anew only if there are others then, so that the keyboard can go on.
    const set = (change: Partial<Query>, others = false) => {
      Object.assign(q, change);
      if (others) this.draw(q);
      this.show(write(q));
    };
    const others = (m: Matcher) => select(q.metric, q.matchers.filter((x) => x !== m && x.label));
    const names = (typed: string) => values(api, "__name__", spanOf(this.ctx), `{__name__=~${JSON.stringify(`(?i).*${asPattern(typed)}.*`)}}`, offered);
    const offers = async (of: string) => (await labels(api, spanOf(this.ctx), of)).filter((l) => l !== "__name__"); // the metric has its own field
    const matcher = (m: Matcher, i: number) => {
      const n = i + 1;
      const put = (change: Partial<Matcher>) => set((Object.assign(m, change), {}));
      return h(
        "span",
        { class: "matcher", role: "group", "aria-label": `Matcher ${n}` },
        completed(`Label ${n}`, "label", m.label, () => offers(others(m)), (v) => put({ label: v })),
        choice(`Comparison ${n}`, matchOps.map((op) => [op, op] as const), m.op, (v) => put({ op: v as MatchOp })),
        completed(`Value ${n}`, "value", m.value, () => (m.label ? values(api, m.label, spanOf(this.ctx), others(m), 1_000) : Promise.resolve([])), (v) => put({ value: v })),
        h("button", { type: "button", "aria-label": `Remove matcher ${n}`, onclick: () => set({ matchers: q.matchers.filter((x) => x !== m) }, true) }, "×"),
      );
    };
    const option = (none: string, all: readonly string[]) => [["", none] as const, ...all.map((v) => [v, v] as const)];
    const text = (name: string, hint: string, value: string, right: (v: string) => boolean, wrong: string, change: (v: string) => void) => {
      const field = h("input", { class: "short", "aria-label": name, placeholder: hint, value });
      field.addEventListener("change", () => {
        const v = field.value.trim();
        field.setCustomValidity(right(v) ? "" : wrong);
        if (field.reportValidity()) change(v);
      });
      return field;
    };
    const by = (typed: string) => {
      const before = typed.slice(0, typed.lastIndexOf(",") + 1);
      return offers(select(q.metric, q.matchers.filter((m) => m.label))).then((all) => all.map((l) => (before ? `${before} ${l}` : l)));
    };
    const active = this.body.contains(document.activeElement) ? document.activeElement!.getAttribute("aria-label") : null;
    replace(
      this.body,
      completed("Metric", "metric", q.metric, names, (v) => set({ metric: v })),
      ...q.matchers.map(matcher),
      h("button", { type: "button", onclick: () => this.add(q) }, "Add matcher"),
      choice("Function of a range", option("No function", functions), q.func, (v) => set({ func: v, range: q.range || "5m" }, true)),
      q.func ? text("Range of the function", "5m", q.range, (v) => parseDuration(v) !== undefined, "Write a duration such as 30s or 5m.", (v) => set({ range: v })) : null,
      choice("Aggregation", option("No aggregation", aggregations), q.aggregation, (v) => set(v ? { aggregation: v } : { aggregation: "", by: [] }, true)),
      q.aggregation ? h("span", {}, "by ", completed("Labels that the aggregation keeps", "job, instance", q.by.join(", "), by, (v) => set({ by: v.split(",").map((l) => l.trim()).filter(Boolean) }))) : null,
      text("Quantile of a histogram", "quantile", q.quantile, (v) => v === "" || (Number(v) >= 0 && Number(v) <= 1), "Write a number from 0 to 1, such as 0.95.", (v) => set({ quantile: v })),
    );
    if (active) this.body.querySelector<HTMLElement>(`[aria-label="${CSS.escape(active)}"]`)?.focus();
  }

  // add makes a matcher without a label, which is no part of the text yet.
  private add(q: Query): void {
    q.matchers.push({ label: "", op: "=", value: "" });
    this.draw(q);
    this.body.querySelector<HTMLElement>(`[aria-label="Label ${q.matchers.length}"]`)?.focus();
  }
}
