// Client of the HTTP API (https://prometheus.io/docs/prometheus/latest/querying/api/). The API's
// address is relative to the page, so the page works under any path prefix.

import type { Answer, Reply } from "./answer";
import { Decoder } from "./decoder";
import { Slots } from "./slots";

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

// atOnce is how many queries the page asks at once: as many as browsers send to a server of
// HTTP/1.1.
const atOnce = 6;

export class Api {
  private token: string;
  private own: Record<string, string> = {}; // headers
  tenant: string;
  private readonly slots = new Slots(atOnce);
  private readonly decoder = new Decoder();
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

  // with is this client with more headers, whose values are written as headerText does.
  with(headers: Record<string, string>): Api {
    const out = Object.create(this) as Api; // the token and all else stay one
    out.own = { ...this.own };
    for (const [name, text] of Object.entries(headers)) out.own[name] = headerText(text);
    return out;
  }

  headers(): Record<string, string> {
    const out = { ...this.own };
    if (this.token) out["Authorization"] = `Bearer ${this.token}`;
    if (this.tenant) out["X-Scope-OrgID"] = this.tenant;
    return out;
  }

  url(path: string): string {
    return new URL(path, this.base).href;
  }

  async get<T>(path: string, params: Params = {}, signal?: AbortSignal): Promise<Reply<T>> {
    const began = performance.now();
    const reply = await this.whole<ReplyBody & { data?: T }>(path, params, signal);
    return { data: reply.data as T, warnings: reply.warnings ?? [], infos: reply.infos ?? [], took: performance.now() - began };
  }

  // whole returns a reply that has its data beside its status.
  async whole<T>(path: string, params: Params = {}, signal?: AbortSignal): Promise<T> {
    const body = form(params);
    return this.slots.run(async () => {
      const response = await this.send(...this.order(path, body, body.length > 1500), signal);
      const text = await reached(response.text(), signal);
      return parse(response, text) as T;
    }, signal);
  }

  // matrix is get for range queries, whose replies may be large: a worker reads them.
  async matrix(path: string, params: Params, signal: AbortSignal): Promise<Reply<Answer>> {
    const body = form(params);
    return this.slots.run(async () => {
      const began = performance.now();
      const token = this.token;
      const { response, read, text } = await reached(this.decoder.read(...this.order(path, body, body.length > 1500), signal), signal);
      this.authorized(response, token);
      const reply = checked(response, read, () => text) as ReplyBody & { data: Answer };
      return { data: reply.data, warnings: reply.warnings ?? [], infos: reply.infos ?? [], took: performance.now() - began };
    }, signal);
  }

  // stream passes a successful reply on in parts, as they arrive. It leaves the browser time to
  // draw and to react between them.
  async stream(path: string, params: Params, signal: AbortSignal, take: (part: string) => void): Promise<void> {
    const response = await this.send(...this.order(path, form(params), true), signal);
    if (!response.ok || !response.body) {
      parse(response, await reached(response.text(), signal));
      return;
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let drawn = performance.now(); ; ) {
      const { done, value } = await reached(reader.read(), signal);
      if (done) return;
      take(value);
      if (performance.now() - drawn < 30) continue;
      await new Promise((next) => setTimeout(next));
      drawn = performance.now();
    }
  }

  // alertmanager asks the Alertmanager that the server notifies, by its API, version 2.
  async alertmanager<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await this.send(this.url(`alertmanager/api/v2/${path}`), { method, headers: { ...this.headers(), "Content-Type": "application/json" }, body: JSON.stringify(body) ?? null });
    const text = await reached(response.text());
    if (response.ok) return (text ? JSON.parse(text) : undefined) as T;
    const why = /^["{]/.test(text) ? (JSON.parse(text) as string | ReplyBody) : text;
    throw new ApiError(response.status, "alertmanager", (typeof why === "string" ? why : why.error) || `${response.status} ${response.statusText}`);
  }

  // dashboard reads, saves or deletes a dashboard of the server. The version is that of a dashboard
  // that was saved, "" of a file in the server's folder.
  async dashboard(method: string, name: string, headers: Record<string, string> = {}, body?: string): Promise<{ data: unknown; version: string }> {
    const path = name.endsWith(".json") ? name.split("/").map(encodeURIComponent).join("/") : encodeURIComponent(name); // no folder has it
    const response = await this.send(this.url(`api/v1/dashboards/${path}`), { method, headers: { ...this.headers(), ...headers }, body: body ?? null });
    const { data } = parse(response, await reached(response.text())) as { data?: unknown };
    return { data, version: response.headers.get("ETag") ?? "" };
  }

  // act makes the server do what a path names.
  async act(method: "POST" | "DELETE", path: string, params: Params = {}): Promise<void> {
    const [url, init] = this.order(path, form(params), false);
    const response = await this.send(url, { ...init, method });
    if (response.status !== 204) parse(response, await reached(response.text()));
  }

  // operator returns what only an operator's token reads, if the server has it.
  async operator<T>(path: string, params: Params = {}): Promise<T | undefined> {
    try {
      return (await this.get<T>(path, params)).data;
    } catch (e) {
      if (e instanceof ApiError && (e.status === 403 || e.status === 404)) return undefined;
      throw e;
    }
  }

  // quiet returns the data of a reply, and undefined if there is none. It asks for no token.
  async quiet<T>(path: string): Promise<T | undefined> {
    try {
      const response = await fetch(this.url(`api/v1/${path}`), { headers: this.headers() });
      return ((await response.json()) as { data?: T }).data;
    } catch {
      return undefined;
    }
  }

  private async send(url: string, init: RequestInit, signal?: AbortSignal): Promise<Response> {
    const token = this.token;
    const response = await reached(fetch(url, { ...init, ...(signal ? { signal } : {}) }), signal);
    this.authorized(response, token);
    return response;
  }

  // authorized asks for a token if the server refuses the one that a request had, unless the user has
  // set another one since.
  private authorized(response: Response | ResponseInit, token: string): void {
    if (response.status === 401 && token === this.token) this.onUnauthorized();
  }

  // order is what fetch needs for a request.
  private order(path: string, body: string, post: boolean): [url: string, init: RequestInit] {
    const url = this.url(`api/v1/${path}`);
    if (!post) return [body ? `${url}?${body}` : url, { headers: this.headers() }];
    return [url, { method: "POST", headers: { ...this.headers(), "Content-Type": "application/x-www-form-urlencoded" }, body }];
  }
}

export type Params = Record<string, string | undefined>;

interface ReplyBody {
  status?: string;
  error?: string;
  errorType?: string;
  warnings?: string[];
  infos?: string[];
}

function form(params: Params): string {
  const out = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) if (v !== undefined && v !== "") out.set(k, v);
  return out.toString();
}

// reached turns the failure of a connection into an ApiError.
async function reached<T>(step: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await step;
  } catch (e) {
    if (signal?.aborted) throw e;
    throw new ApiError(0, "unreachable", `The server did not answer (${e instanceof Error ? e.message : String(e)}).`);
  }
}

// parse reads a reply and throws the error that it reports.
function parse(response: Response, text: string): ReplyBody {
  return checked(response, () => JSON.parse(text) as unknown, () => text);
}

function checked(response: Pick<Response, "ok" | "status" | "statusText">, read: () => unknown, text: () => string): ReplyBody {
  let reply: ReplyBody;
  try {
    reply = read() as ReplyBody;
  } catch {
    throw new ApiError(response.status, "http", `${response.status} ${response.statusText}: ${text().slice(0, 300)}`);
  }
  if (!response.ok || reply.status !== "success") {
    throw new ApiError(response.status, reply.errorType ?? "http", reply.error ?? `${response.status} ${response.statusText}`);
  }
  return reply;
}

// headerText writes a text for a header. As Grafana's server does, it encodes as in a URL what is
// not printable ASCII; also % and +, so that it can be decoded. The server reads 200 bytes.
export const headerText = (text: string) => text.replace(/\p{Cs}/gu, "").replace(/[^\x20-\x7e]+|[%+]/gu, encodeURIComponent).slice(0, 200);

// seconds writes a time in ms as the API has it.
export const seconds = (ms: number) => (ms / 1000).toFixed(3);

// Span is the time of a request, in ms.
export interface Span {
  start: number;
  end: number;
  asOf: number | undefined;
}

export const asOfParams = (asOf: number | undefined): Params => ({ as_of: asOf === undefined ? undefined : seconds(asOf) });
export const spanParams = ({ start, end, asOf }: Span): Params => ({ start: seconds(start), end: seconds(end), ...asOfParams(asOf) });
export const queryParams = (expr: string, at: number, asOf?: number): Params => ({ query: expr, time: seconds(at), ...asOfParams(asOf) });
export const rangeParams = (expr: string, start: number, end: number, step: number, asOf?: number): Params => ({ query: expr, step: seconds(step), ...spanParams({ start, end, asOf }) });
