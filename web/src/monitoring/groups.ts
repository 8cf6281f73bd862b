import type { Labels } from "../answer";
import type { Api } from "../api";

// The rules of https://prometheus.io/docs/prometheus/latest/querying/api/#rules, and the alerts of
// the alerting rules. Times are RFC 3339, durations are seconds.

export interface Alert {
  labels: Labels;
  annotations: Labels;
  state: string;
  activeAt?: string;
  keepFiringSince?: string;
  value: string;
}

export interface Rule {
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

export interface RuleGroup {
  name: string;
  file: string;
  interval: number;
  rules: Rule[];
  evaluationTime: number;
  lastEvaluation: string;
}

// groups returns the groups of rules, of one type or all.
export async function groups(api: Api, type?: string): Promise<RuleGroup[]> {
  return (await api.get<{ groups: RuleGroup[] | null }>("rules", { type })).data.groups ?? [];
}

// states are those of an alerting rule, the most urgent first.
export const states = ["firing", "pending", "inactive", "unknown"];
const urgency = (state = "unknown") => states.indexOf(state);

// alerting returns the alerting rules, and the active alerts of each, firing ones first.
export async function alerting(api: Api): Promise<{ g: RuleGroup; r: Rule; active: Alert[] }[]> {
  const all = (await groups(api, "alert")).flatMap((g) => g.rules.map((r) => ({ g, r, active: [...(r.alerts ?? [])].sort((a, b) => urgency(a.state) - urgency(b.state)) })));
  return all.sort((a, b) => urgency(a.r.state) - urgency(b.r.state));
}

