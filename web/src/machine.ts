import type { Unit } from "./format";
import { h } from "./dom";
import { emptyPanel } from "./state";
import { Result, type Context } from "./panel";

// The dashboard of the machines whose node metrics are stored: of this one after `make run`, and of
// all that run node_exporter.

interface Tile {
  title: string;
  expr: string;
  unit: Unit;
  stacked?: boolean;
}

const tiles: readonly Tile[] = [
  { title: "CPU in use by mode (cores)", expr: `sum by (mode) (rate(node_cpu_seconds_total{mode!="idle"}[1m]))`, unit: "number", stacked: true },
  { title: "Memory in use", expr: `node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes`, unit: "bytes" },
  { title: "Network received", expr: `rate(node_network_receive_bytes_total{device!="lo"}[1m])`, unit: "bytes/s" },
  { title: "Network sent", expr: `rate(node_network_transmit_bytes_total{device!="lo"}[1m])`, unit: "bytes/s" },
  { title: "Disk read and written", expr: `sum by (device) (rate(node_disk_read_bytes_total[1m]) + rate(node_disk_written_bytes_total[1m]))`, unit: "bytes/s" },
  { title: "Load average, 1 minute", expr: `node_load1`, unit: "number" },
  { title: "Filesystem in use", expr: `1 - node_filesystem_avail_bytes / node_filesystem_size_bytes`, unit: "percent" },
  { title: "Samples stored per second", expr: `sum by (instance) (rate(promlake_ingest_samples_total[1m]))`, unit: "number" },
];

export class Machine {
  readonly dom: HTMLElement;
  private readonly results: { tile: Tile; result: Result }[];

  constructor(ctx: Context, explore: (expr: string) => void) {
    this.results = tiles.map((tile) => ({ tile, result: new Result(ctx, 180, tile.unit) }));
    this.dom = h(
      "div",
      { class: "tiles" },
      ...this.results.map(({ tile, result }) =>
        h("section", { class: "panel tile", "aria-label": tile.title }, h("div", { class: "row" }, h("h2", {}, tile.title), h("button", { type: "button", class: "quiet", title: tile.expr, onclick: () => explore(tile.expr) }, "Explore")), result.dom),
      ),
    );
  }

  refresh(automatic = false): Promise<unknown> {
    return Promise.all(this.results.map(({ tile, result }) => result.ask({ ...emptyPanel(tile.expr), stacked: tile.stacked ?? false }, automatic)));
  }

  destroy(): void {
    for (const { result } of this.results) result.destroy();
  }
}
