import type { Answer, Labels, Series } from "../answer";
import type { Api } from "../api";
import type { Context } from "../context";
import { h } from "../dom";
import { formatValue } from "../format";
import { num } from "../table";
import { parseDuration } from "../time";
import { Detail } from "./detail";
import { button, chips, linked, mark, pairs, problem, when, type Group, type Kind } from "./listing";

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

const identity = (labels: Labels) => pairs(labels, ["__name__"]).join();

// sampled is how many samples the last scrapes had, by the labels of their targets; without an
// answer, there are none.
async function sampled(api: Api): Promise<Map<string, number>> {
  const found = await api.quiet<Answer>("query?query=scrape_samples_scraped");
  return new Map(((found?.result ?? []) as Series[]).map((s) => [identity(s.metric), Number(s.value?.[1])]));
}

// targets lists the targets of each scrape pool. What the buttons of a row show is below the pool.
export function targets(ctx: Context, explain: (expr: string) => void): Kind {
  const { api, zone } = ctx;
  const details = new Map<string, Detail>();
  return {
    name: "targets",
    states: ["up", "down", "unknown"],
    columns: ["Target", "State", "Last scrape", "Duration", "Samples", "Interval", "Labels"],
    none: "This server scrapes no targets for this tenant. Start promlake serve with --config.file=prometheus.yml that has scrape_configs; --config.tenant chooses the tenant.",
    async load() {
      const [{ data }, names, samples] = await Promise.all([
        api.get<{ activeTargets: Target[] | null }>("targets", { state: "active" }),
        api.get<{ scrapePools: string[] | null }>("scrape_pools"),
        sampled(api),
      ]);
      const pools = new Map<string, Target[]>((names.data.scrapePools ?? []).map((pool) => [pool, []]));
      for (const t of data.activeTargets ?? []) pools.set(t.scrapePool, [...(pools.get(t.scrapePool) ?? []), t]);
      return [...pools]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, all]): Group => {
          const up = all.filter((t) => t.health === "up").length;
          const detail = details.get(name) ?? new Detail(ctx, name, explain);
          details.set(name, detail);
          return {
            name,
            note: `${up} of ${all.length} up`,
            items: all.map((t) => ({
              state: t.health,
              text: [t.scrapeUrl, t.lastError, ...pairs(t.labels)].join(" "),
              cells: () => [
                { by: t.scrapeUrl, show: [h("div", {}, ...linked(t.scrapeUrl)), problem(t.lastError)] },
                mark(t.health),
                { by: Date.parse(t.lastScrape), show: [when(t.lastScrape, zone()), button("Scrapes", () => detail.scrapes(t.labels))] },
                num(t.lastScrapeDuration, formatValue(t.lastScrapeDuration, "seconds")),
                num(samples.get(identity(t.labels)) ?? NaN, samples.get(identity(t.labels))?.toLocaleString("en") ?? ""),
                { by: parseDuration(t.scrapeInterval) ?? NaN, show: [h("span", { title: `Timeout ${t.scrapeTimeout}` }, t.scrapeInterval)] },
                chips(t.labels, [], button("Relabeling", () => void detail.relabeling(t.discoveredLabels))),
              ],
            })),
            below: detail.dom,
          };
        });
    },
    destroy: () => details.forEach((d) => d.close()),
  };
}
