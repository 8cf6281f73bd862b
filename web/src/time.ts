// Times are milliseconds since the Unix epoch, durations are milliseconds.

const units: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000, y: 31_536_000_000 };

// parseDuration reads Prometheus' notation, for example 1h30m. It returns undefined for anything
// else.
export function parseDuration(text: string): number | undefined {
  const t = text.trim();
  if (!/^(\d+(ms|[smhdwy]))+$/.test(t)) return undefined;
  let sum = 0;
  for (const [, n, unit] of t.matchAll(/(\d+)(ms|[smhdwy])/g)) sum += Number(n) * units[unit!]!;
  return sum > 0 ? sum : undefined;
}

// formatDuration writes the notation that parseDuration reads, with the two largest units.
export function formatDuration(ms: number): string {
  let rest = Math.round(ms);
  let out = "";
  for (const unit of ["d", "h", "m", "s", "ms"] as const) {
    const n = Math.floor(rest / units[unit]!);
    if (n === 0) continue;
    out += n + unit;
    rest -= n * units[unit]!;
    if (/\d+\D+\d+/.test(out)) break;
  }
  return out || "0s";
}

export type Zone = "local" | "utc";

// parseTime reads "now", "now-1h", seconds since the epoch, or a date and time ("2026-11-22 14:03",
// RFC 3339 included). A date and time without an offset is in the given zone.
export function parseTime(text: string, zone: Zone, now: number): number | undefined {
  const t = text.trim();
  if (t === "now") return now;
  const relative = /^now\s*([-+])\s*(\S+)$/.exec(t);
  if (relative) {
    const d = parseDuration(relative[2]!);
    return d === undefined ? undefined : relative[1] === "-" ? now - d : now + d;
  }
  if (/^\d{9,11}(\.\d+)?$/.test(t)) return Math.round(Number(t) * 1000);
  const m = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?\s*(Z|[-+]\d\d:\d\d)?$/i.exec(t);
  if (!m) return undefined;
  const at = Date.parse(`${m[1]}T${m[2] ?? "00:00"}${m[3]?.toUpperCase() ?? (zone === "utc" ? "Z" : "")}`);
  return Number.isNaN(at) ? undefined : at;
}

const two = (n: number) => String(n).padStart(2, "0");

function fields(at: number, zone: Zone): [year: number, month: number, day: number, hour: number, minute: number, second: number] {
  const d = new Date(at);
  return zone === "utc"
    ? [d.getUTCFullYear(), d.getUTCMonth() + 1, d.getUTCDate(), d.getUTCHours(), d.getUTCMinutes(), d.getUTCSeconds()]
    : [d.getFullYear(), d.getMonth() + 1, d.getDate(), d.getHours(), d.getMinutes(), d.getSeconds()];
}

// formatTime writes a time to the second. parseTime reads it in the same zone.
export function formatTime(at: number, zone: Zone): string {
  const [year, month, day, hour, minute, second] = fields(at, zone);
  return `${year}-${two(month)}-${two(day)} ${two(hour)}:${two(minute)}:${two(second)}`;
}

// A range is the time that a view shows. Without an end it ends now and moves on.
export interface Range {
  length: number;
  end?: number;
}

export function bounds(r: Range, now: number): { start: number; end: number } {
  const end = r.end ?? now;
  return { start: end - r.length, end };
}

// stepFor chooses the distance of points in ms: about one for three pixels, a round number, at
// least min.
export function stepFor(length: number, pixels: number, min = 1_000): number {
  const wanted = Math.max(min, (length * 3) / Math.max(pixels, 300));
  const round = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400].map((s) => s * 1_000);
  return round.find((s) => s >= wanted) ?? Math.ceil(wanted / 86_400_000) * 86_400_000;
}
