// What an API answers that has nothing, that fails, or that has hostile names: 300 characters
// without a space.
export const long = "hostile_name_of_three_hundred_characters_".repeat(8).slice(0, 300);
const sentence = `cannot do it: ${long} is too long, and there are many words around it`;
const at = Math.floor(Date.now() / 60_000) * 60;
const iso = new Date(at * 1000).toISOString();
const labels = { __name__: long, job: "a", instance: long, [long.slice(0, 40)]: "b" };
const other = { ...labels, instance: "c" };
const row = (name) => ({ name, value: 12_345_678, samples: 9e9, bytes: 2 ** 40, dollarsPerMonth: 1234.5 });
const alert = { labels, annotations: { summary: sentence, [long]: "x" }, state: "firing", activeAt: iso, keepFiringSince: iso, value: "1e+300" };
const rule = (type, name, more) => ({ type, name, query: `sum by (job) (rate(${long}{job="a"}[5m])) > 0`, labels, health: "err", lastError: sentence, evaluationTime: 0.01, lastEvaluation: iso, ...more });
const rules = [rule("recording", long), rule("alerting", "Short", { state: "inactive", alerts: [], health: "ok", lastError: "" }), rule("alerting", long, { state: "firing", duration: 60, alerts: [alert, { ...alert, state: "pending" }] })];
const level = (name) => ({ level: name, objects: 123_456, bytes: 2 ** 50, samples: 1e9 });
const window = (name, i) => ({ ...level(name), start: (at - 7200 * (i + 1)) * 1000, end: (at - 7200 * i) * 1000 });
const took = (dollars) => ({ queries: 12_345_678, seconds: 9e6, bytes: 2 ** 50, requests: 12_345_678, dollars });
const sources = ["dashboard", "alert_rule", "rule_group", "client"].map((kind) => ({ kind, name: long, ...(kind === "client" ? {} : { title: `${sentence} ${kind}` }) }));
const points = (v) => Array.from({ length: 10 }, (_, i) => [at - 600 + i * 60, String(v * (i + 1))]);
const panel = (i, type, more = {}) => ({ type, title: i % 2 ? `${long} of ${sentence}` : "Requests that waited for the longest time of all", gridPos: { x: (i % 8) * 3, y: Math.floor(i / 8) * 5, w: 3, h: i < 8 ? 3 : 5 }, targets: [{ refId: "A", expr: "x", ...(type === "table" ? { instant: true, format: "table" } : {}) }], fieldConfig: { defaults: { unit: "bytes" }, overrides: [] }, ...more });
const panels = [
  ...["stat", "stat", "gauge", "bargauge", "piechart", "text", "candlestick", "timeseries"].map((t, i) => panel(i, t, { options: { content: sentence, graphMode: "area", legend: { calcs: ["mean", "max"] } } })),
  ...["table", "timeseries", "stat", "heatmap"].map((t, i) => panel(8 + i, t, { gridPos: { x: i * 6, y: 5, w: 6, h: 8 }, options: { legend: { calcs: ["lastNotNull", "min", "max", "mean"] }, unheardOf: { [long]: 1 } } })),
  ...["state-timeline", "status-history", "barchart", "alertlist"].map((t, i) => panel(12 + i, t, { gridPos: { x: i * 6, y: 13, w: 6, h: 8 }, options: { maxItems: 20, showInstances: true } })),
];

const hostile = {
  "dashboards/x.json": { title: long, description: sentence, panels, templating: { list: [{ name: "v", label: long, type: "custom", query: `${long},b`, multi: true, includeAll: true }] } },
  query: { resultType: "vector", result: [labels, other].map((metric, i) => ({ metric, value: [at, String(1e6 * (i + 1))] })) },
  query_range: { resultType: "matrix", result: [labels, other].map((metric, i) => ({ metric, values: points(1e9 * (i + 1)) })) },
  explain: { version: 3, query: "x", estimate: { seriesTouched: 1e9, samplesRead: 1e7, bytes: 3, requests: 3, functionMilliseconds: 70, dollars: 0.02 }, equivalent_sql: `SELECT ${long}`, engine: `sum(${long})`, kept: [long], selectors: [{ selector: `${long}{a="b"}`, series: 1e9, samples: 1e7, segments: 3, blocks: 4 }], cost: { lists: 1, gets: 2, bytes: 3, dollars: 0.001 }, pushed: [{ name: "0", expr: long, tree: { op: long, series: 3 }, statements: [{ driver: "duckdb", sql: long, files: [{ key: `v1/${long}`, rowGroups: { considered: 2, read: 1 }, bytes: { considered: 2, read: 1 } }], cost: {} }] }] },
  sql: { columns: [{ name: "i", type: "BIGINT" }, { name: long, type: "VARCHAR" }, { name: "value", type: "DOUBLE" }], rows: [[1, long, 1.5], [2, sentence, 2.5]] },
  "status/lake": { generation: 1, bytes: 2 ** 60, levels: ["segment", "2h", "24h"].map(level), windows: [window("segment", 0), window("2h", 1), window("24h", 2)], waiting: { segments: 1, blocks: 2, since: at * 1000 }, deletions: [{ id: "1", requested: at * 1000, selector: `{a="${long}"}`, start: 0, end: at * 1000, objects: 3 }], dollarsPerMonth: 123_456.7, first: 0, last: at * 1000, columns: { blocks: 2, samples: 3, bytes: 4, rows: [{ file: "samples", column: long, bytes: 3, bytesPerSample: 1 }, { file: "series", bytes: 1, bytesPerSample: 0.3 }] } },
  "status/tenants": { tenants: [{ tenant: long, segments: 1, blocks: 2, bytes: 3, samples: 4, start: 0, end: 0, waiting: 1, deletions: 0, dollarsPerMonth: 0 }, { tenant: "b", error: sentence }] },
  "status/active_queries": sources.map((source, i) => ({ id: `2${i}`, duration: "1234.5s", query: rules[0].query.repeat(i + 1), start: 0, end: at * 1000, step: 1, path: `/api/v1/${long}`, remote_addr: long, state: "waiting", bytes_read: 2 ** 50, requests: 9, memory_bytes: 2 ** 40, token: "9f86d081", source })),
  "status/spending": { since: at * 1000, start: 0, end: at * 1000, total: took(123_456), sources: sources.map((s, i) => ({ ...s, ...took(i) })), tokens: [{ name: long, ...took(1) }, { name: "9f86d081", ...took(0.000001) }] },
  "status/spending/tenants": [{ tenant: long, ...took(1) }],
  "status/tsdb": { totalSeries: 1e9, totalLabelValuePairs: 1e9, seriesCountByMetricName: [row(long), row("up")], seriesCountByLabelName: [row(long)], seriesCountByFocusLabelValue: [row(long)], seriesCountByLabelValuePair: [row(`${long}=${long}`)], labelValueCountByLabelName: [{ name: long, value: 3 }] },
  "status/metric_names_stats": { statsCollectedSince: at, records: [{ metricName: long, series: 1, samples: 2, bytes: 3, dollarsPerMonth: 4, queryRequestsCount: 5, lastSampleTimestamp: at }] },
  "label/__name__/values": [long, "up"],
  metadata: { [long]: [{ type: "gauge", help: sentence, unit: "a_long_name_of_a_unit" }] },
  "status/buildinfo": { promlakeVersion: "1", version: "2", revision: long },
  "status/runtimeinfo": { CWD: `/${long}`, GOMAXPROCS: 2 },
  "status/flags": { [`${long}.max-bytes`]: "1", "query.max-series": long, "web.dashboards": sentence },
  "status/tokens": { required: true, tokens: [{ id: "0123abcd", tenants: [long, "b"], access: ["read", "write"], comment: sentence }] },
  "status/doctor": { tenants: [{ tenant: "a", segments: 1, blocks: 2, bytes: 3, damaged: [{ object: `v1/${long}`, error: sentence, min_time: iso, max_time: iso }] }] },
  targets: { activeTargets: ["up", "down"].map((health) => ({ labels, discoveredLabels: labels, scrapePool: long, scrapeUrl: `http://${long}:9100/metrics`, lastError: health === "up" ? "" : sentence, lastScrape: iso, lastScrapeDuration: 0.01, health, scrapeInterval: "15s", scrapeTimeout: "10s" })), droppedTargetCounts: { [long]: 3 } },
  rules: { groups: [{ name: long, file: `/${long}.yml`, interval: 60, evaluationTime: 1, lastEvaluation: iso, rules }] },
};

const features = { features: { api: { sql: true } }, scrape_pools: { scrapePools: ["a"] } };
const empty = {
  query: { resultType: "vector", result: [] },
  query_range: { resultType: "matrix", result: [] },
  explain: { version: 3, query: "x", engine: "x", cost: { lists: 0, gets: 0, bytes: 0, dollars: 0 }, estimate: { seriesTouched: 0, samplesRead: 0, bytes: 0, requests: 0, functionMilliseconds: 0, dollars: 0 } },
  sql: { columns: [{ name: "i", type: "BIGINT" }], rows: [] },
  "status/lake": { generation: 0, bytes: 0, levels: [], windows: [], waiting: { segments: 0, blocks: 0 }, deletions: [], dollarsPerMonth: 0 },
  "status/spending": { since: 0, start: 0, end: at * 1000, total: { queries: 0, seconds: 0, bytes: 0, requests: 0, dollars: 0 }, sources: [], tokens: [] },
  "status/tsdb": { totalSeries: 0, totalLabelValuePairs: 0, seriesCountByMetricName: [], seriesCountByLabelName: [] },
  "status/metric_names_stats": { statsCollectedSince: at, records: [] },
  "status/flags": {},
  "status/runtimeinfo": {},
  targets: { activeTargets: [] },
  rules: { groups: [] },
};

const answered = (all) => (path) => {
  const data = all[path] ?? features[path] ?? [];
  // What nobody asked for is beside the status.
  return { status: 200, json: { status: "success", ...(path === "status/metric_names_stats" ? data : { data }) } };
};
export const contents = {
  empty: answered(empty),
  erroneous: (path) => (features[path] ? answered({})(path) : { status: 422, json: { status: "error", errorType: "execution", error: sentence } }),
  hostile: answered(hostile),
};
