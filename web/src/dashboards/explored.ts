import { unitOf, type Unit } from "../format";
import { emptyPanel, type PanelState, type State } from "../state";
import { formatDuration, parseDuration } from "../time";
import { list, object, text, type Json } from "./json";

// Explore's panels as a dashboard of Grafana (https://grafana.com/docs/grafana/latest/, "JSON
// model"), and back.

const units: Record<Unit, string> = { number: "short", bytes: "bytes", "bytes/s": "binBps", seconds: "s", percent: "percentunit", time: "dateTimeAsIso" };
const source = { type: "prometheus", uid: "${datasource}" };

// dashboardOf makes a dashboard of the panels that have a query.
export function dashboardOf(title: string, s: Pick<State, "panels" | "range" | "refresh" | "zone">): Json {
  const { length, end } = s.range;
  const time = end === undefined ? { from: `now-${formatDuration(length)}`, to: "now" } : { from: new Date(end - length).toISOString(), to: new Date(end).toISOString() };
  return {
    title,
    schemaVersion: 39,
    editable: true,
    timezone: s.zone === "utc" ? "utc" : "browser",
    time,
    refresh: s.refresh ? formatDuration(s.refresh) : "",
    templating: { list: [{ name: "datasource", label: "Data source", type: "datasource", query: "prometheus" }] },
    panels: s.panels.filter((g) => g.expr).map(panel),
  };
}

function panel(g: PanelState, i: number, all: readonly PanelState[]): Json {
  const unit = units[unitOf(g.expr)];
  const own: Record<PanelState["tab"], Json> = {
    graph: {
      type: "timeseries",
      fieldConfig: { defaults: { unit, custom: { fillOpacity: g.stacked ? 35 : 0, stacking: { mode: g.stacked ? "normal" : "none", group: "A" }, scaleDistribution: g.log ? { type: "log", log: 10 } : { type: "linear" } } }, overrides: [] },
      options: { legend: { showLegend: true, displayMode: "table", placement: "bottom", calcs: ["lastNotNull", "min", "max", "mean"] } },
    },
    heatmap: { type: "heatmap", fieldConfig: { defaults: {}, overrides: [] }, options: { calculate: false, yAxis: { unit: /_bytes/.test(g.expr) ? "bytes" : /_seconds/.test(g.expr) ? "s" : "short" } } },
    table: { type: "table", fieldConfig: { defaults: { unit }, overrides: [] }, options: {} },
  };
  const how = { graph: { range: true, format: "time_series", legendFormat: "__auto" }, heatmap: { range: true, format: "heatmap", legendFormat: "{{le}}" }, table: { instant: true, range: false, format: "table" } }[g.tab];
  return {
    id: i + 1,
    title: g.expr.replace(/\s+/g, " "),
    gridPos: { x: (i % 2) * 12, y: Math.floor(i / 2) * 9, w: all.length > 1 ? 12 : 24, h: 9 },
    datasource: source,
    ...(g.step === undefined ? {} : { interval: formatDuration(g.step) }),
    targets: [{ refId: "A", datasource: source, expr: g.expr, ...how, ...(g.exemplars ? { exemplar: true } : {}) }],
    ...own[g.tab],
  };
}

// panelsOf reads Explore's panels from a dashboard that dashboardOf made. It is undefined if the
// dashboard has anything else, which saving it again would lose.
export function panelsOf(d: Json): PanelState[] | undefined {
  const panels = list(d["panels"]).map((p): PanelState => {
    const target = list(p["targets"])[0] ?? {};
    const custom = object(object(object(p["fieldConfig"])["defaults"])["custom"]);
    const step = parseDuration(text(p["interval"]));
    return {
      ...emptyPanel(text(target["expr"])),
      tab: p["type"] === "heatmap" || p["type"] === "table" ? p["type"] : "graph",
      stacked: object(custom["stacking"])["mode"] === "normal",
      log: object(custom["scaleDistribution"])["type"] === "log",
      exemplars: target["exemplar"] === true,
      ...(step === undefined ? {} : { step }),
    };
  });
  const again = dashboardOf("", { panels, range: { length: 0 }, refresh: 0, zone: "utc" });
  const same = (key: string) => JSON.stringify(again[key]) === JSON.stringify(d[key]);
  return panels.length && same("panels") && same("templating") ? panels : undefined;
}
