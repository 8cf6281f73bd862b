import type { Answer, Labels, Series } from "../answer";
import type { Api } from "../api";
import { cut, h } from "../dom";
import { formatValue } from "../format";
import { num } from "../table";
import { parseDuration } from "../time";
import { chips, linked, mark, pairs, problem, when, type Group, type Kind } from "./listing";

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

const identity = (labels: Labels) => pairs(labels, ["__name__"]).join();

// sampled is how many samples the last scrapes had, by the labels of their targets; without an
// answer, there are none.
async function sampled(api: Api): Promise<Map<string, number>> {
  const found = await api.quiet<Answer>("query?query=scrape_samples_scraped");
  return new Map(((found?.result ?? []) as Series[]).map((s) => [identity(s.metric), Number(s.value?.[1])]));
}

export const targets: Kind = {
  name: "targets",
  states: ["up", "down", "unknown"],
  columns: ["Target", "State", "Last scrape", "Duration", "Samples", "Interval", "Labels"],
  none: "This server scrapes no targets for this tenant. Start promlake serve with --config.file=prometheus.yml that has scrape_configs; --config.tenant chooses the tenant.",
  async load({ api, zone }) {
    const [{ data }, samples] = await Promise.all([api.get<Targets>("targets", { state: "active" }), sampled(api)]);
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
              { by: t.scrapeUrl, show: [h("div", {}, ...linked(t.scrapeUrl)), problem(t.lastError)] },
              mark(t.health),
              { by: Date.parse(t.lastScrape), show: [when(t.lastScrape, zone())] },
              num(t.lastScrapeDuration, formatValue(t.lastScrapeDuration, "seconds")),
              num(samples.get(identity(t.labels)) ?? NaN, samples.get(identity(t.labels))?.toLocaleString("en") ?? ""),
              { by: parseDuration(t.scrapeInterval) ?? NaN, show: [h("span", { title: `Timeout ${t.scrapeTimeout}` }, t.scrapeInterval)] },
              chips(t.labels, [], h("details", {}, h("summary", { class: "muted" }, "Before relabeling"), ...pairs(t.discoveredLabels).map((p) => h("code", {}, ...cut(p), " ")))),
            ],
          })),
        };
      });
  },
};
