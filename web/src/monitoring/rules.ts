import type { Labels } from "../answer";
import type { Api } from "../api";
import { cut, h, type Child } from "../dom";
import { formatValue } from "../format";
import { num, type Cell } from "../table";
import { formatDuration } from "../time";
import { chips, mark, pairs, problem, when, type Group, type Item, type Kind } from "./listing";

// The rules of https://prometheus.io/docs/prometheus/latest/querying/api/#rules, and the alerts of
// the alerting rules. Times are RFC 3339, durations are seconds.

interface Alert {
  labels: Labels;
  annotations: Labels;
  state: string;
  activeAt?: string;
  keepFiringSince?: string;
  value: string;
}

interface Rule {
  type: "recording" | "alerting";
  name: string;
  query: string;
  labels?: Labels;
  annotations?: Labels;
  health: string;
  lastError?: string;
  evaluationTime: number;
  lastEvaluation: string;
  duration?: number;
  keepFiringFor?: number;
  state?: string;
  alerts?: Alert[] | null;
}

interface RuleGroup {
  name: string;
  file: string;
  interval: number;
  rules: Rule[];
  evaluationTime: number;
  lastEvaluation: string;
}

const none = "This server evaluates no rules for this tenant. Send a group of rules to /prometheus/config/v1/rules/NAMESPACE, or start promlake serve with --config.file=prometheus.yml whose rule_files name files with groups of rules; --config.tenant chooses the tenant.";
const duration = (s: number | undefined) => (s ? formatDuration(s * 1000) : "");

async function groups(api: Api, type?: string): Promise<RuleGroup[]> {
  return (await api.get<{ groups: RuleGroup[] | null }>("rules", { type })).data.groups ?? [];
}

// conditions are the durations of an alerting rule, as its file has them.
function conditions(r: Rule): HTMLElement | null {
  const parts = [r.duration && `for: ${duration(r.duration)}`, r.keepFiringFor && `keep_firing_for: ${duration(r.keepFiringFor)}`].filter(Boolean);
  return parts.length ? h("div", { class: "muted" }, parts.join(" · ")) : null;
}

function expression(query: string, explore: (expr: string) => void): HTMLElement {
  return h("button", { type: "button", class: "quiet expr", "aria-label": query, title: "Open in Explore", onclick: () => explore(query) }, ...cut(query));
}

const named = (r: Rule, ...more: Child[]): Cell => ({ by: r.name, show: [h("div", {}, ...cut(r.name)), ...more, conditions(r), problem(r.lastError)] });

// rules lists the groups with what their last evaluation was like.
export const rules = (explore: (expr: string) => void): Kind => ({
  name: "rules",
  states: ["ok", "err", "unknown"],
  columns: ["Rule", "Health", "Expression", "Labels", "Last evaluation", "Duration"],
  none,
  async load({ api, zone }) {
    return (await groups(api)).map(
      (g): Group => ({
        name: `${g.name} (${g.file})`,
        note: `every ${duration(g.interval)} · last evaluation took ${formatValue(g.evaluationTime, "seconds")}`,
        items: g.rules.map(
          (r): Item => ({
            state: r.health,
            text: [g.name, g.file, r.name, r.type, r.query, r.lastError, ...pairs(r.labels ?? {})].join(" "),
            cells: () => [
              named(r, h("div", { class: "muted" }, r.type)),
              mark(r.health),
              { by: r.query, show: [expression(r.query, explore)] },
              chips(r.labels ?? {}),
              { by: Date.parse(r.lastEvaluation), show: [when(r.lastEvaluation, zone())] },
              num(r.evaluationTime, formatValue(r.evaluationTime, "seconds")),
            ],
          }),
        ),
      }),
    );
  },
});

// alerts lists the alerting rules: a row for each active alert, or one for an inactive rule.
// Firing rules come first.
export const alerts = (explore: (expr: string) => void): Kind => ({
  name: "alerts",
  states: ["firing", "pending", "inactive", "unknown"],
  columns: ["Alert", "State", "Labels", "Annotations", "Active since", "Value"],
  none: `${none} Alerts come from rules with alert:.`,
  async load({ api, zone }) {
    const order = (r: Rule) => ["firing", "pending", "inactive", "unknown"].indexOf(r.state ?? "unknown");
    const all = (await groups(api, "alert")).flatMap((g) => g.rules.map((r) => ({ g, r })));
    return all
      .sort((a, b) => order(a.r) - order(b.r))
      .map(({ g, r }): Group => {
        const active = r.alerts ?? [];
        const row = (labels: Labels, annotations: Labels, state: string, alert?: Alert): Item => ({
          state,
          text: [g.name, g.file, r.name, r.query, r.lastError, ...pairs(labels), ...pairs(annotations)].join(" "),
          cells: () => [
            named(r, expression(r.query, explore)),
            mark(state),
            chips(labels, ["alertname"]),
            { by: "", show: Object.entries(annotations).map(([n, v]) => h("div", {}, h("span", { class: "muted" }, `${n}: `), ...cut(v))) },
            { by: Date.parse(alert?.activeAt ?? ""), show: [alert?.activeAt && when(alert.activeAt, zone()), alert?.keepFiringSince && when(alert.keepFiringSince, zone(), "kept firing since ")] },
            alert ? num(Number(alert.value), formatValue(Number(alert.value))) : num(NaN, ""),
          ],
        });
        return {
          name: `${r.name} (${g.file}, ${g.name})`,
          note: active.length ? `${active.filter((a) => a.state === "firing").length} firing · ${active.filter((a) => a.state === "pending").length} pending` : (r.state ?? "unknown"),
          items: active.length ? active.map((a) => row(a.labels, a.annotations, a.state, a)) : [row(r.labels ?? {}, r.annotations ?? {}, r.state ?? "unknown")],
        };
      });
  },
});

// monitored reports whether the server scrapes targets or evaluates rules for this tenant.
export async function monitored(api: Api): Promise<boolean> {
  const [pools, some] = await Promise.all([
    api.quiet<{ scrapePools: string[] | null }>("scrape_pools"),
    api.quiet<{ groups: RuleGroup[] | null }>("rules?group_limit=1&exclude_alerts=true"),
  ]);
  return Boolean(pools?.scrapePools?.length || some?.groups?.length);
}
