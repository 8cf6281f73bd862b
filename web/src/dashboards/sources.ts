import operations from "../../../infra/grafana/dashboards/promlake-operations.json";
import { ApiError, type Api } from "../api";
import type { PanelState } from "../state";
import { panelsOf } from "./explored";
import { object } from "./json";
import machine from "./machine.json";
import { read, readText, type Dashboard } from "./model";

// Where dashboards come from: the shipped ones, the server's folder (--web.dashboards), those that
// were saved on the server, and files that the user opens, which the browser tab keeps.

export interface Entry {
  id: string; // in the address
  uid?: string; // Grafana's, if it is known
  title: string;
}

// Saved is a dashboard on the server, and its version when the page read or wrote it.
export interface Saved {
  name: string;
  version: string;
}

export interface Loaded {
  dashboard: Dashboard;
  saved?: Saved;
  panels?: PanelState[] | undefined; // that Explore can edit
}

const shipped: Record<string, unknown> = { machine, "promlake-operations": operations };
export const first = "machine";

const serverPrefix = "file:";
const openedPrefix = "opened:";
const storePrefix = "promlake.dashboard.";
// idOf is the id of a dashboard of the server.
export const idOf = (name: string) => serverPrefix + name;
export const isOpened = (id: string) => id.startsWith(openedPrefix);
// largest bounds a file that the user opens, in bytes.
const largest = 10 << 20;

export class Sources {
  private readonly opened = new Map<string, string>();

  constructor(private readonly api: Api) {
    for (let i = 0; i < sessionStorage.length; i++) {
      const key = sessionStorage.key(i)!;
      if (key.startsWith(storePrefix)) this.opened.set(openedPrefix + key.slice(storePrefix.length), sessionStorage.getItem(key)!);
    }
  }

  // list names all dashboards.
  async list(): Promise<Entry[]> {
    const out: Entry[] = Object.entries(shipped).map(([id, json]) => ({ id, uid: read(json).uid, title: read(json).title }));
    for (const id of this.opened.keys()) out.push({ id, title: `${id.slice(openedPrefix.length)} (this tab)` });
    const server = (await this.api.quiet<{ name: string; title: string; uid?: string }[]>("dashboards")) ?? [];
    for (const f of server) out.push({ ...f, id: idOf(f.name), title: f.title || f.name });
    return out;
  }

  // load reads a dashboard. It throws an Error that says what to do.
  async load(id: string): Promise<Loaded> {
    if (Object.hasOwn(shipped, id)) return { dashboard: read(shipped[id]) };
    if (id.startsWith(serverPrefix)) {
      const name = id.slice(serverPrefix.length);
      try {
        const { data, version } = await this.api.dashboard("GET", name);
        return { dashboard: read(data), ...(version ? { saved: { name, version }, panels: panelsOf(object(data)) } : {}) };
      } catch (e) {
        if (e instanceof ApiError) throw e;
        throw new Error(`${name}: ${e instanceof Error ? e.message : String(e)}`);
      }
    }
    const content = this.opened.get(id);
    if (content === undefined) throw new Error(`There is no dashboard ${JSON.stringify(id)}. Files that were opened in another tab have to be opened again.`);
    return { dashboard: readText(content) };
  }

  // open adds a file of the user and returns its id.
  async open(file: File): Promise<string> {
    if (file.size > largest) throw new Error(`${file.name} has ${file.size.toLocaleString("en")} bytes; the page reads dashboards of at most ${largest.toLocaleString("en")}.`);
    const content = await file.text();
    try {
      readText(content);
    } catch (e) {
      throw new Error(`${file.name}: ${e instanceof Error ? e.message : String(e)}`);
    }
    const name = file.name.replace(/\.json$/i, "");
    this.opened.set(openedPrefix + name, content);
    try {
      sessionStorage.setItem(storePrefix + name, content);
    } catch {
      // A browser whose storage is full keeps the file until the page is left.
    }
    return openedPrefix + name;
  }
}
