// Makes a module of the page importable by a test.
import { build } from "esbuild";

// bundled imports a file of src, which needs no browser.
export async function bundled(file) {
  const { outputFiles } = await build({ entryPoints: [new URL(`../src/${file}`, import.meta.url).pathname], bundle: true, format: "esm", write: false });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);
}
