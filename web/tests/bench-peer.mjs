// The same measurements with the page of Debian's prometheus, where it can do the same.
import { execFileSync, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, until } from "./harness.mjs";
import { drawing, fresh, typing } from "./measure.mjs";

const script = new URL("peer.sh", import.meta.url).pathname;
const promtool = new URL("../../.cache/peers/usr/bin/promtool", import.meta.url).pathname;

// Peer is a running prometheus with a page.
class Peer {
  constructor(folder) {
    this.folder = folder;
  }

  // add stores lines of the text format as blocks.
  async add(lines) {
    const file = join(this.folder, "lines.om");
    await writeFile(file, lines.map((l) => l.replace(/(\d{3})$/, ".$1")).join("\n") + "\n# EOF\n");
    execFileSync(promtool, ["tsdb", "create-blocks-from", "openmetrics", "--quiet", file, join(this.folder, "data")]);
    await rm(file);
  }

  async up() {
    await writeFile(join(this.folder, "prometheus.yml"), "global: {}\n");
    const port = await freePort();
    this.url = `http://127.0.0.1:${port}`;
    this.process = spawn(script, ["run", `--config.file=${this.folder}/prometheus.yml`, `--storage.tsdb.path=${this.folder}/data`, `--web.listen-address=127.0.0.1:${port}`], { cwd: this.folder, stdio: "ignore" });
    this.ended = new Promise((done) => this.process.once("exit", done));
    await until("prometheus is ready", () => fetch(`${this.url}/-/ready`).then((r) => r.ok, () => this.process.exitCode !== null));
    if (this.process.exitCode !== null) throw new Error("prometheus ended: see web/tests/peer.sh");
  }

  async down() {
    this.process?.kill();
    await this.ended;
  }
}

// measured takes the figures: first loads, drawings, and keys among many names.
export async function measured(browser, rounds, now, { lines, length, names, keys }) {
  execFileSync(script, ["fetch"]);
  const peer = new Peer(await mkdtemp(join(tmpdir(), "promlake-page-peer-")));
  const out = { loads: [], drawings: [], typed: [] };
  const form = "textarea[name=expr]";
  try {
    await peer.add(lines);
    await peer.up();
    for (let i = 0; i < rounds; i++) {
      const page = await fresh(browser, `${peer.url}/classic/graph`);
      await page.locator(form).waitFor();
      out.loads.push(await page.evaluate(() => performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd));
      await page.context().close();
    }
    const end = new Date(now).toISOString().slice(0, 16).replace("T", " ");
    for (let i = 0; i < rounds; i++) {
      const page = await fresh(browser, `${peer.url}/classic/graph?g0.range_input=${length}s&g0.end_input=${encodeURIComponent(end)}&g0.step_input=1&g0.tab=0&g0.expr=`);
      await page.locator(form).fill("bench_value");
      const click = () => page.locator(".execute_btn").click();
      out.drawings.push(await drawing(browser, page, click, () => document.querySelectorAll(".rickshaw_graph svg path, .graph svg path").length >= 10_000 && document.querySelectorAll(".legend .line").length >= 10_000));
      await page.context().close();
    }
    await peer.down();
    await peer.add(names);
    await peer.up();
    for (let i = 0; i < 2; i++) {
      const page = await fresh(browser, `${peer.url}/classic/graph`);
      await page.waitForFunction(() => document.querySelectorAll("select[name=insert_metric] option").length > 100_000);
      await page.locator(form).click();
      await page.keyboard.type("bench");
      await page.locator("ul.typeahead li").first().waitFor();
      out.typed.push(await typing(page, "bench", keys, () => document.querySelector("ul.typeahead")?.textContent));
      await page.context().close();
    }
    return out;
  } finally {
    await peer.down();
    await rm(peer.folder, { recursive: true, force: true });
  }
}
