import operations from "../../../infra/grafana/dashboards/promlake-operations.json";
import { ApiError, type Api } from "../api";
import machine from "./machine.json";
import { read, readText, type Dashboard } from "./model";

// Where dashboards come from: the shipped ones, the server's folder (--web.dashboards), and files
// that the user opens, which the browser tab keeps.

export interface Entry {
  id: string; // in the address
  title: string;
}

const shipped: Record<string, unknown> = { machine, "promlake-operations": operations };
export const first = "machine";

const folderPrefix = "file:";
const openedPrefix = "opened:";
const storePrefix = "promlake.dashboard.";
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
    const out: Entry[] = Object.entries(shipped).map(([id, json]) => ({ id, title: read(json).title }));
    for (const id of this.opened.keys()) out.push({ id, title: `${id.slice(openedPrefix.length)} (this tab)` });
    // A server without the folder has an empty list; one that is older has none.
    const folder = (await this.api.quiet<{ name: string; title: string }[]>("dashboards")) ?? [];
    for (const f of folder) out.push({ id: folderPrefix + f.name, title: f.title || f.name });
    return out;
  }

  // load reads a dashboard. It throws an Error that says what to do.
  async load(id: string): Promise<Dashboard> {
    if (Object.hasOwn(shipped, id)) return read(shipped[id]);
    if (id.startsWith(folderPrefix)) {
      const name = id.slice(folderPrefix.length);
      try {
        return read((await this.api.get<unknown>(`dashboards/${name.split("/").map(encodeURIComponent).join("/")}`)).data);
      } catch (e) {
        if (e instanceof ApiError) throw e;
        throw new Error(`${name}: ${e instanceof Error ? e.message : String(e)}`);
      }
    }
    const content = this.opened.get(id);
    if (content === undefined) throw new Error(`There is no dashboard ${JSON.stringify(id)}. Files that were opened in another tab have to be opened again.`);
    return readText(content);
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
