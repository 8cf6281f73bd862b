// Dashboards with the structure of those that people use, written after Grafana's documentation,
// and the metrics of a cluster that one of them shows.

const at = (x, y, w, h) => ({ x, y, w, h });
const steps = (...s) => ({ mode: "absolute", steps: s.map(([value, color]) => ({ value, color })) });
const defaults = (unit, more = {}) => ({ defaults: { unit, ...more }, overrides: [] });
const target = (expr, legendFormat = "", more = {}) => ({ refId: "A", expr, legendFormat, ...more });
const query = (name, text, more = {}) => ({ name, type: "query", datasource: { type: "prometheus", uid: "${DS}" }, query: { query: text, refId: "V" }, ...more });

export const hostile = `<img src=x onerror="window.hit=1"><script>window.hit=1</script>`;

// A machine's dashboard: chained variables, old graph panels beside new ones, rows.
export const nodeExporter = {
  __inputs: [{ name: "DS_PROMETHEUS", type: "datasource", pluginId: "prometheus" }],
  title: "Node exporter",
  schemaVersion: 39,
  templating: {
    list: [
      { name: "DS", type: "datasource", query: "prometheus" },
      query("node", 'label_values(node_load1{job="$job"}, instance)', { label: "Host" }),
      query("job", "label_values(node_load1, job)", { label: "Job" }),
      query("device", 'label_values(node_network_receive_bytes_total{instance="$node"}, device)', { multi: true, includeAll: true, regex: "/^(lo|e.*)$/", current: { value: ["$__all"] } }),
    ],
  },
  panels: [
    { type: "row", title: "Quick look", gridPos: at(0, 0, 24, 1), panels: [] },
    { type: "gauge", title: "CPU busy", gridPos: at(0, 1, 4, 4), datasource: "${DS_PROMETHEUS}", fieldConfig: defaults("percent", { min: 0, max: 100, thresholds: steps([null, "green"], [85, "#EAB839"], [95, "rgba(245, 54, 54, 0.9)"]) }), targets: [target('100 * (1 - avg(rate(node_cpu_seconds_total{mode="idle",instance="$node"}[$__rate_interval])))')] },
    { type: "bargauge", title: "Memory", gridPos: at(4, 1, 6, 4), fieldConfig: defaults("bytes", { min: 0 }), options: { displayMode: "gradient", orientation: "horizontal" }, targets: [target('node_memory_MemTotal_bytes{instance="$node"}', "Total", { instant: true }), target('node_memory_MemAvailable_bytes{instance="$node"}', "Available", { refId: "B", instant: true })] },
    { type: "stat", title: "Uptime", gridPos: at(10, 1, 4, 4), fieldConfig: defaults("s", { decimals: 1, color: { mode: "thresholds" } }), options: { graphMode: "none" }, targets: [target('node_time_seconds{instance="$node"} - node_boot_time_seconds{instance="$node"}')] },
    {
      type: "graph",
      title: "Network of $node",
      gridPos: at(0, 5, 12, 8),
      yaxes: [{ format: "bps", logBase: 1 }, { format: "short" }],
      fill: 2,
      legend: { show: true, values: true, current: true, max: true },
      seriesOverrides: [{ alias: "/.* out$/", transform: "negative-Y" }],
      targets: [target('rate(node_network_receive_bytes_total{instance="$node",device=~"$device"}[$__rate_interval]) * 8', "{{device}} in"), target('rate(node_network_transmit_bytes_total{instance="$node",device=~"$device"}[$__rate_interval]) * 8', "{{device}} out", { refId: "B" })],
    },
    { type: "timeseries", title: "Load", gridPos: at(12, 5, 12, 8), fieldConfig: defaults("short", { custom: { thresholdsStyle: { mode: "line" } }, thresholds: steps([null, "green"], [1, "red"]) }), targets: [target('node_load1{instance="$node"}', "{{ instance }}")] },
    { type: "row", title: "Memory details", collapsed: true, gridPos: at(0, 13, 24, 1), panels: [{ type: "timeseries", title: "Cached", gridPos: at(0, 14, 24, 6), fieldConfig: defaults("bytes"), targets: [target('node_memory_Cached_bytes{instance="$node"}')] }] },
  ],
};

// A cluster's dashboard: panels and rows that variables repeat, tables of several queries.
export const kubernetes = {
  title: "Kubernetes / Namespaces",
  annotations: { list: [{ name: "Deployments", enable: true, datasource: { type: "loki", uid: "l" }, expr: "{app=\"x\"}" }] },
  templating: {
    list: [
      query("namespace", "label_values(kube_pod_info, namespace)", { multi: true, includeAll: true, sort: 2, current: { value: ["$__all"] } }),
      { name: "resolution", type: "interval", query: "30s,1m,5m", current: { value: "1m" } },
      { name: "search", type: "adhoc" },
    ],
  },
  panels: [
    {
      type: "table",
      title: "Pods",
      gridPos: at(0, 0, 24, 8),
      fieldConfig: { defaults: {}, overrides: [{ matcher: { id: "byName", options: "Memory" }, properties: [{ id: "unit", value: "bytes" }, { id: "custom.width", value: 100 }, { id: "thresholds", value: steps([null, "green"], [1e6, "red"]) }] }] },
      targets: [target('sum by (namespace, pod) (kube_pod_info{namespace=~"$namespace"})', "", { format: "table", instant: true }), target('sum by (namespace, pod) (container_memory_working_set_bytes{namespace=~"$namespace"})', "", { refId: "B", format: "table", instant: true })],
      transformations: [{ id: "merge", options: {} }, { id: "organize", options: { excludeByName: { Time: true, "Value #A": true }, indexByName: { pod: 0, namespace: 1 }, renameByName: { "Value #B": "Memory", pod: "Pod" } } }, { id: "extractFields", options: {} }],
      options: { sortBy: [{ displayName: "Memory", desc: true }] },
    },
    { type: "stat", title: "Pods of $namespace", repeat: "namespace", maxPerRow: 2, gridPos: at(0, 8, 12, 4), fieldConfig: defaults("none", { mappings: [{ type: "value", options: { 1: { text: "one pod" } } }] }), targets: [target('count(kube_pod_info{namespace="$namespace"})')] },
    { type: "row", title: "Namespace $namespace", repeat: "namespace", gridPos: at(0, 12, 24, 1), panels: [{ type: "timeseries", title: "CPU", gridPos: at(0, 13, 24, 7), fieldConfig: defaults("short", { custom: { stacking: { mode: "percent" } } }), targets: [target('sum by (pod) (rate(container_cpu_usage_seconds_total{namespace="$namespace"}[$resolution]))', "{{pod}}")] }] },
  ],
};

// The dashboard of a Go program: classic histograms as a heatmap, units of time, a fixed colour.
export const goRuntime = {
  dashboard: {
    title: "Go runtime",
    templating: { list: [{ name: "job", type: "custom", query: "Promlake : promlake, other", multi: false, current: { value: "promlake" } }, { name: "q", type: "constant", query: "0.99" }] },
    panels: [
      { type: "stat", title: "Version", gridPos: at(0, 0, 6, 4), options: { reduceOptions: { fields: "/^version$/" } }, targets: [target('go_info{job="$job"}', "", { format: "table", instant: true })] },
      { type: "timeseries", title: "Goroutines of ${job:text}", gridPos: at(6, 0, 18, 8), fieldConfig: defaults("short", { color: { mode: "fixed", fixedColor: "purple" } }), options: { legend: { calcs: ["mean", "max"], displayMode: "table" } }, targets: [target('go_goroutines{job="$job"}', "goroutines")] },
      { type: "heatmap", title: "Rule evaluations", gridPos: at(0, 8, 12, 8), options: { yAxis: { unit: "s" } }, targets: [target('sum by (le) (increase(prometheus_rule_evaluation_duration_histogram_seconds_bucket{job="$job"}[$__interval]))', "{{le}}", { format: "heatmap" })] },
      { type: "timeseries", title: "Pauses", gridPos: at(12, 8, 12, 8), fieldConfig: defaults("s"), targets: [target('go_gc_duration_seconds{job="$job",quantile!="0"} or vector($q)', "p{{quantile}}")] },
    ],
  },
};

// A dashboard of an old Grafana: rows with spans, single stats.
export const legacy = {
  title: "Old rows",
  rows: [
    {
      title: "Top",
      height: "200px",
      panels: [
        { type: "singlestat", title: "Targets up", span: 4, format: "percentunit", valueName: "current", thresholds: "0.5,0.9", colors: ["red", "orange", "green"], colorValue: true, targets: [target("avg(up)")] },
        { type: "graph", title: "Scrapes", span: 8, stack: true, percentage: false, yaxes: [{ format: "s" }], targets: [target("scrape_duration_seconds", "{{job}}")] },
      ],
    },
  ],
};

// What cannot be shown as in Grafana, and texts that look like markup.
export const strange = {
  title: hostile,
  description: hostile,
  templating: { list: [query("shown", 'query_result(up{job="node"})', { label: hostile, regex: '/job="([^"]*)"/' }), { name: "markup", type: "custom", query: hostile.replaceAll(",", "\\,"), multi: true, current: { value: [hostile] } }] },
  panels: [
    { type: "text", title: hostile, gridPos: at(0, 0, 12, 4), options: { mode: "html", content: `${hostile} of $shown` } },
    { type: "candlestick", title: "Shares", gridPos: at(12, 0, 12, 6), targets: [target("sum by (job) (up)")] },
    { type: "timeseries", title: `${hostile} $markup`, gridPos: at(0, 6, 12, 8), fieldConfig: { defaults: { unit: hostile }, overrides: [{ matcher: { id: "byValue", options: {} }, properties: [] }] }, targets: [target('up{job="$shown"}', `${hostile} {{job}}`)] },
    { type: "timeseries", title: "Logs", datasource: { type: "loki", uid: "x" }, gridPos: at(12, 6, 12, 6), targets: [target('{app="x"}')] },
    { type: "timeseries", title: "Broken", gridPos: at(0, 14, 12, 6), targets: [target("sum(up")] },
    { type: "stat", title: "Nothing", gridPos: at(12, 14, 12, 6), targets: [target("no_such_metric")] },
  ],
};

// cluster is the text exposition of two namespaces, for the minute before now (in ms).
export function cluster(now) {
  const lines = [];
  for (const [namespace, pods] of [["alpha", ["web-1", "web-2"]], ["beta", ["db-1"]]]) {
    for (const [i, pod] of pods.entries()) {
      const labels = `{namespace="${namespace}",pod="${pod}"}`;
      for (let t = now - 180_000; t <= now; t += 15_000) {
        lines.push(`kube_pod_info${labels} 1 ${t}`, `container_memory_working_set_bytes${labels} ${(i + 1) * 1048576} ${t}`, `container_cpu_usage_seconds_total${labels} ${(t % 1e9) / 1000} ${t}`);
      }
    }
  }
  return lines.join("\n") + "\n";
}
