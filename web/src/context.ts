import type { Api } from "./api";
import type { Range, Zone } from "./time";

// What all panels of a view share.
export interface Context {
  api: Api;
  range(): Range;
  zone(): Zone;
  asOf(): number | undefined;
  zoom(start: number, end: number): void;
}
