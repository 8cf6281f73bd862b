// The layout of the views on a phone, a laptop and a large screen. A landmark is a panel of the
// page. layout.txt lists the landmarks of each view and width row by row, from left to right, each
// with its sides in 24ths of the width, so the fonts of a machine make no difference.
// UPDATE=1 writes the file.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { open, Server, until, visit } from "./harness.mjs";

const golden = new URL("layout.txt", import.meta.url);
const widths = [360, 1280, 2560];
const views = {
  dashboards: "dashboards?range=15m",
  explore: "explore?range=15m&g0.expr=node_load1&g1.expr=node_load5",
  sql: `sql?sql=${encodeURIComponent("SELECT 1 AS a")}`,
  explain: "explain?range=15m&g0.expr=node_load1",
  lake: "lake",
  cardinality: "cardinality?range=15m",
  targets: "targets",
  rules: "rules",
  alerts: "alerts",
  status: "status",
};

let server, browser;

before(async () => {
  server = await Server.start("--demo");
  await until("a rule was evaluated", async () => {
    const r = await fetch(`${server.url}/api/v1/query?query=${encodeURIComponent("node_load1 and on() ALERTS or node_load1")}`).then((x) => x.json());
    return r.data.result.length > 0;
  });
  browser = await open();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

// landmarks returns the boxes of the header and of the panels that hold no other panels, in px.
const landmarks = (page) =>
  page.evaluate(() => {
    const name = (e) => e.getAttribute("aria-label") || e.querySelector("h2, h3, legend")?.textContent || e.className;
    const panels = [...document.querySelectorAll("main .panel")].filter((e) => !e.querySelector(".panel"));
    return [document.querySelector("header"), ...panels]
      .map((e) => ({ name: e.matches("header") ? "header" : name(e).replace(/\(\d+\)/, "").trim(), box: e.getBoundingClientRect() }))
      .filter(({ box }) => box.width > 0 && box.height > 0)
      .map(({ name, box }) => ({ name, left: box.left, right: box.right, top: box.top + scrollY, bottom: box.bottom + scrollY }));
  });

// rows groups landmarks that stand beside each other.
function rows(all) {
  const out = [];
  for (const l of all.toSorted((a, b) => a.top - b.top || a.left - b.left)) {
    const row = out.at(-1);
    if (row && l.top < row[0].bottom - 1) row.push(l);
    else out.push([l]);
  }
  return out.map((row) => row.toSorted((a, b) => a.left - b.left || a.top - b.top));
}

const overlap = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;

// plain reports whether the picture of a landmark has one colour only: nothing is painted there.
async function plain(page, l) {
  const png = (await page.screenshot({ fullPage: true, animations: "disabled", clip: { x: l.left, y: l.top, width: l.right - l.left, height: l.bottom - l.top } })).toString("base64");
  const other = await page.context().newPage();
  try {
    return await other.evaluate(async (data) => {
      const image = new Image();
      image.src = `data:image/png;base64,${data}`;
      await image.decode();
      const canvas = new OffscreenCanvas(image.width, image.height);
      const context = canvas.getContext("2d");
      context.drawImage(image, 0, 0);
      const pixels = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
      return pixels.every((p) => p === pixels[0]);
    }, png);
  } finally {
    await other.close();
  }
}

test("the views have their layout at three widths", async () => {
  const found = [];
  const page = await visit(browser, "about:blank", { colorScheme: "light" });
  for (const [view, address] of Object.entries(views)) {
    await page.goto(`${server.url}/#/${address}`);
    await page.locator("main .panel").first().waitFor();
    for (const width of widths) {
      await page.setViewportSize({ width, height: 900 });
      const all = await until(`${view} is complete at ${width} pixels`, async () => {
        if (await page.locator('[aria-busy="true"]').count()) return false;
        const before = await landmarks(page);
        await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
        const now = await landmarks(page);
        if (now.some((l) => l.name === "panel")) return false; // it has no heading yet
        return now.length > 1 && JSON.stringify(before) === JSON.stringify(now) && now;
      });
      for (const [i, a] of all.entries()) {
        assert.ok(a.left >= 0 && a.right <= width, `${view} at ${width}: ${a.name} is beyond the window`);
        for (const b of all.slice(i + 1)) assert.ok(!overlap(a, b), `${view} at ${width}: ${a.name} and ${b.name} overlap`);
      }
      for (const l of all) assert.equal(await plain(page, l), false, `${view} at ${width}: ${l.name} shows nothing`);
      found.push(`${view}, ${width} pixels`, ...rows(all).map((row) => "  " + row.map((l) => `${l.name} ${Math.round((24 * l.left) / width)}-${Math.round((24 * l.right) / width)}`).join(" | ")));
    }
  }
  assert.deepEqual(page.faults, []);
  const text = found.join("\n") + "\n";
  if (process.env.UPDATE) await writeFile(golden, text);
  assert.equal(text, await readFile(golden, "utf8"));
});
