import { Compact } from "./compact";
import { MatrixReader } from "./matrix";
import type { Order, Told } from "./decoder";

// The worker of the page: it makes the requests that decoder.ts orders, and sends the series of
// the replies in parts. The numbers of a series are handed over, not copied.

const running = new Map<number, AbortController>();

const tell = (told: Told, transfer: Transferable[] = []) => self.postMessage(told, { transfer });

self.addEventListener("message", (e: MessageEvent<Order>) => {
  const { id, url, init } = e.data;
  if (url === undefined) return running.get(id)?.abort();
  const control = new AbortController();
  running.set(id, control);
  void fetched(id, url, { ...init, signal: control.signal })
    .catch((why: unknown) => tell({ id, failed: why instanceof Error ? why.message : String(why) }))
    .finally(() => running.delete(id));
});

async function fetched(id: number, url: string, init: RequestInit): Promise<void> {
  const answer = await fetch(url, init);
  const reader = new MatrixReader((series) => tell({ id, series }, series.flatMap((s) => (s instanceof Compact ? [s.floats.buffer] : []))));
  const parts = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (let p = await parts?.read(); p && !p.done; p = await parts!.read()) await reader.take(p.value);
  const { ok, status, statusText } = answer;
  const response = { ok, status, statusText };
  let reply: unknown;
  try {
    reply = reader.end();
  } catch {
    return tell({ id, response, reply: undefined, text: reader.text().slice(0, 300) });
  }
  tell({ id, response, reply, text: "" });
}
