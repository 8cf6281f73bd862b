// Targets, rules and alerts, in a real browser before a real server that scrapes.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { open, Server, until, visit } from "./harness.mjs";

const hostile = `<img src=x onerror="window.hit=1">`;
let server, bare, browser, folder;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "promlake-page-rules-"));
  await writeFile(
    join(folder, "prometheus.yml"),
    `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yml]
scrape_configs:
  - job_name: gone
    static_configs: [{targets: ["127.0.0.1:1"], labels: {team: 'a', markup: '${hostile}'}}]
`,
  );
  await writeFile(
    join(folder, "rules.yml"),
    `groups:
  - name: first
    rules:
      - {record: "job:up:sum", expr: "sum by (job) (up)"}
      - {record: "broken", expr: 'label_replace({job="gone",__name__=~"up|scrape_duration_seconds"}, "__name__", "x", "", "")'}
      - {alert: Gone, expr: "up == 0", labels: {severity: page}, annotations: {summary: '${hostile} {{ $labels.instance }}'}}
      - {alert: Later, expr: "up == 0", for: 1d}
      - {alert: Never, expr: "up == 7"}
`,
  );
  server = await Server.start("--config.file", join(folder, "prometheus.yml"), "--scrape.queue-dir", join(folder, "queue"));
  bare = await Server.start();
  browser = await open();
});

after(async () => {
  await browser?.close();
  await server?.stop();
  await bare?.stop();
  await rm(folder, { recursive: true, force: true });
});

// refreshed asks again until the page shows something.
const refreshed = (page, what, condition) =>
  until(what, async () => {
    await page.evaluate(() => document.activeElement?.blur());
    await page.keyboard.press("r");
    return condition();
  });

test("targets show their state, labels, last scrape and error", async () => {
  const page = await visit(browser, `${server.url}/#/targets`);
  const row = page.locator("main tbody > tr");
  await refreshed(page, "the target is down", async () => (await row.allTextContents()).some((t) => t.includes("connection refused")));
  const text = await row.first().textContent();
  for (const part of ["http://127.0.0.1:1/metrics", "down", 'team="a"', `markup=${JSON.stringify(hostile)}`, "ago", "1s"]) assert.ok(text.includes(part), `${part} in ${text}`);
  assert.equal(await page.getByRole("link", { name: "http://127.0.0.1:1/metrics" }).getAttribute("rel"), "noreferrer noopener");
  await page.getByText("0 of 1 up").waitFor();

  // The filter is in the address.
  await page.keyboard.press("/");
  await page.keyboard.type("team nobody");
  await page.getByText("0 of 1 targets").waitFor();
  assert.match(page.url(), /filter=team\+nobody/);
  const copy = await visit(browser, page.url());
  await copy.getByText("0 of 1 targets").waitFor();
  assert.equal(await page.evaluate(() => window.hit), undefined);
  assert.deepEqual([...page.faults, ...copy.faults], []);
});

test("rules show their health, last evaluation and error", async () => {
  const page = await visit(browser, `${server.url}/#/rules`);
  const row = (name) => page.locator("main tbody > tr", { hasText: name });
  await refreshed(page, "one rule fails and one succeeds", async () => /err/.test(await row("broken").textContent().catch(() => "")) && /ok/.test(await row("job:up:sum").textContent()));
  assert.match(await row("broken").locator(".bad").last().textContent(), /err|label|vector|duplicate|series/i);
  assert.match(await row("Later").textContent(), /for: 1d/);
  await page.getByLabel("State").selectOption("err");
  await page.getByText("1 of 5 rules").waitFor();
  await page.getByLabel("State").selectOption("");
  await page.getByRole("button", { name: "sum by (job) (up)" }).click();
  await until("the expression is in Explore", async () => /#\/explore\?.*g0\.expr=sum/.test(page.url()));
  assert.deepEqual(page.faults, []);
});

test("alerts show their state, labels, annotations and since when, firing ones first", async () => {
  const page = await visit(browser, `${server.url}/#/alerts`);
  const rows = page.locator("main tbody > tr");
  await refreshed(page, "one alert fires, one waits, one is inactive", async () => {
    const all = await rows.allTextContents();
    return /^Gone.*firing/.test(all[0] ?? "") && /^Later.*pending/.test(all[1] ?? "") && /^Never.*inactive/.test(all[2] ?? "");
  });
  const text = await rows.first().textContent();
  for (const part of ['severity="page"', `summary: ${hostile} 127.0.0.1:1`, "ago"]) assert.ok(text.includes(part), `${part} in ${text}`);
  await page.getByLabel("State").selectOption("firing");
  await until("only the firing alert is listed", async () => (await rows.count()) === 1);
  assert.match(page.url(), /state=firing/);
  assert.equal(await page.evaluate(() => window.hit), undefined);
  assert.equal(await page.locator("img, main script").count(), 0);
  assert.deepEqual(page.faults, []);
});

test("the keyboard opens the views that the server has", async () => {
  const page = await visit(browser, `${server.url}/#/status`);
  await page.getByRole("link", { name: "Alerts" }).waitFor();
  for (const [key, title] of [["7", "Targets"], ["8", "Rules"], ["9", "Alerts"], ["0", "Status"]]) {
    await page.keyboard.press(key);
    await until(`${title} is shown`, async () => (await page.title()).startsWith(title));
  }
  assert.deepEqual(page.faults, []);
});

test("a server without a configuration shows no such views, and a link says what to do", async () => {
  const page = await visit(browser, `${bare.url}/#/status`);
  await page.getByRole("link", { name: "SQL" }).waitFor();
  for (const name of ["Targets", "Rules", "Alerts"]) assert.equal(await page.getByRole("link", { name, exact: true }).count(), 0);
  for (const view of ["targets", "rules", "alerts"]) {
    await page.goto(`${bare.url}/#/${view}`);
    await page.getByText("--config.file=prometheus.yml").waitFor();
  }
  assert.deepEqual(page.faults, []);
});
