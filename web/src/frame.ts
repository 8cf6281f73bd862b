import uPlot from "uplot";
import { h, replace, type Child } from "./dom";
import type { Zone } from "./time";

// look is the colours of the axes and of texts.
export function look(): { axis: Pick<uPlot.Axis, "stroke"> & { grid: { stroke: string; width: number }; ticks: { stroke: string; width: number } }; text: string } {
  const css = getComputedStyle(document.documentElement);
  const line = { stroke: css.getPropertyValue("--grid"), width: 1 };
  return { axis: { stroke: css.getPropertyValue("--muted"), grid: line, ticks: line }, text: css.getPropertyValue("--text") };
}

// timed are the parts of a plot over time that all have: its zone, and a drag that zooms.
export function timed(zone: Zone, zoom?: (start: number, end: number) => void): Pick<uPlot.Options, "tzDate" | "legend"> & { select: (p: uPlot) => void } {
  return {
    tzDate: (ts) => (zone === "utc" ? uPlot.tzDate(new Date(ts * 1000), "Etc/UTC") : new Date(ts * 1000)),
    legend: { show: false },
    select: (p) => void (p.select.width >= 6 && zoom?.(p.posToVal(p.select.left, "x") * 1000, p.posToVal(p.select.left + p.select.width, "x") * 1000)),
  };
}

// Frame is the box of a drawing: the plot, and the tip beside the pointer. describe is the plot for
// those who do not see it.
export class Frame {
  readonly plot: HTMLElement;
  readonly dom: HTMLElement;
  private readonly tip = h("div", { class: "tip", role: "status", "aria-live": "off", hidden: true });
  private sizes: ResizeObserver | undefined;

  constructor(describe: string, ...below: HTMLElement[]) {
    this.plot = h("div", { class: "plot", role: "img", "aria-label": describe });
    this.dom = h("div", { class: "graph" }, this.plot, this.tip, ...below);
  }

  // pointed reports whether the pointer is over this plot. The crosshair also follows that of other
  // plots.
  pointed(u: uPlot): boolean {
    return u.cursor.left !== undefined && u.cursor.left >= 0 && this.plot.matches(":hover");
  }

  // tell shows the tip beside the pointer. Without content it hides the tip.
  tell(u: uPlot, ...content: Child[]): void {
    this.tip.hidden = content.length === 0;
    if (this.tip.hidden) return;
    replace(this.tip, ...content);
    const right = u.cursor.left! > u.over.clientWidth / 2;
    this.tip.style.left = right ? "" : `${u.cursor.left! + 96}px`;
    this.tip.style.right = right ? `${u.over.clientWidth - u.cursor.left! + 24}px` : "";
    this.tip.style.top = `${Math.max(0, u.cursor.top! - 10)}px`;
  }

  // fit keeps a drawing as wide as the plot, and as high as it if height is "fill".
  fit(u: uPlot, height: number | "fill"): void {
    this.sizes = new ResizeObserver(() => {
      const { clientWidth: width, clientHeight } = this.plot;
      if (width > 0) u.setSize({ width, height: height === "fill" ? Math.max(80, clientHeight) : height });
    });
    this.sizes.observe(this.plot);
  }

  destroy(): void {
    this.sizes?.disconnect();
  }
}
