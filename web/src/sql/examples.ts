// Statements to begin with. $start and $end are the time range of the page.
export const examples: readonly (readonly [title: string, statement: string])[] = [
  ["Series by metric", `SELECT metric, count(*) AS series\nFROM series GROUP BY metric ORDER BY series DESC`],
  ["Last values", `SELECT metric, labels, arg_max(value, ts) AS value, max(ts) AS at\nFROM samples WHERE metric = 'up' AND ts BETWEEN $start AND $end\nGROUP BY ALL ORDER BY ALL`],
  ["Averages over time", `SELECT time_bucket(INTERVAL 1 MINUTE, ts) AS minute, metric, avg(value) AS value\nFROM samples WHERE metric LIKE 'node_load%' AND ts BETWEEN $start AND $end\nGROUP BY ALL ORDER BY ALL`],
  ["PromQL in SQL", `SELECT ts, labels['mode'] AS mode, value\nFROM promql('sum by (mode) (rate(node_cpu_seconds_total{mode!="idle"}[1m]))', $start, $end, INTERVAL 1 MINUTE)\nORDER BY ts, mode`],
  ["Targets that were down", `SELECT labels['job'] AS job, labels['instance'] AS instance,\n  count(DISTINCT date_trunc('minute', ts)) AS minutes\nFROM samples WHERE metric = 'up' AND value = 0 AND ts BETWEEN $start AND $end\nGROUP BY ALL ORDER BY minutes DESC`],
  ["What a statement reads", `EXPLAIN SELECT count(*) FROM samples\nWHERE metric = 'up' AND labels['job'] = 'node' AND ts BETWEEN $start AND $end`],
];
