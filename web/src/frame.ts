import type uPlot from "uplot";
import { h, replace } from "./dom";

type Child = Parameters<typeof replace>[1];

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
