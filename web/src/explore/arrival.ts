import type { Api } from "../api";

const shortest = 1_000;
const longest = 30_000;

// arrival finds out whether the tenant has no data at all, and tells it. While it has none and the
// page is visible, it asks again, at growing distances, until the first sample is there. What it
// returns begins anew, for another tenant or token.
export function arrival(api: Api, tell: (empty: boolean) => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let wait = shortest;
  let empty = false;
  let last = 0;
  const ask = async () => {
    const mine = ++last;
    clearTimeout(timer);
    const lake = await api.quiet<{ levels?: unknown[] }>("status/lake");
    if (mine !== last) return;
    if (lake) empty = lake.levels?.length === 0; // a server that does not answer has what it had
    tell(empty);
    if (!empty) return;
    timer = setTimeout(() => !document.hidden && void ask(), wait);
    wait = Math.min(wait * 1.5, longest);
  };
  const begin = () => {
    wait = shortest;
    void ask();
  };
  document.addEventListener("visibilitychange", () => !document.hidden && empty && begin());
  return begin;
}
