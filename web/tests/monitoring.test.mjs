// Targets, rules and alerts, in a real browser before a real server that scrapes.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { close, open, reach, serious, Server, until, visit } from "./harness.mjs";

const hostile = `<img src=x onerror="window.hit=1">`;
let server, bare, browser, folder, manager;

// Alertmanager keeps silences as the real one does, and takes alerts.
class Alertmanager {
  silences = [];
  got = []; // changes
  refusal = "";

  async start() {
    this.http = createServer(async (req, res) => {
      let body = "";
      for await (const part of req) body += part;
      const id = /^\/api\/v2\/silence\/(.*)$/.exec(req.url)?.[1];
      const answer = (code, value) => res.writeHead(code, { "Content-Type": "application/json" }).end(JSON.stringify(value));
      if (req.url === "/api/v2/alerts") return answer(200);
      if (req.method !== "GET") this.got.push({ method: req.method, type: req.headers["content-type"], body: body && JSON.parse(body) });
      if (req.method !== "GET" && this.refusal) return answer(400, this.refusal);
      if (req.method === "POST") {
        this.silences.push({ ...JSON.parse(body), id: `00000000-0000-0000-0000-00000000000${this.silences.length}`, status: { state: "active" } });
        return answer(200, { silenceID: this.silences.at(-1).id });
      }
      const one = this.silences.find((s) => s.id === id);
      if (req.method === "DELETE") one.status.state = "expired";
      answer(200, req.method === "DELETE" ? undefined : this.silences);
    });
    await new Promise((done) => this.http.listen(0, "127.0.0.1", done));
    return this;
  }
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "promlake-page-rules-"));
  manager = await new Alertmanager().start();
  await writeFile(
    join(folder, "prometheus.yml"),
    `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yml]
alerting: {alertmanagers: [{static_configs: [{targets: ["127.0.0.1:${manager.http.address().port}"]}]}]}
scrape_configs:
  - job_name: gone
    static_configs: [{targets: ["127.0.0.1:1"], labels: {markup: '${hostile}'}}]
    relabel_configs:
      - {target_label: team, replacement: a}
      - {source_labels: [__address__], target_label: instance}
  - job_name: away
    static_configs: [{targets: ["10.0.0.1:9", "10.0.0.2:9"]}]
    relabel_configs:
      - {source_labels: [__address__], regex: '(.*):9', target_label: host}
      - {source_labels: [host], regex: '10\\..*', action: drop}
      - {target_label: late, replacement: x}
`,
  );
  await writeFile(
    join(folder, "rules.yml"),
    `groups:
  - name: first
    rules:
      - {record: "job:up:sum", expr: "sum by (job) (up)"}
      - {record: "broken", expr: 'label_replace({job="gone",__name__=~"up|scrape_duration_seconds"}, "__name__", "x", "", "")'}
      - {alert: Gone, expr: "up == 0", labels: {severity: page}, annotations: {summary: '${hostile} {{ $labels.instance }}', runbook_url: "https://runbooks.example/gone?a=1", other: "javascript:alert(1) (see http://wiki.example/gone)."}}
      - {alert: Later, expr: "up == 0", for: 1d}
      - {alert: Never, expr: "up == 7"}
`,
  );
  server = await Server.start("--config.file", join(folder, "prometheus.yml"), "--scrape.queue-dir", join(folder, "queue"));
  bare = await Server.start();
  browser = await open();
});

after(async () => {
  await close(browser);
  await server?.stop();
  await bare?.stop();
  manager?.http.close();
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
  // A scrape that failed has no samples.
  await refreshed(page, "the samples of the last scrape are there", async () => (await row.first().locator("td").nth(3).textContent()) === "0");

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

test("a target shows how relabeling made its labels, and its scrapes", async () => {
  const page = await visit(browser, `${server.url}/#/targets`);
  const gone = page.locator("details.panel", { hasText: "127.0.0.1:1" });
  const box = (pool) => pool.getByRole("group", { name: "Details of targets" });
  const rows = (pool) => box(pool).locator("tbody > tr").allTextContents();
  await refreshed(page, "the target is there", async () => (await gone.count()) === 1);
  await gone.getByRole("button", { name: "Relabeling" }).click();
  await until("the rules are listed", async () => (await rows(gone)).length === 3);
  const [found, team, instance] = await rows(gone);
  assert.match(found, /^discovered.*__address__="127\.0\.0\.1:1"/);
  assert.match(team, /^1.*action: replace.*\+ team="a"$/);
  assert.match(instance, /^2.*source_labels: \[__address__\].*\+ instance="127\.0\.0\.1:1"$/);
  assert.equal(await page.evaluate(() => window.hit), undefined);

  await until("the scrapes are drawn", async () => {
    await gone.getByRole("button", { name: "Scrapes" }).click(); // the first samples may be later than the graph's last step
    await until("the graphs have answers", async () => (await box(gone).locator('[aria-busy="true"]').count()) === 0);
    return (await box(gone).locator("canvas").count()) === 3;
  });
  await box(gone).getByRole("heading", { name: "Scrapes of 127.0.0.1:1" }).waitFor();
  await box(gone).getByRole("button", { name: "Close the details" }).click();
  assert.equal(await box(gone).isVisible(), false);

  // A pool whose targets are all dropped is listed, and says which rule drops them.
  const away = page.locator("details.panel", { hasText: "0 of 0 up" });
  await until("the dropped targets are listed", async () => {
    await away.getByRole("button", { name: "Dropped targets" }).click(); // discovery may not have found them yet
    await box(away).getByText("Loading…").waitFor({ state: "detached" });
    return (await rows(away)).length === 2;
  });
  await box(away).locator("tr", { hasText: "10.0.0.2:9" }).getByRole("button", { name: "Relabeling" }).click();
  await until("the rule that drops it is the last", async () => (await rows(away)).length === 3);
  const [, host, last] = await rows(away);
  assert.match(host, /\+ host="10\.0\.0\.2"$/);
  assert.match(last, /regex: 10\\\..*action: drop.*drops the target$/);
  await away.getByText("One more rule does not see the target.").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("nobody");
  await until("a filter hides pools without targets", async () => (await away.count()) === 0);
  assert.deepEqual(page.faults, []);
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
  // Addresses of web servers are links, whatever the annotation is called; nothing else is one.
  assert.deepEqual(await rows.first().getByRole("link").evaluateAll((all) => all.map((a) => [a.href, a.textContent, a.rel])), [
    ["http://wiki.example/gone", "http://wiki.example/gone", "noreferrer noopener"],
    ["https://runbooks.example/gone?a=1", "https://runbooks.example/gone?a=1", "noreferrer noopener"],
  ]);
  assert.ok(text.includes("other: javascript:alert(1) (see http://wiki.example/gone)."), text);
  await page.getByLabel("State").selectOption("firing");
  await until("only the firing alert is listed", async () => (await rows.count()) === 1);
  assert.match(page.url(), /state=firing/);
  assert.equal(await page.evaluate(() => window.hit), undefined);
  assert.equal(await page.locator("img, main script").count(), 0);
  assert.deepEqual(page.faults, []);
});

test("a firing alert is silenced and the silence expires by the Alertmanager of the server", async () => {
  const page = await visit(browser, `${server.url}/#/alerts`);
  const row = page.locator("details", { hasText: "Gone" }).locator("tbody > tr", { hasText: "firing" });
  const button = row.getByRole("button", { name: "Silence" });
  await refreshed(page, "the alert fires, and there is an Alertmanager", async () => (await button.count()) === 1);
  const silences = page.getByRole("region", { name: "Silences", exact: true }).first();
  assert.equal(await silences.locator("tbody tr").count(), 0);
  assert.equal(await silences.getByRole("link", { name: "Alertmanager" }).getAttribute("href"), `http://127.0.0.1:${manager.http.address().port}/`);
  await button.click();
  const form = page.getByRole("form", { name: "New silence" });
  const field = (name) => form.getByLabel(name);
  assert.equal(await field("Matchers").inputValue(), `alertname="Gone", instance="127.0.0.1:1", job="gone", markup=${JSON.stringify(hostile)}, severity="page", team="a"`);
  assert.equal(await field("Duration").inputValue(), "2h");
  const faulty = (name) => field(name).evaluate((f) => f.validationMessage);
  await field("Duration").fill("soon");
  assert.equal(await faulty("Duration"), "Write a duration such as 90m or 2h30m.");
  await field("Duration").fill("90m");
  await field("Matchers").fill('alertname="Gone", job');
  assert.match(await faulty("Matchers"), /^Write matchers such as/);
  await field("Matchers").fill(`alertname="Gone", markup=${JSON.stringify(hostile)}, job=~"go.+", team!="b"`);
  await field("Author").fill("ann");
  await field("Comment").fill(hostile);
  manager.refusal = "bad silence";
  await form.getByRole("button", { name: "Create" }).click();
  await silences.getByRole("alert").getByText("bad silence").waitFor();
  manager.refusal = "";
  manager.got = [];
  await field("Comment").press("Enter");
  await row.getByText(/^silenced until \d{4}-.* by ann$/).waitFor();
  const [{ method, type, body }] = manager.got;
  assert.deepEqual([method, type, body.createdBy, body.comment, Date.parse(body.endsAt) - Date.parse(body.startsAt)], ["POST", "application/json", "ann", hostile, 5_400_000]);
  assert.deepEqual(body.matchers.map((m) => [m.name, m.value, m.isRegex, m.isEqual]), [["alertname", "Gone", false, true], ["markup", hostile, false, true], ["job", "go.+", true, true], ["team", "b", false, false]]);
  await form.waitFor({ state: "hidden" });
  const silence = silences.locator("tbody tr");
  assert.equal(await silence.count(), 1);
  for (const part of ['job=~"go.+", team!="b"', "active", "ann", hostile]) assert.ok((await silence.textContent()).includes(part), part);
  // Another alert, which does not match, is not silenced.
  await page.locator("details", { hasText: "Later" }).locator("tbody > tr", { hasText: "pending" }).waitFor();
  assert.equal(await page.getByText(/^silenced until/).count(), 1);
  assert.deepEqual(await serious(page), []);
  await silence.getByRole("button", { name: /^Expire/ }).click();
  await until("the alert is no longer silenced", async () => (await page.getByText(/^silenced until/).count()) === 0 && (await silence.count()) === 0);
  assert.equal(manager.got.at(-1).method, "DELETE");
  assert.equal(await page.evaluate(() => window.hit), undefined);

  // An Alertmanager that is away hides no alerts.
  await page.route("**/alertmanager/**", (route) => route.fulfill({ status: 502, json: "ask Alertmanager: connection refused" }));
  await refreshed(page, "the error is there", async () => (await silences.getByRole("alert").count()) === 1);
  assert.equal(await row.count(), 1);
  assert.deepEqual(page.faults, []);
});

test("the graph of an alert has the data that its rule saw, the threshold, and the series of the alert", async () => {
  const page = await visit(browser, "about:blank", { colorScheme: "light" });
  const asked = [];
  let gone = false; // the data as it was then
  await page.route(/\/query_range(\?|$)/, async (route) => {
    const p = new URL(route.request().url()).searchParams;
    asked.push(p);
    if (gone && p.get("as_of")) return route.fulfill({ status: 422, json: { status: "error", errorType: "execution", error: "the oldest possible time is noon" } });
    const reply = await (await route.fetch()).json();
    // Another series of the expression, which is not the alert's.
    reply.data.result.push({ metric: { __name__: "up", job: "gone", instance: "other" }, values: [[Number(p.get("end")), "1"]] });
    await route.fulfill({ json: reply });
  });
  await page.goto(`${server.url}/#/alerts`);
  const alert = page.locator("details", { hasText: "Gone" }).locator("tbody > tr", { hasText: "firing" });
  await refreshed(page, "the alert fires", async () => (await alert.count()) === 1);
  const since = Date.parse((await (await fetch(`${server.url}/api/v1/alerts`)).json()).data.alerts.find((a) => a.labels.alertname === "Gone").activeAt);
  const graph = page.getByRole("group", { name: "Graph of the alert" });
  const keys = () => graph.locator(".key").allTextContents();
  await alert.getByRole("button", { name: "Graph" }).press("Enter");
  await until("the graph is drawn", async () => (await keys()).length === 1);
  const [first] = asked;
  assert.equal(first.get("query"), "up");
  assert.equal(Number(first.get("as_of")), since / 1000 + 1); // the next evaluation
  assert.ok(Number(first.get("start")) * 1000 < since && since <= Number(first.get("end")) * 1000, `${first} ${since}`);
  assert.match((await keys())[0], /instance="127\.0\.0\.1:1"/);
  await graph.getByText(/^Active since .*, threshold 0$/).waitFor();
  const red = () => graph.locator("canvas").evaluate((c) => {
    const { data } = c.getContext("2d").getImageData(0, 0, c.width, c.height);
    return data.some((r, i) => i % 4 === 0 && data[i + 3] > 250 && Math.abs(r - 179) + Math.abs(data[i + 1] - 38) + Math.abs(data[i + 2] - 30) < 12);
  });
  await until("the threshold is drawn", red);

  // A refresh of the list keeps the graph, and the latest data is a choice.
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("r");
  await graph.getByLabel("Data of the graph").selectOption("");
  await until("the latest data is there", async () => asked.length > 1 && asked.at(-1).get("as_of") === null && (await keys()).length === 1);

  // What the server no longer has is named, and the latest data is there instead.
  gone = true;
  await graph.getByLabel("Data of the graph").selectOption("then");
  await graph.getByText("This is the latest data. As it was seen then: the oldest possible time is noon").waitFor();
  await until("the latest data is there", async () => asked.at(-1).get("as_of") === null && (await keys()).length === 1);
  assert.equal(await graph.getByLabel("Data of the graph").inputValue(), "");
  assert.deepEqual(await serious(page), []);
  await graph.getByRole("button", { name: "Close the graph" }).click();
  assert.equal(await graph.count(), 0);
  assert.deepEqual(page.faults, []);
});

test("the keyboard alone debugs a target, and looks at an alert and silences it", async () => {
  const page = await visit(browser, `${server.url}/#/targets`);
  const gone = page.locator("details.panel", { hasText: "127.0.0.1:1" });
  await refreshed(page, "the target is there", async () => (await gone.count()) === 1);
  await reach(page, gone.getByRole("button", { name: "Relabeling" }), "Enter");
  await gone.getByRole("heading", { name: "Relabeling of a target" }).waitFor();
  await until("the rules are there", async () => (await gone.getByText("Loading…").count()) === 0);
  await reach(page, gone.getByRole("button", { name: "Close the details" }), "Enter");
  await reach(page, gone.getByRole("button", { name: "Scrapes" }), "Enter");
  await gone.getByRole("heading", { name: "Scrapes of 127.0.0.1:1" }).waitFor();
  await page.keyboard.press("0");
  const row = page.locator("details", { hasText: "Gone" }).locator("tbody > tr", { hasText: "firing" });
  await refreshed(page, "the alert fires, and there is an Alertmanager", async () => (await row.getByRole("button", { name: "Silence" }).count()) === 1);
  await reach(page, row.getByRole("button", { name: "Graph" }), "Enter");
  await reach(page, page.getByRole("button", { name: "Close the graph" }), "Enter");
  await reach(page, row.getByRole("button", { name: "Silence" }), "Enter");
  await page.keyboard.type("ann");
  await reach(page, page.getByLabel("Comment"));
  await page.keyboard.type("by keys");
  await page.keyboard.press("Enter");
  await row.getByText(/^silenced until .* by ann$/).waitFor();
  await reach(page, page.getByRole("button", { name: /^Expire/ }), "Enter");
  await until("the alert is no longer silenced", async () => (await page.getByText(/^silenced until/).count()) === 0);
  assert.deepEqual(page.faults, []);
});

test("an alert list of a dashboard shows the rules of the server", async () => {
  const page = await visit(browser, "about:blank");
  const list = (title, options) => ({ type: "alertlist", title, gridPos: { x: 0, y: 0, w: 12, h: 8 }, options });
  const panels = [list("All", { stateFilter: { normal: true }, sortOrder: 3, showInstances: true }), list("Firing", { stateFilter: { firing: true, pending: false }, viewMode: "stat" }), list("Few", { maxItems: 1, alertName: "e", sortOrder: 2, folder: { title: "x" } }), list("None", { alertName: "no such" })];
  await page.route("**/api/v1/dashboards/x.json", (route) => route.fulfill({ json: { status: "success", data: { title: "Alerts", panels } } }));
  await page.goto(`${server.url}/#/dashboards?dash=file%3Ax.json`);
  const card = (name) => page.getByRole("region", { name, exact: true });
  const rows = (name) => card(name).locator("tbody tr").evaluateAll((all) => all.map((r) => [...r.cells].map((c) => c.textContent).join(" ")));
  await refreshed(page, "all rules are there", async () => {
    const all = await rows("All");
    return all.length === 3 && /^Gone.*severity="page".* firing .* ago 1$/.test(all[0]) && /^Later.* pending .* ago 1$/.test(all[1]) && /^Never inactive {2}0$/.test(all[2]);
  });
  assert.equal(await card("Firing").locator(".stat-value").textContent(), "1");
  assert.match((await rows("Few")).join("|"), /^Later pending/);
  await card("Few").getByText("The first 1 of 2 rules").waitFor();
  await card("Few").getByText("Not drawn as in Grafana: folder.").waitFor({ state: "attached" });
  await card("None").getByText("No alerts").waitFor();
  assert.deepEqual(await serious(page), []);
  assert.equal(await page.evaluate(() => window.hit), undefined);
  assert.deepEqual(page.faults, []);
});

test("the keyboard opens the views that the server has", async () => {
  const page = await visit(browser, `${server.url}/#/status`);
  await page.getByRole("link", { name: "Alerts" }).waitFor();
  for (const [key, title] of [["8", "Targets"], ["9", "Rules"], ["0", "Alerts"], ["-", "Status"]]) {
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
