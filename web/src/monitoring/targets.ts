import type { Labels } from "../answer";
import { cut, h } from "../dom";
import { formatValue } from "../format";
import { num } from "../table";
import { parseDuration } from "../time";
import { chips, mark, pairs, problem, when, type Group, type Kind } from "./listing";

// The targets of https://prometheus.io/docs/prometheus/latest/querying/api/#targets.

interface Target {
  labels: Labels;
  discoveredLabels: Labels;
  scrapePool: string;
  scrapeUrl: string;
  lastError: string;
  lastScrape: string;
  lastScrapeDuration: number; // s
  health: string;
  scrapeInterval: string;
  scrapeTimeout: string;
}

interface Targets {
  activeTargets: Target[] | null;
  droppedTargetCounts: Record<string, number> | null;
}

// address is a link if it leads to a web server; relabeling can make it anything.
function address(url: string): HTMLElement {
  return /^https?:\/\//i.test(url) ? h("a", { href: url, "aria-label": url, target: "_blank", rel: "noreferrer noopener" }, ...cut(url)) : h("code", {}, ...cut(url));
}

export const targets: Kind = {
  name: "targets",
  states: ["up", "down", "unknown"],
  columns: ["Target", "State", "Labels", "Last scrape", "Duration", "Interval"],
  none: "This server scrapes no targets for this tenant. Start promlake serve with --config.file=prometheus.yml that has scrape_configs; --config.tenant chooses the tenant.",
  async load({ api, zone }) {
    const { data } = await api.get<Targets>("targets", { state: "active" });
    const dropped = data.droppedTargetCounts ?? {};
    const pools = new Map<string, Target[]>();
    for (const t of data.activeTargets ?? []) pools.set(t.scrapePool, [...(pools.get(t.scrapePool) ?? []), t]);
    return [...pools]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, all]): Group => {
        const up = all.filter((t) => t.health === "up").length;
        return {
          name,
          note: [`${up} of ${all.length} up`, ...(dropped[name] ? [`${dropped[name]} dropped by relabeling`] : [])].join(" · "),
          items: all.map((t) => ({
            state: t.health,
            text: [t.scrapeUrl, t.lastError, ...pairs(t.labels)].join(" "),
            cells: () => [
              { by: t.scrapeUrl, show: [address(t.scrapeUrl), problem(t.lastError)] },
              mark(t.health),
              chips(t.labels, [], h("details", {}, h("summary", { class: "muted" }, "Before relabeling"), ...pairs(t.discoveredLabels).map((p) => h("code", {}, ...cut(p), " ")))),
              { by: Date.parse(t.lastScrape), show: [when(t.lastScrape, zone())] },
              num(t.lastScrapeDuration, formatValue(t.lastScrapeDuration, "seconds")),
              { by: parseDuration(t.scrapeInterval) ?? NaN, show: [h("span", { title: `Timeout ${t.scrapeTimeout}` }, t.scrapeInterval)] },
            ],
          })),
        };
      });
  },
};
