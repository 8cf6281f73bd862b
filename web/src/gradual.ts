import uPlot from "uplot";
import { pause } from "./pause";

// Draws the lines of a graph with many of them in steps, so that the browser reacts to input
// between them. uPlot draws all lines of a graph at once.

// step is how long lines are drawn at a time, in ms.
const step = 16;

export interface Gradual {
  draw(u: uPlot): void; // begins anew, on a canvas that uPlot has cleared
  stop(): void;
}

// gradual draws the shown lines. busy is told whether lines are missing.
export function gradual(colourOf: (line: number) => string, width: number, busy: (yes: boolean) => void): Gradual {
  const linear = uPlot.paths.linear!();
  let run = 0;
  const one = (u: uPlot, i: number) => {
    const last = u.data[0]!.length - 1;
    const p = last < 0 ? null : linear(u, i, 0, last);
    if (!p?.stroke) return;
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    if (p.clip) ctx.clip(p.clip);
    ctx.strokeStyle = colourOf(i - 1);
    ctx.lineWidth = width * devicePixelRatio;
    ctx.lineJoin = "round";
    ctx.stroke(p.stroke as Path2D);
    ctx.restore();
  };
  return {
    draw(u) {
      const mine = ++run;
      let i = 1;
      const some = () => {
        if (mine !== run) return;
        for (const began = performance.now(); i < u.series.length && performance.now() - began < step; i++) if (u.series[i]!.show) one(u, i);
        busy(i < u.series.length);
        if (i < u.series.length) void pause().then(some);
      };
      some();
    },
    stop: () => void run++,
  };
}
