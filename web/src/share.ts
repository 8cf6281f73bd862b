import { saveCsv } from "./csv";
import { choice, copyButton, download, fileName, h } from "./dom";
import { picture } from "./picture";

// Shared is a panel as its menu saves and shares it.
export interface Shared {
  title(): string;
  shown: HTMLElement; // what a picture has
  rows(): Iterable<readonly string[]> | undefined; // of a CSV file; undefined: there are none
  json?(): unknown; // undefined: there is none
  link?(): string; // the part of an address behind "#" that shows it alone
}

// shareMenu is the menu of a panel that saves and shares what it shows.
export function shareMenu(label: string, face: string, panel: Shared, failed: (e: unknown) => void): HTMLSelectElement {
  const act = async (v: string) => {
    const title = panel.title();
    if (v === "csv") {
      const rows = panel.rows();
      if (rows) await saveCsv(title, rows);
    } else if (v === "json") {
      const json = panel.json?.();
      if (json !== undefined) download(fileName(title, "json"), new Blob([JSON.stringify(json, null, 1)], { type: "application/json" }));
    } else if (v === "png") {
      const png = await picture(title, panel.shown);
      if (!png) throw new Error("The browser makes no picture of this size.");
      download(fileName(title, "png"), png);
    } else if (v === "embed") await embed(title, panel.link!());
  };
  const json = panel.json ? [["json", "Save as JSON"] as const] : [];
  const link = panel.link ? [["embed", "Embed…"] as const] : [];
  const menu = choice(label, [["", face], ["csv", "Save as CSV"], ...json, ["png", "Save as PNG"], ...link], "", (v) => {
    menu.value = "";
    void act(v).catch(failed);
  });
  return menu;
}

// embed shows how another page embeds a panel, and whether the server allows it.
async function embed(title: string, hash: string): Promise<void> {
  const url = new URL(`?embed${hash}`, location.href).href;
  const frame = h("pre", { tabIndex: 0 }, h("iframe", { src: url, title, width: "800", height: "400", loading: "lazy" }).outerHTML);
  const policy = (await fetch(url)).headers.get("Content-Security-Policy") ?? "";
  const refused = policy.includes("frame-ancestors 'none'") && h("p", { class: "warn" }, "This server lets no other page show it. Its operator allows pages with --web.frame-ancestors.");
  const dialog = h(
    "dialog",
    { "aria-label": `Embed ${title}`, onclose: () => dialog.remove() },
    h("h2", {}, "Embed"),
    h("p", {}, "Another page shows ", h("a", { href: url, target: "_blank", rel: "noopener" }, "the panel alone"), ", with this time range and refresh, by:"),
    frame,
    refused,
    h("form", { method: "dialog", class: "row" }, copyButton(frame), h("button", { class: "primary" }, "Close")),
  );
  document.body.append(dialog);
  dialog.showModal();
}
