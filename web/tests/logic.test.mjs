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
