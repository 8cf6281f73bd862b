import { saveCsv } from "./csv";
import { choice, download, fileName } from "./dom";
import { picture } from "./picture";

// Shared is a panel as its menu saves it.
export interface Shared {
  title(): string;
  shown: HTMLElement; // what a picture has
  rows(): Iterable<readonly string[]> | undefined; // of a CSV file; undefined: there are none
  json?(): unknown; // undefined: there is none
}

// shareMenu is the menu of a panel that saves what it shows.
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
    }
  };
  const json = panel.json ? [["json", "Save as JSON"] as const] : [];
  const menu = choice(label, [["", face], ["csv", "Save as CSV"], ...json, ["png", "Save as PNG"]], "", (v) => {
    menu.value = "";
    void act(v).catch(failed);
  });
  return menu;
}
