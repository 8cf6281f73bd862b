import type { Labels } from "../answer";
import type { Api } from "../api";
import type { Context } from "../context";
import { cut, h, type Child } from "../dom";
import { formatValue } from "../format";
import { num, type Cell } from "../table";
import { formatDuration } from "../time";
import { button, chips, linked, mark, pairs, problem, when, type Group, type Item, type Kind } from "./listing";
import { Moment } from "./moment";
import { Silences } from "./silences";
import { alerting, groups, states, type Alert, type Rule, type RuleGroup } from "./groups";

// The views of rules and of alerts.

const none = "This server evaluates no rules for this tenant. Send a group of rules to /prometheus/config/v1/rules/NAMESPACE, or start promlake serve with --config.file=prometheus.yml whose rule_files name files with groups of rules; --config.tenant chooses the tenant.";
const duration = (s: number | undefined) => (s ? formatDuration(s * 1000) : "");

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
// Firing rules come first. A graph below the alerts of a rule shows one of them. Silences are above
// the list.
export function alerts(ctx: Context, explore: (expr: string) => void, explain: (expr: string) => void): Kind {
  const moments = new Map<string, Moment>();
  const silences = new Silences(ctx);
  return {
    name: "alerts",
    states,
    columns: ["Alert", "State", "Active since", "Value", "Labels", "Annotations"],
    none: `${none} Alerts come from rules with alert:.`,
    above: silences.dom,
    async load(_, changed) {
      const [all] = await Promise.all([alerting(ctx.api), silences.load(changed)]);
      return all.map(({ g, r, active }): Group => {
        const name = `${r.name} (${g.file}, ${g.name})`;
        const moment = moments.get(name) ?? new Moment(ctx, explain);
        moments.set(name, moment);
        const row = (labels: Labels, annotations: Labels, state: string, alert?: Alert): Item => ({
          state,
          text: [g.name, g.file, r.name, r.query, r.lastError, ...pairs(labels), ...pairs(annotations)].join(" "),
          cells: () => [
            named(r, expression(r.query, explore)),
            mark(state, alert && h("div", { class: "muted" }, silences.of(labels)), alert && silences.there && button("Silence", () => silences.open(labels))),
            { by: Date.parse(alert?.activeAt ?? ""), show: [alert?.activeAt && when(alert.activeAt, ctx.zone()), alert?.keepFiringSince && when(alert.keepFiringSince, ctx.zone(), "kept firing since "), alert && button("Graph", () => moment.show(r, alert, g.interval))] },
            alert ? num(Number(alert.value), formatValue(Number(alert.value))) : num(NaN, ""),
            chips(labels, ["alertname"]),
            { by: "", show: Object.entries(annotations).map(([n, v]) => h("div", {}, h("span", { class: "muted" }, `${n}: `), ...linked(v))) },
          ],
        });
        return {
          name,
          note: active.length ? `${active.filter((a) => a.state === "firing").length} firing · ${active.filter((a) => a.state === "pending").length} pending` : (r.state ?? "unknown"),
          items: active.length ? active.map((a) => row(a.labels, a.annotations, a.state, a)) : [row(r.labels ?? {}, r.annotations ?? {}, r.state ?? "unknown")],
          below: moment.dom,
        };
      });
    },
    destroy: () => moments.forEach((m) => m.close()),
  };
}

// monitored reports whether the server scrapes targets or evaluates rules for this tenant.
export async function monitored(api: Api): Promise<boolean> {
  const [pools, some] = await Promise.all([
    api.quiet<{ scrapePools: string[] | null }>("scrape_pools"),
    api.quiet<{ groups: RuleGroup[] | null }>("rules?group_limit=1&exclude_alerts=true"),
  ]);
  return Boolean(pools?.scrapePools?.length || some?.groups?.length);
}
