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
  ["sorts and renames", [{ id: "sortBy", options: { sort: [{ field: "Value", desc: true }] } }, { id: "renameByRegex", options: { regex: "^(.)ob$", renamePattern: "$1obs" } }], ["jobs", "instance", "Value"], [["b", "w", 5], ["a", "y", 3], ["a", "x", 1], ["b", "z", null]]],
]) {
  test(`transform ${what}`, () => {
    const out = transform([grid], transformations, { lines: [], tables: [] }, scope);
    assert.deepEqual([out.columns.map((c) => c.title), out.rows], [columns, rows]);
  });
}

const { leftOfTransformation } = await bundled("dashboards/support.ts");

for (const [type, id, options, expected] of [
  ["table", "calculateField", { mode: "windowFunctions", window: { reducer: "mean" } }, ['mode "windowFunctions"']],
  ["table", "calculateField", { mode: "binary", binary: { left: { matcher: { id: "byType", options: "number" } }, operator: "^" } }, ['binary.operator "^"', 'binary.left "byType"']],
  ["table", "calculateField", { mode: "reduceRow", reduce: { reducer: "p99", include: ["a"] } }, ['reduce.reducer "p99"']],
  ["table", "groupBy", { fields: { a: { operation: "groupby", aggregations: [] }, b: { operation: "takefirst" }, c: { operation: "aggregate", aggregations: ["sum", "p95"] } } }, ['operation "takefirst"', 'aggregations "p95"']],
  ["table", "filterByValue", { type: "include", match: "any", filters: [{ fieldName: "a", config: { id: "startsWith", options: { value: "x" } } }, { fieldName: "a", config: { id: "regex", options: { value: "(" } } }] }, ['filters[].config.id "startsWith"', 'regex "("']],
]) {
  test(`${id} of a ${type} names what is not understood: ${expected}`, () => assert.deepEqual(leftOfTransformation(type, id, options), expected.map((n) => `transformation ${id}: ${n}`)));
}
