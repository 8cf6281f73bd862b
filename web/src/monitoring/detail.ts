import type { Labels } from "../answer";
import type { Context } from "../context";
import { alarm, cut, h, replace, type Child } from "../dom";
import { select } from "../explore/syntax";
import { Result } from "../panel";
import { emptyPanel } from "../state";
import { table } from "../table";
import { button, chips, pairs } from "./listing";

// Step is a rule of relabeling with the labels after it; nothing is left of a target that a rule
// does not keep.
interface Step {
  rule: Record<string, string | number | string[]>;
  output: Labels;
  keep: boolean;
}

// metrics are what each scrape stores of itself.
const metrics = ["up", "scrape_duration_seconds", "scrape_samples_scraped"];
const shownDropped = 100;

// Detail is what a scrape pool has below its targets: the last scrapes of one of them, how
// relabeling made its labels, or the targets that relabeling dropped.
export class Detail {
  readonly dom: HTMLElement;
  private readonly box = h("div", { role: "group", "aria-label": "Details of targets", hidden: true });
  private results: Result[] = [];

  constructor(
    private readonly ctx: Context,
    private readonly pool: string,
    private readonly explain: (expr: string) => void,
  ) {
    this.dom = h("div", {}, button("Dropped targets", () => void this.dropped()), this.box);
  }

  // scrapes draws what the scrapes of the target with these labels were like in the time range.
  scrapes(labels: Labels): void {
    const matchers = Object.entries(labels).map(([label, value]) => ({ label, op: "=" as const, value }));
    const results = metrics.map(() => new Result(this.ctx, 140, this.explain));
    this.open(`Scrapes of ${labels["instance"] ?? this.pool}`, ...results.flatMap((r, i) => [h("h4", {}, metrics[i]!), r.dom]));
    this.results = results;
    results.forEach((r, i) => void r.ask(emptyPanel(select(metrics[i]!, matchers))));
  }

  // relabeling lists what each rule did to the labels that discovery found.
  async relabeling(discovered: Labels): Promise<void> {
    await this.ask("Relabeling of a target", async () => {
      const { data } = await this.ctx.api.get<{ steps: Step[] | null }>("targets/relabel_steps", { scrapePool: this.pool, labels: JSON.stringify(discovered) });
      const steps = data.steps ?? [];
      const end = steps.findIndex((s) => !s.keep) + 1 || steps.length;
      const more = steps.length - end;
      const rows = steps.slice(0, end).map((s, i) => [String(i + 1), { by: "", show: rule(s.rule) }, { by: "", show: s.keep ? changes(i ? steps[i - 1]!.output : discovered, s.output) : [h("strong", { class: "bad" }, "drops the target")] }]);
      return [table("Rules of relabeling", ["Rule", "Setting", "Change"], [["discovered", "", chips(discovered)], ...rows]), more > 0 && h("p", { class: "muted" }, more === 1 ? "One more rule does not see the target." : `${more} more rules do not see the target.`)];
    });
  }

  // dropped lists the targets that discovery found and relabeling dropped.
  async dropped(): Promise<void> {
    await this.ask("Dropped targets", async () => {
      const { data } = await this.ctx.api.get<{ droppedTargets: { discoveredLabels: Labels }[] | null }>("targets", { state: "dropped", scrapePool: this.pool });
      const all = data.droppedTargets ?? [];
      if (!all.length) return [h("p", { class: "muted" }, "Relabeling drops no target, or keep_dropped_targets keeps none.")];
      const row = ({ discoveredLabels: labels }: (typeof all)[number]) => [labels["__address__"] ?? "", chips(labels), { by: "", show: [button("Relabeling", () => void this.relabeling(labels))] }];
      return [table("Dropped targets", ["Address", "Discovered labels", ""], all.slice(0, shownDropped).map(row), all.length > shownDropped ? `The first ${shownDropped} of ${all.length} targets` : "")];
    });
  }

  private async ask(title: string, content: () => Promise<Child[]>): Promise<void> {
    this.open(title, h("p", { class: "muted" }, "Loading…"));
    const mine = this.box.firstChild;
    const shown = await content().catch((e: unknown) => [alarm(e)]);
    if (this.box.firstChild === mine) this.open(title, ...shown);
  }

  private open(title: string, ...content: Child[]): void {
    this.close();
    const close = button("Close the details", () => this.close());
    replace(this.box, h("div", { class: "row tools" }, h("h3", {}, ...cut(title)), close), ...content);
    this.box.hidden = false;
    close.focus();
  }

  close(): void {
    for (const r of this.results) r.destroy();
    this.results = [];
    replace(this.box);
    this.box.hidden = true;
  }
}

const defaults: Record<string, unknown> = { separator: ";", replacement: "$1" };

// rule writes what a rule has beside defaults, as its file has it.
const rule = (r: Step["rule"]) => Object.entries(r).filter(([name, v]) => v !== defaults[name]).map(([name, v]) => h("div", {}, h("code", {}, ...cut(`${name}: ${Array.isArray(v) ? `[${v.join(", ")}]` : v}`))));

// changes lists the labels that a rule set or removed.
function changes(before: Labels, after: Labels): Child[] {
  const had = pairs(before);
  const has = pairs(after);
  const marked = [...has.filter((p) => !had.includes(p)).map((p) => `+ ${p}`), ...had.filter((p) => !(p.slice(0, p.indexOf("=")) in after)).map((p) => `− ${p}`)];
  return marked.length ? marked.map((p) => h("div", {}, h("code", {}, ...cut(p)))) : [h("span", { class: "muted" }, "nothing")];
}
