import { ApiError } from "../api";
import { choice, cut, h, replace } from "../dom";
import type { Mark } from "../graph";
import type { Context } from "../context";
import { Result } from "../panel";
import { compared } from "../promql";
import { emptyPanel } from "../state";
import { formatTime, type Range } from "../time";
import type { Alert, Rule } from "./groups";
import { button } from "./listing";

// around is how much time before an alert, and after it began to fire, its graph has, in ms.
const around = 3_600_000;

// Moment is the graph of an alert's expression around the time when the alert became active. It has
// the data as the rule saw it, or the latest data.
export class Moment {
  readonly dom = h("div", { role: "group", "aria-label": "Graph of the alert", hidden: true });
  private readonly note = h("div", { role: "status" });
  private result: Result | undefined;

  constructor(
    private readonly ctx: Context,
    private readonly explain: (expr: string) => void,
  ) {}

  // show draws the graph of an alert. interval is that of the rule's group, in seconds: by the next
  // evaluation, all samples that the rule has seen are stored.
  show(rule: Rule, alert: Alert, interval: number): void {
    this.close();
    const began = Date.parse(alert.activeAt ?? "");
    const fired = began + (rule.duration ?? 0) * 1000;
    const seen = fired + interval * 1000;
    const of = compared(rule.query);
    let zoomed: Range | undefined;
    let then = seen < Date.now();
    const range = (): Range => {
      const end = Math.ceil(Math.min(then ? seen : fired + around, Date.now()) / 60_000) * 60_000;
      return zoomed ?? { length: end - began + around, end };
    };
    const css = getComputedStyle(document.documentElement);
    const marks = (): Mark[] => [
      ...(of ? [{ at: of.bound, colour: css.getPropertyValue("--bad") }] : []),
      ...[...new Set([began, fired])].map((at) => ({ at: at / 1000, colour: css.getPropertyValue("--muted"), upright: true })),
    ];
    const ask = () => void result.ask(emptyPanel(of?.expr ?? rule.query));
    const data = choice("Data of the graph", [["then", "As it was seen then"], ["", "Latest data"]], then ? "then" : "", (v) => {
      then = v === "then";
      zoomed = undefined;
      replace(this.note);
      ask();
    });
    const result = new Result(
      { ...this.ctx, range, asOf: () => (then && seen < Date.now() ? seen : this.ctx.asOf()), zoom: (start, end) => ((zoomed = { length: end - start, end }), ask()) },
      240,
      this.explain,
      {
        marks,
        // The alert has the labels of its series, but for those that the rule sets.
        chosen: (all) => {
          const own = all.filter((s) => Object.entries(s.metric).every(([l, v]) => l === "__name__" || l in (rule.labels ?? {}) || alert.labels[l] === v));
          return own.length ? own : all;
        },
        refused: (e) => {
          if (!then || !(e instanceof ApiError) || e.status !== 422) return false;
          then = false;
          data.value = "";
          replace(this.note, h("p", { class: "warn" }, ...cut(`This is the latest data. As it was seen then: ${e.message}`)));
          ask();
          return true;
        },
      },
    );
    this.result = result;
    const time = formatTime(began, this.ctx.zone());
    const heading = `Active since ${time}${fired > began ? `, firing since ${formatTime(fired, this.ctx.zone())}` : ""}${of ? `, threshold ${of.bound}` : ""}`;
    replace(this.dom, h("div", { class: "row tools" }, h("h3", {}, heading), data, button("Close the graph", () => this.close())), this.note, result.dom);
    this.dom.hidden = false;
    ask();
    data.focus();
  }

  close(): void {
    this.result?.destroy();
    this.result = undefined;
    replace(this.note);
    replace(this.dom);
    this.dom.hidden = true;
  }
}
