// Rows of a SQL result, read from its JSON as it arrives:
//
//	{"status":"success","data":{"columns":[{"name":…,"type":…}],"rows":[[…],…]},"warnings":[…]}
//
// The rows stay the text that the server sent, and only those that are shown are parsed. So a
// million rows cost little more than their text, and large integers keep all digits.

export interface Column {
  name: string;
  type: string;
}

const rowsKey = '"rows":[';
const [quote, comma, open, close, backslash, brace, braceEnd] = [34, 44, 91, 93, 92, 123, 125];

// Chunk is text with complete rows. The i-th row is from starts[i] to ends[i].
interface Chunk {
  text: string;
  first: number; // index of its first row
  starts: number[];
  ends: number[];
}

export class Rows {
  columns: Column[] = [];
  count = 0;
  size = 0; // of the text, in UTF-16 units
  private part: "head" | "rows" | "tail" = "head";
  private rest = ""; // what is not complete yet
  private depth = 0;
  private inText = false;
  private escaped = false;
  private begin = 0; // of the open row, in rest and what follows it
  private readonly chunks: Chunk[] = [];

  // feed adds text. It does not look at what it was fed before, however long a row is.
  feed(text: string): void {
    this.size += text.length;
    if (this.part === "head") {
      this.rest += text;
      // Quotes within names are escaped, so this is the key.
      const at = this.rest.indexOf(rowsKey);
      if (at < 0) return;
      const head = this.rest.slice(0, at + rowsKey.length);
      this.columns = (JSON.parse(head + "]}}") as { data: { columns: Column[] } }).data.columns;
      text = this.rest.slice(head.length);
      this.rest = "";
      this.part = "rows";
    }
    if (this.part === "rows") this.scan(text);
    else this.rest += text;
  }

  private scan(text: string): void {
    const before = this.rest.length;
    const starts: number[] = [];
    const ends: number[] = [];
    let tail = -1;
    for (let i = 0; i < text.length; i++) {
      const c = text.charCodeAt(i);
      if (this.inText) {
        if (this.escaped) this.escaped = false;
        else if (c === backslash) this.escaped = true;
        else if (c === quote) this.inText = false;
      } else if (c === quote) this.inText = true;
      else if (c === open || c === brace) {
        if (this.depth++ === 0) this.begin = before + i;
      } else if (c === close || c === braceEnd) {
        if (this.depth === 0) {
          tail = i;
          break;
        }
        if (--this.depth === 0) {
          starts.push(this.begin);
          ends.push(before + i + 1);
        }
      }
    }
    const all = this.rest + text;
    this.rest = all;
    if (ends.length) {
      this.chunks.push({ text: all, first: this.count, starts, ends });
      this.count += ends.length;
      const kept = ends.at(-1)!;
      this.rest = all.slice(kept);
      this.begin -= kept;
    }
    if (tail < 0) return;
    this.part = "tail";
    this.rest = text.slice(tail);
  }

  // end reads what follows the rows and returns the warnings. It fails if the result is not
  // complete.
  end(): string[] {
    if (this.part !== "tail") throw new Error("The result ended early. The server's log has the reason.");
    return (JSON.parse('{"data":{"rows":[' + this.rest) as { warnings?: string[] }).warnings ?? [];
  }

  // row returns the JSON of the values of a row.
  row(index: number): string[] {
    let low = 0;
    for (let high = this.chunks.length; high - low > 1; ) {
      const middle = (low + high) >> 1;
      if (this.chunks[middle]!.first <= index) low = middle;
      else high = middle;
    }
    const c = this.chunks[low]!;
    return values(c.text.slice(c.starts[index - c.first], c.ends[index - c.first]));
  }
}

// values splits a JSON array into the JSON of its values.
function values(row: string): string[] {
  const out: string[] = [];
  let depth = 0;
  let from = 1;
  for (let i = 0; i < row.length; i++) {
    const c = row.charCodeAt(i);
    if (c === quote) {
      for (i++; row.charCodeAt(i) !== quote; i++) if (row.charCodeAt(i) === backslash) i++;
    } else if (c === open || c === brace) depth++;
    else if (c === close || c === braceEnd) depth--;
    if ((c === comma && depth === 1) || depth === 0) {
      out.push(row.slice(from, i));
      from = i + 1;
    }
  }
  return out;
}

// plain returns a value as text: numbers and nested values as JSON has them, null for NULL.
export function plain(json: string): string | null {
  if (json === "null") return null;
  return json.startsWith('"') ? (JSON.parse(json) as string) : json;
}

export const isTime = (c: Column) => /^(TIMESTAMP|DATE$)/.test(c.type);
export const isNumber = (c: Column) => /^(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(.*\))$/.test(c.type);
