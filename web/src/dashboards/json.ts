// Reads values of JSON whose types nobody has checked.

export type Json = Record<string, unknown>;

export const isObject = (v: unknown): v is Json => typeof v === "object" && v !== null && !Array.isArray(v);
export const object = (v: unknown): Json => (isObject(v) ? v : {});
export const list = (v: unknown): Json[] => (Array.isArray(v) ? v.filter(isObject) : []);
export const text = (v: unknown, none = ""): string => (typeof v === "string" ? v : typeof v === "number" ? String(v) : none);
export const number = (v: unknown): number | undefined => {
  const n = typeof v === "string" && v.trim() ? Number(v) : v;
  return typeof n === "number" && Number.isFinite(n) ? n : undefined;
};

// pattern is a regular expression as Grafana writes it, with or without slashes and flags;
// undefined if JavaScript does not have it. Only with all, the flag g holds.
export function pattern(source: string, all = false): RegExp | undefined {
  const m = /^\/(.*)\/([gimsuy]*)$/s.exec(source);
  try {
    return m ? new RegExp(m[1]!, all ? m[2] : m[2]!.replace("g", "")) : new RegExp(source);
  } catch {
    return undefined;
  }
}
