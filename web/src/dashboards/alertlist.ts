import { cut, h } from "../dom";
import type { Context } from "../context";
import { fits, type Matcher, type MatchOp } from "../explore/syntax";
import { alerting, type Alert } from "../monitoring/groups";
import { chips, mark, when } from "../monitoring/listing";
import { num, order, table } from "../table";
import { inText, type Scope } from "./interpolate";
import { number, object, text, type Json } from "./json";
import type { PanelSpec } from "./model";

// Entry is a rule of an alert list, with the alerts that the panel lets through.
export interface Entry {
  name: string;
  state: string;
  labels: Record<string, string>;
  alerts: Alert[];
}

// matchers reads matchers of labels such as {severity=~"page"}; braces and quotes may be missing.
const matchers = (source: string): Matcher[] =>
  [...source.matchAll(/([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,{}"]*))/g)].map(([, label, op, quoted, bare]) => ({ label: label!, op: op as MatchOp, value: quoted?.replace(/\\(.)/g, "$1") ?? bare! }));

const since = (e: Entry) => e.alerts.reduce((t, a) => Math.min(t, Date.parse(a.activeAt ?? "") || Infinity), Infinity);

// listed are the rules that the options of a panel let through, in their order.
export function listed(all: readonly Entry[], options: Json, scope: Scope): Entry[] {
  const states = object(options["stateFilter"]);
  const shown: Record<string, boolean> = { firing: states["firing"] !== false, pending: states["pending"] !== false, inactive: states["normal"] === true || states["inactive"] === true };
  const name = inText(text(options["alertName"]), scope).toLowerCase();
  const wanted = matchers(inText(text(options["alertInstanceLabelFilter"]), scope));
  const passes = (labels: Record<string, string>) => wanted.every((m) => fits(m, labels));
  const entries = all
    .map((e) => ({ ...e, alerts: e.alerts.filter((a) => passes(a.labels) && shown[a.state]) }))
    .filter((e) => e.name.toLowerCase().includes(name) && (e.alerts.length > 0 || (e.state === "inactive" && shown["inactive"] && passes(e.labels))));
  const urgency = (e: Entry) => ["firing", "pending", "inactive"].indexOf(e.state);
  const time = (e: Entry) => (since(e) === Infinity ? 0 : since(e));
  const compare = [(a: Entry, b: Entry) => order(a.name, b.name), (a: Entry, b: Entry) => order(b.name, a.name), (a: Entry, b: Entry) => urgency(a) - urgency(b), (a: Entry, b: Entry) => time(a) - time(b), (a: Entry, b: Entry) => time(b) - time(a)];
  return entries.sort(compare[(number(options["sortOrder"]) ?? 1) - 1] ?? compare[0]);
}

// alertList shows the alerting rules of this server and their alerts.
export async function alertList(spec: PanelSpec, ctx: Context, scope: Scope): Promise<HTMLElement> {
  const rules = await alerting(ctx.api);
  const all = listed(rules.map(({ r, active }) => ({ name: r.name, state: r.state ?? "unknown", labels: { ...r.labels, alertname: r.name }, alerts: active })), spec.options, scope);
  if (text(spec.options["viewMode"]) === "stat") return h("div", { class: "stats" }, h("div", { class: "stat" }, h("div", { class: "stat-value" }, all.length)));
  const most = number(spec.options["maxItems"]) ?? 10;
  if (!all.length) return h("p", { class: "muted" }, "No alerts");
  const labels = spec.options["showInstances"] === true;
  const rows = all.slice(0, most).map((e) => {
    const began = since(e) < Infinity ? new Date(since(e)).toISOString() : "";
    const shown = [h("div", {}, ...cut(e.name)), ...(labels ? e.alerts.slice(0, most).map((a) => h("div", {}, ...mark(a.state).show, ...chips(a.labels, ["alertname"]).show)) : [])];
    return [{ by: e.name, show: shown }, mark(e.state), { by: began, show: [began && when(began, ctx.zone())] }, num(e.alerts.length)];
  });
  return table(`Alerts of ${spec.title || "the panel"}`, ["Rule", "State", "Active since", "Alerts"], rows, all.length > most ? `The first ${most} of ${all.length} rules` : "");
}
