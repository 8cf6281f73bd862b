import type { Series } from "./answer";

// What the page and its worker send each other.

// Order asks for a request; without a URL it aborts the one with this id.
export interface Order {
  id: number;
  url?: string;
  init?: RequestInit;
}

// Told is a part of a reply, its end, or why there is none.
export type Told = { id: number } & ({ series: Series[] } | { response: { ok: boolean; status: number; statusText: string }; reply: unknown; text: string } | { failed: string });
