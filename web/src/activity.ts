import operations from "../../infra/grafana/dashboards/promlake-operations.json";
import type { Answer, Series } from "./answer";
import { queryParams, type Api } from "./api";
import { filled } from "./format";

// What the server does now: rates and prices, from the metrics that Promlake stores of itself
// (docs/grafana.md). The queries are those of the shipped operations dashboard, so both agree.

export interface Rate {
  of: string; // the panel of the dashboard
  name: string;
  value: number; // a second; of prices, a day
}

export interface Activity {
  rates: Rate[]; // requests and samples
  bytes: Rate[];
  prices: Rate[]; // dollars a day by component; none if no metrics of Promlake are stored
}

const requests = ["Samples written", "Write requests", "Query requests", "Store requests"];
const volumes = ["Store bytes"];
const bill = ["Dollars a day by component"];

// activity asks for the rates of the last five minutes before a time (ms).
export async function activity(api: Api, at: number, asOf: number | undefined): Promise<Activity> {
  const all = (titles: readonly string[]) => Promise.all(titles.map((t) => panel(api, t, at, asOf))).then((x) => x.flat());
  const [rates, bytes, prices] = await Promise.all([all(requests), all(volumes), all(bill)]);
  return { rates: rates.filter((r) => r.value > 0), bytes: bytes.filter((r) => r.value > 0), prices };
}

async function panel(api: Api, title: string, at: number, asOf: number | undefined): Promise<Rate[]> {
  const targets = operations.panels.find((p) => p.title === title && p.type === "timeseries")?.targets ?? [];
  const answers = await Promise.all(
    targets.map(async (t) => {
      const expr = t.expr.replaceAll(/\$(job|instance)\b/g, ".*").replaceAll("$__rate_interval", "5m");
      const { data } = await api.get<Answer>("query", queryParams(expr, at, asOf));
      return (data.result as Series[]).map((s) => ({ of: title, name: filled(t.legendFormat, s.metric).trim() || "all", value: Number(s.value?.[1]) })).filter((r) => Number.isFinite(r.value));
    }),
  );
  return answers.flat().sort((a, b) => b.value - a.value);
}
