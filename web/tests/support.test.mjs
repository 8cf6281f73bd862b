// The list of what a Grafana dashboard may contain, in docs/web.md, is that of the page's table.
// UPDATE=1 writes it.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { bundled } from "./bundled.mjs";

const document = new URL("../../docs/web.md", import.meta.url);
const [begin, end] = ["<!-- support: begin -->\n", "<!-- support: end -->"];
const titles = { dashboard: "Dashboard", annotation: "Annotations", variable: "Variables", panel: "Panels", query: "Queries", field: "Fields and overrides", options: "Options", transformation: "Transformations (of tables and bar charts)" };

test("docs/web.md lists what the page understands of a dashboard", async () => {
  const { parts } = await bundled("dashboards/support.ts");
  const words = (s) => s?.split(" ").map((k) => `\`${k}\``).join(", ");
  const value = (v) => (typeof v === "string" ? v || '""' : String(v));
  const rows = parts.map((p) => {
    const cells = [
      [titles[p.of], p.types?.replaceAll(" ", ", ")].filter(Boolean).join(": "),
      [words(p.drawn), ...Object.entries(p.only ?? {}).map(([k, values]) => `\`${k}\` (${values.map(value).join(", ") || "none"})`)].filter(Boolean).join(", "),
      words(p.own),
      words(p.none),
    ];
    return `| ${cells.map((c) => c || "–").join(" | ")} |`;
  });
  const list = ["| part | as in Grafana (in brackets: only these values) | in the page's own way | without effect |", "|---|---|---|---|", ...rows, ""].join("\n");
  const text = await readFile(document, "utf8");
  const [before, rest] = text.split(begin);
  const [found, after] = rest.split(end);
  if (process.env.UPDATE) await writeFile(document, before + begin + list + end + after);
  else assert.equal(found, list);
});
