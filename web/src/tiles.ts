import uPlot from "uplot";
import type { Child } from "./dom";
import { Frame, look, timed } from "./frame";
import { timeLabels, type Graph } from "./graph";
import type { Zone } from "./time";
import type { Values } from "./values";

// Tile is a rectangle of a row, from one time to another in seconds.
export interface Tile {
  from: number;
  to: number;
  colour: string;
  text?: string;
  ink?: string; // the colour of the text
}

export interface TileRow {
  name: string;
  tiles: readonly Tile[];
}

export interface TilesOptions {
  name: string; // for those who do not see it
  times: number[]; // seconds; of the values
  bounds: [start: number, end: number]; // seconds
  zone: Zone;
  height: number | "fill";
  zoom?: (start: number, end: number) => void; // ms
  // With boundaries, the first row is the lowest, and a name is that of the upper end of its row.
  // Without, the first row is the uppermost.
  boundaries?: boolean;
  gap?: number; // the part of a row's height that stays free
  border?: number; // pixels around a tile
  texts?: "never" | "auto" | "always"; // auto: where there is room
  align?: "left" | "center" | "right"; // of the texts
  tip(row: number, at: number, index: number): Child[]; // at is the time under the pointer, index that of times
  values: Pick<Values, "of" | "rows">;
  below?: HTMLElement;
}

const font = (pixels: number) => `${pixels}px system-ui, sans-serif`;
let ruler: OffscreenCanvasRenderingContext2D | undefined;

// widthOf is the width of a text on an axis, in pixels.
export function widthOf(text: string): number {
  ruler ??= new OffscreenCanvas(1, 1).getContext("2d")!;
  ruler.font = font(12);
  return ruler.measureText(text).width;
}

// shortened is the beginning of a text that fits into a width in pixels.
export function shortened(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let n = text.length - 1;
  while (n > 0 && widthOf(`${text.slice(0, n)}…`) > width) n--;
  return `${text.slice(0, n)}…`;
}

// write draws a text inside a rectangle of the canvas, or leaves it out if there is no room.
export function write(ctx: CanvasRenderingContext2D, text: string, ink: string, box: { left: number; top: number; width: number; height: number }, align: "left" | "center" | "right" = "center", always = false): void {
  const margin = 4 * devicePixelRatio;
  ctx.font = font(12 * devicePixelRatio);
  if (!always && (ctx.measureText(text).width + 2 * margin > box.width || box.height < 14 * devicePixelRatio)) return;
  [ctx.fillStyle, ctx.textBaseline, ctx.textAlign] = [ink, "middle", align];
  ctx.fillText(text, align === "left" ? box.left + margin : align === "right" ? box.left + box.width - margin : box.left + box.width / 2, box.top + box.height / 2);
}

// tiles draws rows of rectangles over time.
export function tiles(rows: readonly TileRow[], o: TilesOptions): Graph {
  const frame = new Frame(o.name, ...(o.below ? [o.below] : []));
  const axis = { ...look().axis, grid: { show: false } };
  const { select, ...parts } = timed(o.zone, o.zoom);
  const n = rows.length;
  const place = o.boundaries ? 0 : 0.5; // of a name in its row
  const widest = rows.reduce((w, r) => Math.max(w, widthOf(r.name)), 0) + 16;
  const sized = (u: uPlot) => (o.boundaries ? 84 : Math.min(widest, u.width * 0.35));
  const u = new uPlot(
    {
      width: 300,
      height: o.height === "fill" ? 120 : o.height,
      ...parts,
      cursor: { sync: { key: "page" }, drag: { x: true, y: false, setScale: !o.zoom } },
      scales: { x: { time: true, range: o.bounds }, y: { range: [0, Math.max(1, n)], dir: o.boundaries ? 1 : -1 } },
      axes: [
        { ...axis, space: 80, values: (_u, at, _axis, _space, distance) => timeLabels(at, distance, o.zone) },
        {
          ...axis,
          ticks: { ...axis.ticks, show: o.boundaries ?? false },
          size: sized,
          splits: (p) => ticks(n, o.boundaries ? 8 : Math.max(1, p.height / 18)).map((v) => v + place),
          values: (p, at) => at.map((v) => shortened(rows[Math.ceil(v) - 1]?.name ?? "", sized(p) - 12)),
        },
      ],
      series: [{}, { show: true, paths: () => null, points: { show: false } }],
      hooks: {
        draw: [draw],
        setCursor: [showTip],
        setSelect: [select],
      },
    },
    [o.times, o.times.map(() => 0)],
    frame.plot,
  );

  function draw(p: uPlot): void {
    const { ctx, bbox } = p;
    const gap = (o.gap ?? 0) / 2;
    ctx.save();
    rows.forEach((row, j) => {
      const [a, b] = [p.valToPos(j + gap, "y", true), p.valToPos(j + 1 - gap, "y", true)];
      const top = Math.min(a, b);
      const height = Math.max(1, Math.abs(a - b) - 0.5);
      for (const t of row.tiles) {
        const left = Math.max(bbox.left, p.valToPos(t.from, "x", true));
        const width = Math.max(1, Math.min(bbox.left + bbox.width, p.valToPos(t.to, "x", true)) - left - 0.5);
        ctx.fillStyle = t.colour;
        ctx.fillRect(left, top, width, height);
        if (o.border) {
          [ctx.strokeStyle, ctx.lineWidth] = [t.ink ?? "", o.border];
          ctx.strokeRect(left, top, width, height);
        }
        if (t.text && t.ink && o.texts !== "never") write(ctx, t.text, t.ink, { left, top, width, height }, o.align, o.texts === "always");
      }
    });
    ctx.restore();
  }

  function showTip(p: uPlot): void {
    const i = p.cursor.idx;
    const row = Math.floor(p.posToVal(p.cursor.top ?? -1, "y"));
    if (!frame.pointed(p) || i === null || i === undefined || !rows[row]) return frame.tell(p);
    frame.tell(p, ...o.tip(row, p.posToVal(p.cursor.left!, "x"), i));
  }

  frame.fit(u, o.height);
  return {
    dom: frame.dom,
    values: { times: o.times, zone: o.zone, ...o.values, point: (i) => u.setCursor({ left: u.valToPos(o.times[i]!, "x"), top: u.over.clientHeight / 2 }) },
    destroy: () => {
      frame.destroy();
      u.destroy();
    },
  };
}

// ticks are the boundaries of n rows or columns, at most about so many.
export function ticks(n: number, most: number): number[] {
  const distance = Math.max(1, Math.ceil(n / most));
  return Array.from({ length: Math.floor(n / distance) + 1 }, (_, i) => i * distance);
}
