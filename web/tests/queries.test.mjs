// What Explore makes of queries, as tables: the builder's fields, the graph of a metric, hints, the
// search among metrics, and the texts for senders.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bundled } from "./bundled.mjs";

test("the builder reads what it writes", async () => {
  const { read, write } = await bundled("explore/query.ts");
  for (const [text, written] of [
    ["", ""],
    ["up", "up"],
    [`up{job='a', x=~"b.*"}`, 'up{job="a", x=~"b.*"}'],
    ["{__name__=~`node_.+`}", '{__name__=~"node_.+"}'],
    [`{"my.metric", "my.label"!="x"}`, '{"my.metric", "my.label"!="x"}'],
    [`x{a="\\u00e9\\n\\x41\\101\\""}`, 'x{a="é\\nAA\\""}'],
    ["rate(x_total[5m])", "rate(x_total[5m])"],
    ["RATE(x_total[300])".toLowerCase(), "rate(x_total[300])"],
    ["sum(rate(x_total[1h30m])) by (job, instance)", "sum by (job, instance) (rate(x_total[1h30m]))"],
    [`avg by ("my.label") (x{a="# no comment"})`, 'avg by ("my.label") (x{a="# no comment"})'],
    ["count(x)", "count(x)"],
    ["histogram_quantile(0.95, sum by (le) (rate(x_bucket[5m])))", "histogram_quantile(0.95, sum by (le) (rate(x_bucket[5m])))"],
    ["histogram_quantile(0.5, x)", "histogram_quantile(0.5, x)"],
  ]) {
    const q = read(text);
    assert.equal(write(q), written, text);
    assert.deepEqual(read(written), q, text);
  }
  for (const text of ["x offset 5m", "x @ 3", "rate(x[5m] offset 1m)", "rate(x[5m:1m])", "rate(x[5m + 1m])", "x + y", "topk(5, x)", "sum without (a) (x)", "abs(x)", "x # why", "sum( # why\n x)", "(x)", "sum(", "x[5m]", "histogram_quantile(y, x)", "quantile_over_time(0.5, x[5m])", "1", "sum(sum(x))", "rate(sum(x))"]) {
    assert.equal(read(text), undefined, text);
  }
  // A matcher that has no label yet is no part of the text.
  assert.equal(write({ ...read("up"), matchers: [{ label: "", op: "=", value: "" }] }), "up");
});

test("a metric has the graph of its kind", async () => {
  const { divider, graphOf, kindOf, rangeFor } = await bundled("explore/choose.ts");
  const types = { a_total: "counter", b: "gauge", h: "histogram", s: "summary", g: "gaugehistogram", x_total: "gauge", c: "counter", u: "unknown" };
  for (const [name, kind, series, by, wanted] of [
    ["a_total", "counter", 9, undefined, "sum(rate(a_total[5m]))"],
    ["c_total", "counter", 9, undefined, "sum(rate(c_total[5m]))"],
    ["unknown_total", "counter", 9, undefined, "sum(rate(unknown_total[5m]))"],
    ["x_total", "gauge", 1, undefined, "x_total"],
    ["h", "histogram", 9, undefined, "histogram_quantile(0.95, sum(rate(h[5m])))"],
    ["h_bucket", "bucket", 900, undefined, "histogram_quantile(0.95, sum by (le) (rate(h_bucket[5m])))"],
    ["unknown_bucket", "bucket", 9, undefined, "histogram_quantile(0.95, sum by (le) (rate(unknown_bucket[5m])))"],
    ["h_count", "counter", 9, undefined, "sum(rate(h_count[5m]))"],
    ["s_sum", "counter", 9, undefined, "sum(rate(s_sum[5m]))"],
    ["s", "summary", 9, undefined, "max by (quantile) (s)"],
    ["g", "gaugehistogram", 9, undefined, "histogram_quantile(0.95, sum(g))"],
    ["b", "gauge", 20, undefined, "b"],
    ["b", "gauge", 21, "job", "avg by (job) (b)"],
    ["b", "gauge", 21, undefined, "avg(b)"],
    ["my.metric", "", 1, undefined, '{"my.metric"}'],
    ["u", "", 21, "my.label", 'avg by ("my.label") (u)'],
    ["items_count", "", 1, undefined, "items_count"],
  ]) {
    const found = kindOf(name, (n) => types[n]);
    assert.deepEqual([found, graphOf(name, found, series, "5m", by)], [kind, wanted], name);
  }
  assert.deepEqual([rangeFor(5_000, 1_000), rangeFor(15_000, 1_000), rangeFor(60_000, 1_000), rangeFor(undefined, 1_000), rangeFor(15_000, 3_600_000)], ["1m", "1m", "5m", "5m", "1h"]);
  const counts = (o) => Object.entries(o).map(([name, value]) => ({ name, value }));
  assert.equal(divider(counts({ __name__: 1, pod: 4000, job: 1, zone: 3, node: 12 })), "node");
  assert.equal(divider(counts({ pod: 4000, job: 1 })), undefined);
});

test("mistakes have hints, and what to write instead", async () => {
  const { hints, nearest } = await bundled("explore/hints.ts");
  const kind = (m) => (/_total$/.test(m) ? "counter" : /_bucket$/.test(m) ? "bucket" : m === "summary" ? "summary" : m === "native" ? "histogram" : "gauge");
  const facts = { kind, interval: (s) => (s === "unknown_total" ? undefined : 15_000), step: 1_000 };
  for (const [text, says, ...mended] of [
    ["a_total", /counts from the start/, "rate(a_total[1m])"],
    ["unknown_total", /counts from the start/, "rate(unknown_total[5m])"],
    ['sum by (x) (a_total{b="c"} offset 5m)', /counts from the start/, 'sum by (x) (rate(a_total{b="c"}[1m] offset 5m))'],
    ["a_total / b", /a_total counts/, "rate(a_total[1m]) / b"],
    ["histogram_quantile(0.9, native)", /native counts/, "histogram_quantile(0.9, rate(native[1m]))"],
    ["rate(a_total[20s])", /20s may hold fewer/, "rate(a_total[1m])"],
    ["increase(a_total[10] offset 5m)", /are 15s apart/, "increase(a_total[1m] offset 5m)"],
    ["sum(histogram_quantile(0.9, rate(a_bucket[5m])))", /cannot be added up/, "histogram_quantile(0.9, sum by (le) (rate(a_bucket[5m])))"],
    ["avg by (job) (histogram_quantile(0.9, sum by (le, job, pod) (rate(a_bucket[5m]))))", /cannot be averaged/, "histogram_quantile(0.9, sum by (job, le) (rate(a_bucket[5m])))"],
    ["sum(histogram_quantile(0.9, sum(rate(native[5m]))))", /cannot be added up/, "histogram_quantile(0.9, sum(rate(native[5m])))"],
    ["avg without (pod) (histogram_quantile(0.9, rate(a_bucket[5m])))", /cannot be averaged/],
    ["sum(summary)", /upper bound/, "max(summary)"],
    ['avg(g{quantile="0.9"})', /upper bound/, 'max(g{quantile="0.9"})'],
    ["histogram_quantile(0.9, sum(rate(a_bucket[5m])))", /needs the label le/, "histogram_quantile(0.9, sum by (le) (rate(a_bucket[5m])))"],
    ["histogram_quantile(0.9, sum(rate(a_bucket[5m])) by (job))", /needs the label le/, "histogram_quantile(0.9, sum(rate(a_bucket[5m])) by (job, le))"],
    ["histogram_quantile(0.9, sum without (le, pod) (rate(a_bucket[5m])))", /needs the label le/, "histogram_quantile(0.9, sum without (pod) (rate(a_bucket[5m])))"],
  ]) {
    const found = hints(text, facts);
    assert.equal(found.length, 1, text);
    assert.match(found[0].text, says, text);
    assert.deepEqual(found[0].mends.map((m) => m.expr), mended, text);
    for (const expr of mended) assert.deepEqual(hints(expr, facts), [], `${text} is mended`);
  }
  for (const text of ["b", "rate(a_total[30s])", "rate(unknown_total[1s])", "count(a_total)", "a_total > 3", "absent(a_total)", "rate(sum(a_total)[5m:1m])", "max(summary)", "max_over_time(b[1s])", "histogram_quantile(0.9, sum(rate(native[5m])))", "histogram_quantile(0.9, sum without (pod) (rate(a_bucket[5m])))", "sum(", ""]) {
    assert.deepEqual(hints(text, facts), [], text);
  }
  assert.deepEqual(nearest("node_laod1", ["up", "node_load15", "node_load1", "go_goroutines"]), ["node_load1", "node_load15"]);
  assert.deepEqual(nearest("prd", ["prod", "dev", "staging"]), ["prod"]);
  assert.deepEqual(nearest("xyz", ["prod", "dev"]), []);
});

test("metrics are found by name and by help text", async () => {
  const { find, join } = await bundled("explore/metrics.ts");
  const all = join(
    ["a_requests_total", "requests", "size_bytes_bucket", "toString"],
    { a_requests_total: [{ type: "counter", help: "All of them.", unit: "" }], requests: [{ type: "gauge", help: "", unit: "" }], size_bytes: [{ type: "histogram", help: "Size of Requests.", unit: "bytes" }] },
    [{ metricName: "requests", series: 7, queryRequestsCount: 0 }, { metricName: "size_bytes_bucket", series: 90, queryRequestsCount: 3 }],
  );
  assert.deepEqual(all.map((m) => [m.kind, m.unit, m.series, m.asked]), [["counter", "", undefined, undefined], ["gauge", "", 7, 0], ["bucket", "bytes", 90, 3], ["", "", undefined, undefined]]);
  const names = (text, order = "name") => find(all, text, order).map((m) => m.name);
  assert.deepEqual(names("REQUESTS"), ["requests", "a_requests_total", "size_bytes_bucket"]);
  assert.deepEqual(names("of size"), ["size_bytes_bucket"]);
  assert.deepEqual(names("", "series").slice(0, 2), ["size_bytes_bucket", "requests"]);
  assert.deepEqual(names("nothing"), []);
});

test("senders get the address, the tenant and the place of a token", async () => {
  const { senders } = await bundled("explore/senders.ts");
  const plain = senders("http://127.0.0.1:9009", false, "");
  assert.deepEqual(plain.map((s) => s.name), ["Prometheus", "OpenTelemetry Collector", "Telegraf", "Grafana Alloy"]);
  assert.equal(plain[0].text, "remote_write:\n  - url: http://127.0.0.1:9009/api/v1/write\n");
  for (const s of plain) assert.doesNotMatch(s.text, /TOKEN|OrgID|headers/, s.name);
  const full = senders("https://x.example/prom", true, 'team "a"');
  for (const s of full) assert.match(s.text, /https:\/\/x\.example\/prom[^]*TOKEN/, s.name);
  for (const s of full) assert.ok(s.text.includes('"team \\"a\\""'), s.name);
});
