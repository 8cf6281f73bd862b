// What the page decides without a browser, in tables.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bundled } from "./bundled.mjs";

const { compared } = await bundled("promql.ts");

for (const [query, expected] of [
  ["up == 0", ["up", 0]],
  ["up", undefined],
  ["rate(x[5m]) > 0.5", ["rate(x[5m])", 0.5]],
  ["5 < x", ["x", 5]],
  ["(sum by (a) (x)) >= (10)", ["(sum by (a) (x))", 10]],
  ["(x / y > -1e3)", ["x / y", -1000]],
  ["x > 2 * 1024 * 1024", ["x", 2097152]],
  ["time() - x > 5m", ["time() - x", 300]],
  ["# a comment\nx != 1", ["x", 1]],
  ["x > bool 1", undefined],
  ["x > y", undefined],
  ["x > on (a) y", undefined],
  ["x > 1 and y < 2", undefined],
  ["x > NaN", undefined],
  ["x + 1", undefined],
]) {
  test(`compared reads ${query}`, () => assert.deepEqual(compared(query), expected && { expr: expected[0], bound: expected[1] }));
}

const { transform } = await bundled("dashboards/transform.ts");
const column = (title) => ({ name: title, title, refId: "A" });
const grid = { columns: ["job", "instance", "Value"].map(column), rows: [["a", "x", 1], ["a", "y", 3], ["b", "z", null], ["b", "w", 5]] };
const scope = new Map([["least", { values: ["3"], texts: ["3"], several: false, raw: false }]]);
const filter = (id, value, more = {}) => ({ id: "filterByValue", options: { type: "include", match: "any", filters: [{ fieldName: "Value", config: { id, options: typeof value === "object" ? value : { value } } }], ...more } });
const calculate = (options) => ({ id: "calculateField", options });

for (const [what, transformations, columns, rows] of [
  ["groups and sums", [{ id: "groupBy", options: { fields: { job: { operation: "groupby" }, Value: { operation: "aggregate", aggregations: ["sum", "max"] } } } }], ["job", "Value (sum)", "Value (max)"], [["a", 4, 3], ["b", 5, 5]]],
  ["calculates over texts", [{ id: "groupBy", options: { fields: { job: { operation: "groupby" }, instance: { operation: "aggregate", aggregations: ["lastNotNull", "distinctCount", "sum"] } } } }], ["job", "instance (lastNotNull)", "instance (distinctCount)", "instance (sum)"], [["a", "y", 2, null], ["b", "w", 2, null]]],
  ["counts", [{ id: "groupBy", options: { fields: { job: { operation: "groupby" }, instance: { operation: "count" } } } }], ["job", "instance (count)"], [["a", 2], ["b", 2]]],
  ["groups by nothing", [{ id: "groupBy", options: { fields: {} } }], ["job", "instance", "Value"], grid.rows],
  ["adds a column of a row's values", [calculate({ mode: "reduceRow", reduce: { reducer: "sum" } })], ["job", "instance", "Value", "Total"], [["a", "x", 1, 1], ["a", "y", 3, 3], ["b", "z", null, null], ["b", "w", 5, 5]]],
  ["multiplies by a number", [calculate({ mode: "binary", alias: "percent", replaceFields: true, binary: { left: { matcher: { id: "byName", options: "Value" } }, operator: "*", right: { fixed: "100" } } })], ["percent"], [[100], [300], [0], [500]]],
  ["adds columns as old files name them", [calculate({ mode: "binary", replaceFields: true, binary: { left: "Value", operator: "+", right: "Value" } })], ["Value + Value"], [[2], [6], [0], [10]]],
  ["leaves a table without the column", [calculate({ mode: "binary", binary: { left: "other", operator: "+", right: "1" } })], ["job", "instance", "Value"], grid.rows],
  ["applies a function", [calculate({ mode: "unary", replaceFields: true, unary: { operator: "ln", fieldName: "Value" } }), { id: "limit", options: { limitField: 1 } }], ["ln(Value)"], [[0]]],
  ["sums up", [calculate({ mode: "cumulativeFunctions", replaceFields: true, cumulative: { field: "Value", reducer: "sum" } })], ["cumulative sum(Value)"], [[1], [4], [4], [9]]],
  ["means so far", [calculate({ mode: "cumulativeFunctions", replaceFields: true, alias: "m", cumulative: { reducer: "mean" } })], ["m"], [[1], [2], [4 / 3], [9 / 4]]],
  ["numbers rows", [calculate({ mode: "index", replaceFields: true, index: { asPercentile: true } })], ["Row"], [[0], [0.25], [0.5], [0.75]]],
  ["keeps what is greater", [filter("greater", 1)], ["job", "instance", "Value"], [["a", "y", 3], ["b", "w", 5]]],
  ["keeps what a variable allows", [filter("greaterOrEqual", "$least")], ["job", "instance", "Value"], [["a", "y", 3], ["b", "w", 5]]],
  ["leaves out what is equal", [filter("equal", 3, { type: "exclude" })], ["job", "instance", "Value"], [["a", "x", 1], ["b", "z", null], ["b", "w", 5]]],
  ["keeps what is between", [filter("between", { from: 1, to: 5 })], ["job", "instance", "Value"], [["a", "y", 3]]],
  ["leaves out what is null", [filter("isNull", {}, { type: "exclude" })], ["job", "instance", "Value"], [["a", "x", 1], ["a", "y", 3], ["b", "w", 5]]],
  ["fulfils all conditions", [{ id: "filterByValue", options: { type: "include", match: "all", filters: [{ fieldName: "job", config: { id: "regex", options: { value: "^a$" } } }, { fieldName: "Value", config: { id: "lower", options: { value: 2 } } }] } }], ["job", "instance", "Value"], [["a", "x", 1]]],
  ["fulfils no condition of a column that is not there", [{ id: "filterByValue", options: { type: "include", match: "any", filters: [{ fieldName: "other", config: { id: "isNotNull", options: {} } }] } }], ["job", "instance", "Value"], []],
  ["converts to numbers and texts", [{ id: "convertFieldType", options: { conversions: [{ targetField: "job", destinationType: "number" }, { targetField: "Value", destinationType: "string" }] } }, { id: "limit", options: { limitField: 1 } }], ["job", "instance", "Value"], [[null, "x", "1"]]],
  ["sorts and renames", [{ id: "sortBy", options: { sort: [{ field: "Value", desc: true }] } }, { id: "renameByRegex", options: { regex: "^(.)ob$", renamePattern: "$1obs" } }], ["jobs", "instance", "Value"], [["b", "w", 5], ["a", "y", 3], ["a", "x", 1], ["b", "z", null]]],
]) {
  test(`transform ${what}`, () => {
    const out = transform([grid], transformations, { lines: [], tables: [] }, scope);
    assert.deepEqual([out.columns.map((c) => c.title), out.rows], [columns, rows]);
  });
}

const labelled = (refId, names) => ({ columns: ["job", `Value #${refId}`].map(column), rows: names.map((n, i) => [n, i]) });

for (const [mode, rows] of [["outer", [["a", 0, null], ["b", 1, 0], ["c", null, 1]]], ["inner", [["b", 1, 0]]]]) {
  test(`joinByField ${mode}`, () => assert.deepEqual(transform([labelled("A", ["a", "b"]), labelled("B", ["b", "c"])], [{ id: "joinByField", options: { byField: "job", mode } }], { lines: [], tables: [] }, scope).rows, rows));
}

const { read } = await bundled("dashboards/model.ts");

for (const [what, panel, expected] of [
  ["an old table of calculations", { type: "table", styles: [], transform: "timeseries_aggregations", columns: [{ text: "Avg", value: "avg" }, { text: "Now", value: "current" }], sort: { col: 1, desc: true } }, { type: "table", options: { showHeader: undefined, sortBy: [{ column: 1, desc: true }] }, transformations: [{ id: "reduce", options: { reducers: ["mean", "lastNotNull"] } }, { id: "organize", options: { renameByName: { Field: "Metric", Mean: "Avg", "Last *": "Now" } } }] }],
  ["an old table of rows", { type: "table-old", transform: "timeseries_to_rows" }, { type: "table", transformations: [{ id: "seriesToRows" }] }],
  ["an old pie", { type: "grafana-piechart-panel", pieType: "donut", valueName: "avg", format: "s", aliasColors: { a: "red" } }, { type: "piechart", options: { pieType: "donut", reduceOptions: { calcs: ["mean"] } } }],
  ["an old text", { type: "text", content: "words", targets: [{ refId: "A", rawSql: "SELECT 1" }] }, { options: { content: "words" }, targets: [] }],
  ["a query of a data source that answers PromQL", { type: "stat", datasource: { type: "victoriametrics-metrics-datasource", uid: "x" }, targets: [{ refId: "A", expr: "up" }, { refId: "B", datasource: { type: "prometheus" }, hide: false }] }, { type: "stat", points: undefined }],
]) {
  test(`the model of ${what}`, () => {
    const [spec] = read({ panels: [panel] }).sections[0].panels;
    assert.deepEqual(spec.notes, []);
    for (const [k, v] of Object.entries(expected)) assert.deepEqual(spec[k], v, k);
  });
}

test("merge keeps the times of values over time apart", () => {
  const over = (refId, values) => ({ over: true, columns: ["Time", "job", `Value #${refId}`].map(column), rows: values.map((v, i) => [`t${i}`, "a", v]) });
  const out = transform([over("A", [1, 2]), over("B", [3, 4])], [{ id: "merge" }], { lines: [], tables: [] }, scope);
  assert.deepEqual(out.rows, [["t0", "a", 1, 3], ["t1", "a", 2, 4]]);
});

test("seriesToRows has the newest values first", () => {
  const line = (name, values) => ({ name, refId: "A", labels: {}, times: [10, 20], values });
  const out = transform([], [{ id: "seriesToRows" }], { lines: [line("x", [1, 2]), line("y", [null, 4])], tables: [], zone: "utc" }, scope);
  assert.deepEqual([out.columns.map((c) => c.title), out.rows.map((r) => r.slice(1))], [["Time", "Metric", "Value"], [["x", 2], ["y", 4], ["x", 1]]]);
});

const { formatter, known } = await bundled("dashboards/units.ts");

for (const [unit, value, expected] of [
  ["sishort", 0.002, "2 m"], ["sishort", 5, "5"], ["volt", 0.005, "5 mV"], ["kvolt", 2, "2 kV"], ["mvolt", 1500, "1.5 V"], ["lengthkm", 0.5, "500 m"], ["currencyINR", 12, "₹12.00"],
  ["pressurehpa", 1013, "1013 hPa"], ["TBs", 1, "1 TB/s"], ["cores", 2, "2 cores"], ["items/sec", 2, "2 items/sec"],
]) {
  test(`the unit ${unit} of ${value}`, () => assert.deepEqual([formatter(unit, undefined, "utc")(value), known(unit)], [expected, true]));
}
test("a unit of Grafana that the page does not have is known to be none", () => assert.deepEqual(["currencyXYZ", "radexpckg", "connections"].map(known), [false, false, true]));

const { fieldOf } = await bundled("dashboards/fields.ts");

for (const [options, values, expected] of [
  [{ reducer: "allIsZero", op: "gte", value: 0 }, [0, null, 0], true], [{ reducer: "allIsZero" }, [0, 1], false], [{ reducer: "allIsNull" }, [null], true], [{ reducer: "max", op: "lt", value: 5 }, [1, 4], true], [{ reducer: "max", op: "lt", value: 5 }, [1, 6], false], [{ reducer: "mean", op: "gt", value: 1 }, [null], false],
]) {
  const overrides = [{ matcher: { id: "byValue", options }, properties: [{ id: "custom.hidden", value: true }] }];
  test(`an override by value ${JSON.stringify(options)} of ${values}`, () => assert.equal(fieldOf({ name: "a", refId: "A", labels: {}, values }, {}, overrides, "utc", scope).hidden, expected));
}

const { leftOfTransformation } = await bundled("dashboards/support.ts");

for (const [type, id, options, expected] of [
  ["table", "calculateField", { mode: "windowFunctions", window: { reducer: "mean" } }, ['mode "windowFunctions"']],
  ["table", "calculateField", { mode: "binary", binary: { left: { matcher: { id: "byType", options: "number" } }, operator: "^" } }, ['binary.operator "^"', 'binary.left "byType"']],
  ["barchart", "calculateField", { mode: "reduceRow", reduce: { reducer: "p99", include: ["a"] } }, ['reduce.reducer "p99"']],
  ["timeseries", "renameByRegex", { regex: "a(b)", renamePattern: "$1" }, []],
  ["timeseries", "filterFieldsByName", { include: { names: ["a"] }, exclude: { pattern: "(" } }, ['regex "("']],
  ["table", "groupBy", { fields: { a: { operation: "groupby", aggregations: [] }, b: { operation: "takefirst" }, c: { operation: "aggregate", aggregations: ["sum", "p95"] } } }, ['operation "takefirst"', 'aggregations "p95"']],
  ["table", "filterByValue", { type: "include", match: "any", filters: [{ fieldName: "a", config: { id: "startsWith", options: { value: "x" } } }, { fieldName: "a", config: { id: "regex", options: { value: "(" } } }] }, ['filters[].config.id "startsWith"', 'regex "("']],
]) {
  test(`${id} of a ${type} names what is not understood: ${expected}`, () => assert.deepEqual(leftOfTransformation(type, id, options), expected.map((n) => `transformation ${id}: ${n}`)));
}

const { spans } = await bundled("dashboards/timeline.ts");
const times = [10, 20, 30, 40, 50];

for (const [what, values, o, expected] of [
  ["merges equal neighbours", [1, 1, 2, 2, 1], {}, [[10, 30, 1], [30, 50, 2], [50, 60, 1]]],
  ["ends a state at a gap", [1, null, null, 1, 1], {}, [[10, 20, 1], [40, 60, 1]]],
  ["passes gaps", [1, null, null, 1, 2], { connected: true }, [[10, 50, 1], [50, 60, 2]]],
  ["passes short gaps", [1, null, 1, null, null], { connected: 25_000 }, [[10, 40, 1]]],
  ["does not pass long gaps", [1, null, null, 1, 1], { connected: 25_000 }, [[10, 20, 1], [40, 60, 1]]],
  ["keeps each value", [1, 1, null, 2, 2], { merge: false }, [[10, 20, 1], [20, 30, 1], [40, 50, 2], [50, 60, 2]]],
  ["merges what is the same state", [1, 2, 3, 9, 9], { same: (a, b) => a < 5 === b < 5 }, [[10, 40, 1], [40, 60, 9]]],
  ["is nothing without values", [null, null, null, null, null], {}, []],
]) {
  test(`a state timeline ${what}`, () => assert.deepEqual(spans(times, values, 60, { connected: false, merge: true, same: (a, b) => a === b, ...o }).map((s) => [s.from, s.to, s.value]), expected));
}

const { place } = await bundled("dashboards/barchart.ts");
const bars = { names: ["a", "b"], series: [[1, null], [3, -2]].map((values) => ({ values })) };

for (const [stacking, expected] of [
  ["none", [[0, 0, 0, 1, -0.4, 0.4], [0, 1, 0, 3, 0, 0.4], [1, 1, 0, -2, 1, 0.4]]],
  ["normal", [[0, 0, 0, 1, -0.4, 0.8], [0, 1, 1, 4, -0.4, 0.8], [1, 1, 0, -2, 0.6, 0.8]]],
  ["percent", [[0, 0, 0, 25, -0.4, 0.8], [0, 1, 25, 100, -0.4, 0.8], [1, 1, 0, -100, 0.6, 0.8]]],
]) {
  test(`a bar chart with the stacking ${stacking}`, () => assert.deepEqual(place(bars, stacking, 0.8, 1).map((b) => [b.group, b.series, b.from, b.to, Number(b.side.toFixed(6)), b.width]), expected));
}

const { listed } = await bundled("dashboards/alertlist.ts");
const alert = (state, activeAt, labels) => ({ state, activeAt, labels, annotations: {}, value: "1" });
const entries = () => [
  { name: "Disk", state: "firing", labels: {}, alerts: [alert("firing", "2026-01-02T00:00:00Z", { severity: "page", host: "a" }), alert("pending", "2026-01-04T00:00:00Z", { severity: "page", host: "b" })] },
  { name: "cpu", state: "pending", labels: {}, alerts: [alert("pending", "2026-01-01T00:00:00Z", { severity: "ticket" })] },
  { name: "Net", state: "inactive", labels: { severity: "page" }, alerts: [] },
];

for (const [options, expected] of [
  [{}, ["cpu 1", "Disk 2"]],
  [{ sortOrder: 2 }, ["Disk 2", "cpu 1"]],
  [{ sortOrder: 3, stateFilter: { normal: true } }, ["Disk 2", "cpu 1", "Net 0"]],
  [{ sortOrder: 4 }, ["cpu 1", "Disk 2"]],
  [{ sortOrder: 5 }, ["Disk 2", "cpu 1"]],
  [{ stateFilter: { firing: true, pending: false } }, ["Disk 1"]],
  [{ alertName: "DISK" }, ["Disk 2"]],
  [{ alertInstanceLabelFilter: '{severity=~"page|x", host!="a"}', stateFilter: { inactive: true } }, ["Disk 1", "Net 0"]],
  [{ alertInstanceLabelFilter: "severity=$s" }, ["cpu 1"]],
]) {
  test(`an alert list with ${JSON.stringify(options)}`, () => assert.deepEqual(listed(entries(), options, new Map([["s", { values: ["ticket"], texts: ["ticket"], several: false, raw: false }]])).map((e) => `${e.name} ${e.alerts.length}`), expected));
}

const { expression } = await bundled("explain.ts");
const at = "start=1795955966000 step=15000 n=21";

for (const [op, expected] of [
  [`rate {__name__="x_total"} ${at} range=60000 shift=0`, "rate(x_total[1m])"],
  [`quantile_over_time {__name__="x",job=~"a|b"} ${at} range=5400000 shift=-60000 phi=0.9`, 'quantile_over_time(0.9, x{job=~"a|b"}[1h30m] offset -1m)'],
  [`instant {job="a} start=1"} ${at} range=300000 shift=60000`, '{job="a} start=1"} offset 1m'],
  [`instant {__name__="x"} ${at} range=300000 shift=0`, "x"],
  [`max_over_time ${at} range=120000 shift=0 over start=1795955910000 step=15000 n=28`, "max_over_time(…[2m:15s])"],
  ["sum by (mode)", "sum by (mode)"],
]) {
  test(`explain writes ${op}`, () => assert.equal(expression(op), expected));
}

const { fits } = await bundled("explore/syntax.ts");

for (const [op, value, expected] of [
  ["=", "a.b", true], ["!=", "a.b", false], ["=~", "a.", false], ["=~", "a\\..*", true], ["!~", "b", true], ["=~", "(?i)A.B", true], ["!~", "(", false],
]) {
  test(`a matcher ${op} ${value}`, () => assert.equal(fits({ label: "l", op, value }, { l: "a.b" }), expected));
}
