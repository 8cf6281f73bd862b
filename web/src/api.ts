// Client of the HTTP API (https://prometheus.io/docs/prometheus/latest/querying/api/). The API's
// address is relative to the page, so the page works under any path prefix.

export type Labels = Record<string, string>;
export type Point = [seconds: number, value: string];

export interface Histogram {
  count: string;
  sum: string;
  buckets?: [boundaries: number, lower: string, upper: string, count: string][];
}

export interface Series {
  metric: Labels;
  value?: Point;
  values?: Point[];
  histogram?: [seconds: number, h: Histogram];
  histograms?: [seconds: number, h: Histogram][];
}

export interface Answer {
  resultType: "matrix" | "vector" | "scalar" | "string";
  result: Series[] | Point;
  stats?: { timings?: { evalTotalTime?: number }; samples?: { totalQueryableSamples?: number }; storage?: Record<string, unknown> };
}

export interface Reply<T> {
  data: T;
  warnings: string[];
  infos: string[];
  took: number; // ms
}

// ApiError is a reply that reports an error. status 0 means that no server answered.
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly type: string,
    message: string,
  ) {
    super(message);
  }
}

const tokenKey = "promlake.token";

export class Api {
  private token: string;
  tenant: string;
  onUnauthorized: () => void = () => {};

  constructor(private readonly base: URL) {
    this.token = sessionStorage.getItem(tokenKey) ?? "";
    this.tenant = "";
  }

  // setToken keeps a bearer token in memory, and in the tab's session storage if keep is true.
  setToken(token: string, keep: boolean): void {
    this.token = token;
    if (keep && token) sessionStorage.setItem(tokenKey, token);
    else sessionStorage.removeItem(tokenKey);
  }

  headers(): Record<string, string> {
    const out: Record<string, string> = {};
    if (this.token) out["Authorization"] = `Bearer ${this.token}`;
    if (this.tenant) out["X-Scope-OrgID"] = this.tenant;
    return out;
  }

  url(path: string): string {
    return new URL(path, this.base).href;
  }

  async get<T>(path: string, params: Record<string, string | undefined> = {}, signal?: AbortSignal): Promise<Reply<T>> {
    const form = new URLSearchParams();
    for (const [k, v] of Object.entries(params)) if (v !== undefined && v !== "") form.set(k, v);
    const body = form.toString();
    const long = body.length > 1500;
    const url = this.url(`api/v1/${path}`) + (long || !body ? "" : `?${body}`);
    const began = performance.now();
    let response: Response;
    let text: string;
    try {
      response = await fetch(url, {
        method: long ? "POST" : "GET",
        headers: long ? { ...this.headers(), "Content-Type": "application/x-www-form-urlencoded" } : this.headers(),
        ...(long ? { body } : {}),
        ...(signal ? { signal } : {}),
      });
      text = await response.text();
    } catch (e) {
      if (signal?.aborted) throw e;
      throw new ApiError(0, "unreachable", `The server did not answer (${e instanceof Error ? e.message : String(e)}).`);
    }
    if (response.status === 401) this.onUnauthorized();
    let reply: { status?: string; data?: T; error?: string; errorType?: string; warnings?: string[]; infos?: string[] };
    try {
      reply = JSON.parse(text) as typeof reply;
    } catch {
      throw new ApiError(response.status, "http", `${response.status} ${response.statusText}: ${text.slice(0, 300)}`);
    }
    if (!response.ok || reply.status !== "success") {
      throw new ApiError(response.status, reply.errorType ?? "http", reply.error ?? `${response.status} ${response.statusText}`);
    }
    return { data: reply.data as T, warnings: reply.warnings ?? [], infos: reply.infos ?? [], took: performance.now() - began };
  }
}

const seconds = (ms: number) => (ms / 1000).toFixed(3);

export function queryParams(expr: string, at: number, asOf?: number): Record<string, string | undefined> {
  return { query: expr, time: seconds(at), as_of: asOf === undefined ? undefined : seconds(asOf) };
}

export function rangeParams(expr: string, start: number, end: number, step: number, asOf?: number): Record<string, string | undefined> {
  return { query: expr, start: seconds(start), end: seconds(end), step: seconds(step), as_of: asOf === undefined ? undefined : seconds(asOf) };
}
