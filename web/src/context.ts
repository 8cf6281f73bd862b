import type { Api, Span } from "./api";
import { bounds, type Range, type Zone } from "./time";

// What all panels of a view share.
export interface Context {
  api: Api;
  range(): Range;
  zone(): Zone;
  asOf(): number | undefined;
  zoom(start: number, end: number): void;
  setLength(length: number): void; // of the range, ms
}

// spanOf is the time range now.
export const spanOf = (ctx: Context): Span => ({ ...bounds(ctx.range(), Date.now()), asOf: ctx.asOf() });
