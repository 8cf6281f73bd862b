// Bundles the page into dist/, with the licences of what is bundled.
import { build } from "esbuild";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, "dist");
await rm(join(dist, "assets"), { recursive: true, force: true });
await mkdir(join(dist, "assets"), { recursive: true });

const result = await build({
  entryPoints: { page: join(here, "src/main.ts"), worker: join(here, "src/worker.ts") },
  outdir: join(dist, "assets"),
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
});

const packages = new Set();
for (const input of Object.keys(result.metafile.inputs)) {
  const m = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
  if (m) packages.add(m[1]);
}
const notices = [];
for (const name of [...packages].sort()) {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  if (!/^(MIT|Apache-2\.0|ISC|BSD-[23]-Clause|BlueOak-1\.0\.0)$/.test(license)) throw new Error(`${name} has the licence ${license}, which may not be bundled`);
  const file = (await readdir(folder)).find((f) => /^(licen[cs]e|copying)/i.test(f));
  notices.push(`${name} ${version} (${license})\n\n${file ? (await readFile(join(folder, file), "utf8")).trim() : `Licence: ${license}`}\n`);
}
await writeFile(join(dist, "assets/licenses.txt"), notices.join("\n" + "-".repeat(80) + "\n\n"));
await cp(join(here, "src/index.html"), join(dist, "index.html"));
