import type { Answer, Series } from "./answer";
import { Compact } from "./compact";

// Reads large replies in a worker (worker.ts), so that the page reacts to input meanwhile.

// Order asks for a request; without a URL it aborts the one with this id.
export interface Order {
  id: number;
  url?: string;
  init?: RequestInit;
}

// Told is a part of a reply, its end, or why there is none.
export type Told = { id: number } & ({ series: Series[] } | { response: { ok: boolean; status: number; statusText: string }; reply: unknown; text: string } | { failed: string });

// Decoded is a reply that has arrived completely.
export interface Decoded {
  response: { ok: boolean; status: number; statusText: string };
  read(): unknown; // the reply as JSON would be read; it throws if it is not JSON
  text: string; // the beginning of what is not JSON
}

interface Waiting {
  series: Series[];
  done(d: Decoded): void;
  failed(why: Error): void;
}

export class Decoder {
  private worker: Worker | undefined;
  private last = 0;
  private readonly waiting = new Map<number, Waiting>();

  // read makes a request and reads its reply. It throws the signal's reason if that aborts it, and
  // an Error if the connection fails.
  read(url: string, init: RequestInit, signal: AbortSignal): Promise<Decoded> {
    signal.throwIfAborted();
    const id = ++this.last;
    const worker = (this.worker ??= this.start());
    const abort = () => {
      worker.postMessage({ id });
      this.waiting.get(id)?.failed(signal.reason as Error);
    };
    return new Promise<Decoded>((done, failed) => {
      this.waiting.set(id, { series: [], done, failed });
      signal.addEventListener("abort", abort, { once: true });
      worker.postMessage({ id, url, init });
    }).finally(() => {
      this.waiting.delete(id);
      signal.removeEventListener("abort", abort);
    });
  }

  private start(): Worker {
    const worker = new Worker(new URL("worker.js", import.meta.url));
    worker.addEventListener("message", (e: MessageEvent<Told>) => this.take(e.data));
    worker.addEventListener("error", () => {
      worker.terminate();
      this.worker = undefined; // the next query tries again
      for (const w of this.waiting.values()) w.failed(new Error("assets/worker.js cannot be loaded"));
    });
    return worker;
  }

  private take(told: Told): void {
    const w = this.waiting.get(told.id);
    if (!w) return; // it was aborted
    if ("failed" in told) w.failed(new Error(told.failed));
    else if ("series" in told) for (const s of told.series) w.series.push(Compact.copied(s));
    else {
      const { response, reply, text } = told;
      const read = () => {
        if (reply === undefined) throw new SyntaxError("not JSON");
        if (w.series.length) (reply as { data: Answer }).data.result = w.series;
        return reply;
      };
      w.done({ response, read, text });
    }
  }
}
