import { activity, type Activity, type Rate } from "./activity";
import type { Answer, Series } from "./answer";
import { ApiError, asOfParams, type Api } from "./api";
import { alarm, h, replace, svg } from "./dom";
import { count, dollars, formatValue, price } from "./format";
import type { Context } from "./context";
import { num, table, type Cell } from "./table";
import { tenants } from "./tenants";
import { bounds, formatTime, type Zone } from "./time";

// What the lake of a tenant holds: the answer of /api/v1/status/lake as figures, as a picture of
// levels over time, and as the table behind it.

interface Level {
  level: string;
  objects: number;
  bytes: number;
  samples: number;
}

interface Window extends Level {
  start: number; // ms
  end: number;
}

interface Inventory {
  generation: number;
  committed?: number;
  levels: Level[];
  windows: Window[];
  bytes: number;
  oldestSegment?: number;
  waiting: { segments: number; blocks: number; since?: number };
  deletions: { id: string; requested: number; selector: string; start: number; end: number; objects: number }[];
  dollarsPerMonth: number; // 0 for a store without a list price
  first?: number; // ms, of the first sample
  last?: number;
  columns?: { blocks: number; samples: number; bytes: number; rows: { file: string; column?: string; bytes: number; bytesPerSample: number }[] };
}

const bytes = (n: number) => formatValue(n, "bytes");
const titles: Record<string, string> = { segment: "Segments", part: "Parts", "24h": "24h, rollups" };
const titleOf = (level: string) => titles[level] ?? `${level} blocks`;
const order = ["segment", "part", "2h", "12h", "24h"];
// shownWindows bounds the rows of the table.
const shownWindows = 500;

export class LakeView {
  readonly dom = h("div", { class: "lake" });
  private running = false;
  private readonly tenants: HTMLElement;

  // open shows another tenant.
  constructor(
    private readonly ctx: Context,
    open: (tenant: string) => void,
  ) {
    this.tenants = tenants(ctx.api, () => ctx.zone(), open);
  }

  refresh(): void {
    if (this.running) return;
    this.running = true;
    void this.show().finally(() => (this.running = false));
  }

  destroy(): void {}

  // draw keeps open what the user opened.
  private draw(parts: (HTMLElement | null)[]): void {
    const open = this.dom.querySelector("details")?.open ?? false;
    replace(this.dom, ...parts);
    const windows = this.dom.querySelector("details");
    if (windows) windows.open = open;
  }

  private async show(): Promise<void> {
    const { api } = this.ctx;
    const asOf = this.ctx.asOf();
    try {
      const [lake, flags, lag, now] = await Promise.all([
        api.get<Inventory>("status/lake", { columns: "true", ...asOfParams(asOf) }),
        api.operator<Record<string, string>>("status/flags"),
        lagOf(api),
        activity(api, bounds(this.ctx.range(), Date.now()).end, asOf),
      ]);
      this.draw([...content(lake.data, flags, lag, now, this.ctx.zone()), flags ? this.tenants : null]);
    } catch (e) {
      replace(this.dom, alarm(e instanceof ApiError && e.status === 404 ? "This server does not describe its lake: it is older than this page." : e));
    }
  }
}

// lagOf is the compaction lag in seconds, if the tenant has the metrics of a compactor.
async function lagOf(api: Api): Promise<number | undefined> {
  const { data } = await api.get<Answer>("query", { query: "max(promlake_compact_lag_seconds)" });
  const v = (data.result as Series[])[0]?.value?.[1];
  return v === undefined ? undefined : Number(v);
}

function content(l: Inventory, flags: Record<string, string> | undefined, lag: number | undefined, now: Activity, zone: Zone): (HTMLElement | null)[] {
  const samples = l.levels.reduce((sum, x) => sum + x.samples, 0);
  const inBlocks = l.levels.reduce((sum, x) => sum + (x.level === "segment" ? 0 : x.bytes), 0);
  const age = l.oldestSegment === undefined ? undefined : (Date.now() - l.oldestSegment) / 1000;
  const priced = l.dollarsPerMonth > 0 || !l.bytes;
  const retention = flags?.["compactor.blocks-retention-period"];
  const figures: [string, string, string][] = [
    ["Stored", bytes(l.bytes), "of live objects"],
    priced ? ["Storage", `${dollars(l.dollarsPerMonth)} a month`, "list price of S3 Standard"] : ["Storage", "–", "this store has no list price"],
    !priced
      ? ["Running cost", "–", "this store has no list price"]
      : now.prices.length
      ? ["Running cost", `${price(sum(now.prices))} a day`, "at the rates of the last five minutes, AWS's list prices"]
      : ["Running cost", `${price(l.dollarsPerMonth / 30)} a day`, "storage alone: no metrics of Promlake are stored in this tenant"],
    ["Samples in blocks", count(samples), samples ? `${formatValue(inBlocks / samples)} B per sample` : "nothing is compacted yet"],
    ["Time range", l.first !== undefined && l.last !== undefined ? formatValue((l.last - l.first) / 1000, "seconds") : "–", l.first !== undefined && l.last !== undefined ? `from ${formatTime(l.first, zone)} to ${formatTime(l.last, zone)}` : "no data"],
    ["Oldest segment", age === undefined ? "–" : formatValue(Math.max(0, Math.round(age)), "seconds"), "waits to become a block"],
    ["Compaction lag", lag === undefined ? "unknown" : formatValue(lag, "seconds"), lag === undefined ? "this tenant has no metrics of a compactor" : "of the oldest window that is due"],
    ["Retention", retention === undefined ? "unknown" : /^0s?$/.test(retention) ? "unlimited" : retention, flags ? (flags["compactor.tenant-retention"] || "for all tenants") : "needs a token of an operator"],
    ["To be deleted", count(l.waiting.segments + l.waiting.blocks), l.waiting.since ? `replaced objects, the first ${formatTime(l.waiting.since, zone)}` : "replaced objects"],
  ];
  return [
    h("div", { class: "figures" }, ...figures.map(([name, value, note]) => h("section", { class: "panel figure", "aria-label": name }, h("h2", {}, name), h("div", { class: "stat-value" }, value), h("p", { class: "muted" }, note)))),
    h("section", { class: "panel", "aria-label": "Levels over time" }, h("h2", {}, "Levels over time"), l.windows.length ? picture(l, zone) : h("p", { class: "muted" }, "This tenant has no data yet.")),
    section("Levels", ["Level", "Objects", "Bytes", "Samples", "Bytes per sample"], l.levels.map((x) => [titleOf(x.level), ...sizes(x), x.samples ? num(x.bytes / x.samples, formatValue(x.bytes / x.samples)) : num(NaN, "–")])),
    l.columns?.rows.length ? columns(l.columns) : null,
    h("div", { class: "lists" }, rates("Requests and samples a second", now.rates, (v) => `${formatValue(v)}/s`), rates("Bytes a second", now.bytes, (v) => formatValue(v, "bytes/s")), priced ? rates("Dollars a day", now.prices, price) : null),
    l.deletions.length
      ? section("Deletions", ["Series", "From", "To", "Requested", "Objects that still hold them"], l.deletions.map((d) => [d.selector, formatTime(d.start, zone), formatTime(d.end, zone), formatTime(d.requested, zone), num(d.objects, d.objects ? count(d.objects) : "none")]))
      : null,
    windowsTable(l, zone),
  ];
}

const sum = (rows: readonly Rate[]) => rows.reduce((n, r) => n + r.value, 0);

function rates(title: string, rows: readonly Rate[], written: (v: number) => string): HTMLElement {
  if (!rows.length) return h("section", { class: "panel" }, h("h2", {}, title), h("p", { class: "muted" }, "This tenant has no such metrics of Promlake. A server stores its own with --demo, or if its configuration scrapes it."));
  return section(title, ["What", "Now"], rows.map((r) => [`${r.of}: ${r.name}`, num(r.value, written(r.value))]));
}

// columns lists what a sample takes in each column of the blocks.
function columns(c: NonNullable<Inventory["columns"]>): HTMLElement {
  const whole: Record<string, string> = { series: "all columns", rollups: "all columns" };
  const title = `Bytes per sample by column, in ${c.blocks === 1 ? "the largest block" : `the ${count(c.blocks)} largest blocks`}`;
  return section(title, ["Column", "Bytes", "Bytes per sample", "Share"], c.rows.map((r) => [`${r.file}: ${r.column ?? whole[r.file] ?? "footer, indexes"}`, num(r.bytes, bytes(r.bytes)), num(r.bytesPerSample, formatValue(r.bytesPerSample)), num(r.bytes, formatValue(r.bytes / Math.max(1, c.bytes), "percent"))]));
}

function windowsTable(l: Inventory, zone: Zone): HTMLElement {
  const last = l.windows.slice(-shownWindows).reverse();
  return h(
    "details",
    { class: "panel" },
    h("summary", {}, h("h2", {}, `Windows (${count(l.windows.length)})`)),
    last.length < l.windows.length ? h("p", { class: "muted" }, `The last ${shownWindows} windows`) : null,
    table("Windows", ["From", "To", "Level", "Objects", "Bytes", "Samples"], last.map((w) => [formatTime(w.start, zone), formatTime(w.end, zone), titleOf(w.level), ...sizes(w)])),
  );
}

// sizes are the cells of objects, bytes and samples. What segments hold is not counted.
const sizes = (x: Level) => [num(x.objects), num(x.bytes, bytes(x.bytes)), x.level === "segment" ? num(NaN, "–") : num(x.samples)];

const section = (title: string, head: string[], rows: Cell[][]) => h("section", { class: "panel" }, h("h2", {}, title), table(title, head, rows));

// picture draws a row for each level and a box for the part of each window that has samples; the
// darker, the more bytes an hour.
// The table of windows says the same in words.
function picture(l: Inventory, zone: Zone): HTMLElement {
  const from = (w: Window) => Math.max(w.start, l.first ?? w.start);
  const to = (w: Window) => Math.min(w.end, l.last ?? w.end);
  const start = Math.min(...l.windows.map(from));
  const end = Math.max(start + 1, ...l.windows.map(to));
  const levels = order.filter((name) => l.levels.some((x) => x.level === name));
  const [width, row, left] = [1000, 34, 110];
  const x = (t: number) => left + ((t - start) / (end - start)) * (width - left - 10);
  const density = (w: Window) => w.bytes / Math.max(1, w.end - w.start);
  const most = Math.max(...l.windows.map(density));
  const boxes = l.windows.map((w) => {
    const at = levels.indexOf(w.level);
    const title = svg("title", {}, document.createTextNode(`${titleOf(w.level)}, ${formatTime(w.start, zone)} to ${formatTime(w.end, zone)}: ${count(w.objects)} objects, ${bytes(w.bytes)}${w.samples ? `, ${count(w.samples)} samples` : ""}`));
    return svg("rect", { x: x(from(w)).toFixed(1), y: at * row + 4, width: Math.max(1.5, x(to(w)) - x(from(w)) - 1).toFixed(1), height: row - 8, rx: 2, class: `box box-${w.level === "segment" ? "segment" : "block"}`, "fill-opacity": (0.3 + 0.7 * Math.sqrt(density(w) / most)).toFixed(2) }, title);
  });
  const names = levels.map((name, i) => svg("text", { x: 0, y: i * row + row / 2 + 5 }, document.createTextNode(titleOf(name))));
  const bottom = levels.length * row;
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const t = start + part * (end - start);
    return svg("text", { x: x(t).toFixed(1), y: bottom + 18, "text-anchor": part === 0 ? "start" : part === 1 ? "end" : "middle" }, document.createTextNode(formatTime(t, zone).slice(0, end - start < 600_000 ? 19 : 16)));
  });
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${bottom + 26}`, role: "img", "aria-label": `${count(l.windows.length)} windows in ${levels.map(titleOf).join(", ")}, from ${formatTime(start, zone)} to ${formatTime(end, zone)}. The table of windows lists them.` }, ...names, ...boxes, ...ticks);
  return h("div", { class: "levels", tabIndex: 0, role: "region", "aria-label": "Picture of the levels over time" }, drawing);
}
